package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/redact"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/web"
)

// sharedFile is what muster share prints with --json.
type sharedFile struct {
	File string `json:"file"`
	web.Shared
}

// newShareCommand returns muster share, which writes the page of muster web with a run in it as one file.
func newShareCommand(a *App) *cobra.Command {
	var out string
	var force bool
	c := &cobra.Command{Use: "share [ARCHIVE]", Args: namedArgs("[ARCHIVE]"),
		Short: "a run as one HTML file, to read and to replay without muster",
		Long: "The file is the page of muster web with its replay, and has the records, conversations and diffs of\n" +
			"the last run, or of an archived one by its name in muster archive list. It opens from the disk,\n" +
			"without a server and without a network, and changes nothing. Keys are hidden, and the path of your\n" +
			"home directory is shortened. All else that the team has read, said and written is in it."}
	c.Flags().StringVarP(&out, "output", "o", "", "write `FILE`; - is stdout (default muster-NAME.html)")
	c.Flags().BoolVar(&force, "force", false, "overwrite the file")
	_ = c.MarkFlagFilename("output", "html") // it exists
	c.RunE = func(c *cobra.Command, args []string) error {
		if out == "-" && a.json {
			return &usageError{c.CommandPath(), "--json and -o - exclude each other"}
		}
		open, name := a.look, ""
		if len(args) > 0 {
			name = args[0]
			open = func(ctx context.Context) (opened, error) { return openArchive(ctx, a, name) }
		}
		o, err := open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		page, said, err := pageOf(a, o).Share(c.Context(), a.secrets, a.env("HOME"))
		if err != nil {
			return err
		}
		if out == "-" {
			_, err := a.Stdout.Write(page)
			fmt.Fprint(a.Stderr, sharedText(sharedFile{"stdout", said}))
			return err
		}
		file := sharedFile{cmp.Or(out, "muster-"+fileName(cmp.Or(name, string(said.Team)))+".html"), said}
		path := file.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.workDir(), path)
		}
		if err := writeNew(path, page, force); err != nil {
			return err
		}
		return a.print(file, func(view.Screen) string { return sharedText(file) })
	}
	return c
}

// fileName returns a name without what file systems and shells take for something else.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
}

// writeNew writes a file that only its owner can read. It replaces one that is there only with force.
func writeNew(path string, data []byte, force bool) error {
	// The file is whole when it gets its name, and one that is replaced stays until then.
	f, err := os.CreateTemp(filepath.Dir(path), ".muster-share-*")
	if err == nil {
		defer func() { _ = os.Remove(f.Name()) }() // after the rename there is none
		_, err = f.Write(data)
		err = errors.Join(err, f.Close())
	}
	switch {
	case err != nil:
	case force:
		err = os.Rename(f.Name(), path)
	default:
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return muster.Errorf(muster.Invalid, "there is already a file %s", path).
			WithHint("overwrite it with --force, or name another one:  muster share -o FILE")
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the page cannot be written: %w", err).WithHint("muster share -o FILE")
	}
	return nil
}

// sharedText says what a shared file has, and what was hidden in it.
func sharedText(f sharedFile) string {
	const layout = "2006-01-02 15:04"
	var w strings.Builder
	size, packed := fmt.Sprintf("%d kB", (f.Bytes+999)/1000), ""
	if f.IsCompressed {
		packed = ", its data compressed"
	}
	fmt.Fprintf(&w, "%s: one page of %s%s; open it in a browser\n", f.File, size, packed)
	until := "to " + f.EndedAt.Local().Format(layout)
	if f.IsUnderWay {
		until = "until now: it is under way"
	}
	fmt.Fprintf(&w, "the run of %s from %s %s\n", text.OneLine(string(f.Team)), f.StartedAt.Local().Format(layout),
		until)
	fmt.Fprintf(&w, "in it: %s, %s, %s, %s of conversations, %s, %s\n", text.Count(f.Members, "member"),
		text.Count(f.Tasks, "task"), text.Count(f.Diffs, "diff"), text.Count(f.Entries, "part"),
		text.Count(f.Mails, "mail"), text.Count(f.Events, "event"))
	fmt.Fprintf(&w, "hidden: keys in %s, where %s stands; the home directory in %s, where ~ stands\n",
		text.Count(f.Hidden, "place"), redact.Mark, text.Count(f.HomePaths, "path"))
	w.WriteString("all else is in it as it was said and written: read it before you pass it on\n")
	return w.String()
}
