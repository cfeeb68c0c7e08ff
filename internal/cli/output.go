package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/printed"
	"muster/internal/view"
)

// screen returns how to print to w: in colour only on a terminal, and never with NO_COLOR. Colour also depends on
// --no-color and on a terminal that can show it. Inside a conversation the shape is that of the conversation's
// terminal, because what the command prints is collected first.
func (a *App) screen(w io.Writer) view.Screen {
	if a.screenShape != nil {
		return *a.screenShape
	}
	width, isTerminal := view.TerminalWidth(w)
	// TERM=dumb is the convention for a terminal that understands no control sequences.
	colour := isTerminal && !a.noColor && !a.plain && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
	s := view.Screen{Width: width}
	if colour {
		s.Paint = view.Colours(func() []muster.Name {
			if a.joined == nil { // no team is open
				return nil
			}
			return a.joined()
		})
		// A multiplexer hands COLORTERM on, whatever it can do itself.
		isOwn := !strings.HasPrefix(a.env("TERM"), "screen") && !strings.HasPrefix(a.env("TERM"), "tmux")
		if c := a.env("COLORTERM"); isOwn && (c == "truecolor" || c == "24bit") {
			s.Paint = s.Paint.InFull()
		}
		s.Paint.OnLight(isLight(a.env("COLORFGBG")))
	}
	return s
}

// isLight reports whether COLORFGBG, which some terminals set, tells of a light ground: "15;0" is white on black.
func isLight(colours string) bool {
	ground := colours[strings.LastIndex(colours, ";")+1:]
	return ground == "7" || ground == "15"
}

// isPlain reports whether nothing may be redrawn or rung: for screen readers, and for terminals that cannot do it.
func isPlain(a *App) bool { return a.plain || a.env("TERM") == "dumb" }

// liveScreen returns how the progress of a run is shown on standard error: where nothing may be redrawn, as in a pipe.
func liveScreen(a *App) view.Screen {
	s := a.screen(a.Stderr)
	if isPlain(a) {
		s.Width = 0
	}
	return s
}

// notifier returns the function that tells the user at the terminal that something needs them, or nil where there is
// none or the user does not want it. write writes to the terminal.
func notifier(a *App, setting string, write func(string)) func(words string) {
	// A file or a pipe that got a bell would hold it as a character.
	ring := view.Notifier(setting, a.env)
	if _, isTerminal := view.TerminalWidth(a.Stderr); !isTerminal || isPlain(a) || ring == nil {
		return nil
	}
	return func(words string) { write(ring(words)) }
}

// print writes v to standard output: as JSON with --json, and otherwise as text does. Every command prints its
// result with it, so --json works everywhere and both forms come from the same value.
func (a *App) print(v any, text func(view.Screen) string) error {
	if !a.json {
		// One write, so that a reader of a pipe never sees a part of the text.
		_, err := io.WriteString(a.Stdout, text(a.screen(a.Stdout)))
		return err
	}
	data, err := printed.Document(v)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(data)
	return err
}

// printLine writes v as JSON with --json, and otherwise one line. It is for commands that change one thing and say
// so. An error of the change is returned, and nothing is printed.
func (a *App) printLine(v any, err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return a.print(v, func(view.Screen) string { return fmt.Sprintf(format+"\n", args...) })
}

// writeEvent writes an event as one line of JSON.
func writeEvent(w io.Writer, e muster.Event) error {
	line, err := printed.Line(e)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// build is which program this is. It is printed by muster version and stands in the log.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go,omitempty"`
	Revision string `json:"revision,omitempty"`
}

// thisBuild returns which program this is, as far as the go command has recorded it in the program. A program that
// was built outside of a repository has no revision.
func thisBuild() build {
	b := build{Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version, b.Go = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

// newVersionCommand returns muster version. The revision is cut for people and whole in JSON.
func newVersionCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "which muster this is", Args: namedArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			line := "muster " + b.Version
			if b.Revision != "" {
				line += " " + b.Revision[:min(len(b.Revision), 12)]
			}
			return a.printLine(b, nil, "%s %s", line, b.Go)
		}}
}

// list returns the function of a command that lists what read returns: as JSON, or as a table. Where there is nothing
// to list, it prints the sentence none in place of an empty table. Where there is no team, nothing is listed.
func list[T any](
	a *App, none string, read func(context.Context, opened) ([]T, error), table func([]T) view.Table,
) func(*cobra.Command, []string) error {
	printAll := func(all []T) error {
		// JSON shows [] where there is nothing, so that a program can always iterate.
		return a.print(append([]T{}, all...), func(s view.Screen) string {
			if len(all) == 0 {
				return none + "\n"
			}
			return table(all).Draw(s)
		})
	}
	return a.looking(func() error { return printAll(nil) }, func(c *cobra.Command, o opened, _ []string) error {
		all, err := read(c.Context(), o)
		if err != nil {
			return err
		}
		return printAll(all)
	})
}
