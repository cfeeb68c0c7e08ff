package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"muster/internal/durable"
	"muster/internal/text"
)

// instructionFiles are the names of the files in which a project tells agents what to do. Of a directory, the first
// that can be read counts.
var instructionFiles = []string{"AGENTS.md", "CLAUDE.md"}

// The limits of instructions. The first holds for the file of the root, the second for that of any other directory.
const (
	MaxInstructions       = 32 << 10
	MaxNestedInstructions = 12 << 10
)

// Instructions returns what the project tells agents about a directory: its AGENTS.md, or its CLAUDE.md where there is
// none, as a model reads it. dir is relative to root, "" for root itself. The text is "" if there is neither file.
//
// The file is foreign text: no more than limit bytes of it are read, its marks are escaped, and no link on the way is
// followed, so that a repository cannot show a model a file of the user. Where a file is cut or left out the text says
// so, because whoever follows half of the rules must know that there are others.
func Instructions(root, dir string, limit int64) string {
	var refused string
	for _, name := range instructionFiles {
		rel := path.Join(filepath.ToSlash(dir), name)
		text, size, err := readHead(root, rel, limit)
		switch {
		case err == nil && strings.TrimSpace(text) == "":
		case err == nil:
			if size > limit {
				text += fmt.Sprintf("\n[cut: %d of %d bytes; read_file shows the rest]", limit, size)
			}
			return fmt.Sprintf("<instructions file=%q>\n%s\n</instructions>", rel, text)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case refused == "":
			refused = fmt.Sprintf("<instructions file=%q>\n[not read: %v]\n</instructions>", rel, cause(err))
		}
	}
	return refused
}

// errNotText is the error for a file of instructions that is binary.
var errNotText = errors.New("it is not text")

// readHead returns the first limit bytes of a file below root as text for a model, and the file's size.
func readHead(root, rel string, limit int64) (head string, size int64, err error) {
	f, err := durable.OpenBelow(root, filepath.Join(root, filepath.FromSlash(rel)), os.O_RDONLY, 0)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", 0, err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", 0, errNotText
	}
	head = text.Clean(strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), ""))
	return text.EscapeTags(strings.TrimSpace(head)), fi.Size(), nil
}

// cause returns an error without the path of this machine.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
