// Command record makes the pictures of a terminal for the documentation: it runs the real program in tmux, looks at the
// screen, and writes what it shows as SVG into docs/images. The models are scripted (team.yaml, and what muster demo
// plays), and all else is real.
//
//	go run ./internal/docs/record          # all pictures; takes about a minute
//	go run ./internal/docs/record demo     # one of them
//
// It needs tmux. Colours follow the light or dark theme of the page that shows a picture, and the recording stands
// still for readers who do not want motion.
//
// Read in this order: main.go (which pictures there are), terminal.go (tmux), cells.go (colours), svg.go (drawing).
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed team.yaml
var team []byte

// The size of the recording and of the pictures.
const (
	columns = 100
	rows    = 30
)

// maxSize is how large a picture may be: a page with some of them must still load at once.
const maxSize = 200_000

func main() {
	out := flag.String("out", filepath.Join("docs", "images"), "the `DIRECTORY` for the pictures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// run makes the pictures with the given names, or all.
func run(ctx context.Context, out string, names []string) error {
	at, err := os.MkdirTemp("", "rec") // short: a socket's path may have 107 bytes
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(at) }()
	s := &session{at: at, bin: filepath.Join(at, "bin"), out: out}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.bin+string(filepath.Separator), "muster/cmd/muster")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the program cannot be built: %w\n%s", err, text)
	}
	makers := []struct {
		name string
		make func(context.Context) error
	}{{"demo", s.demo}, {"run", s.teamAtWork}, {"conversation", s.conversation}}
	for _, m := range makers {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		if err := m.make(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// session holds what the pictures share.
type session struct {
	at  string // a directory for all that is made, which is removed at the end
	bin string // the program's directory
	out string // the directory for the pictures
}

// demo records muster demo.
func (s *session) demo(ctx context.Context) error {
	t, err := s.open(ctx, "demo")
	if err != nil {
		return err
	}
	defer t.close(ctx)
	if err := t.line(ctx, "muster demo"); err != nil {
		return err
	}
	frames, err := t.record(ctx, `(?s)see it all:.*\$ ?$`, 1500*time.Millisecond)
	if err != nil {
		return err
	}
	return s.write("demo.svg", frames, "A recording of muster demo: a lead makes seven tasks, three teammates "+
		"take them, plans are approved, work is checked, comes back and lands")
}

// teamAtWork shows a run whose plan waits for the user, and how the other commands show the same team.
func (s *session) teamAtWork(ctx context.Context) error {
	t, err := s.repository(ctx, "run")
	if err != nil {
		return err
	}
	defer t.close(ctx)
	if err := t.line(ctx, `muster run "count the words of big files" --check "go test ./..."`); err != nil {
		return err
	}
	err = s.still(ctx, t, "run.svg", `(?s)lands .*takes  3 counter.*bash go test.*requests show`,
		"muster run: what happens, the members, and a plan that waits for you")
	if err != nil {
		return err
	}
	// The run goes on in its own window.
	if _, err := t.tmux(ctx, "new-window", "-c", filepath.Join(s.at, "run", "words"), "exec sh -i"); err != nil {
		return err
	}
	if _, err := t.wait(ctx, `^\$ $`); err != nil {
		return err
	}
	for _, look := range []struct{ command, file, pattern, title string }{
		{"muster status", "status.svg", `(?s)NEEDS YOU.*\$ $`,
			"muster status: the members, the board, and what needs you"},
		{"muster watch", "watch.svg", `(?s)NEEDS YOU.*1\. Read`,
			"muster watch: what needs you, the members and the board; on the right a plan"},
	} {
		if err := t.line(ctx, look.command); err != nil {
			return err
		}
		if err := s.still(ctx, t, look.file, look.pattern, look.title); err != nil {
			return err
		}
	}
	return nil
}

// conversation shows the opening screen, what was typed, and the team at work below it.
func (s *session) conversation(ctx context.Context) error {
	t, err := s.repository(ctx, "talk")
	if err != nil {
		return err
	}
	defer t.close(ctx)
	if err := t.line(ctx, `muster --check "go test ./..."`); err != nil {
		return err
	}
	if _, err := t.wait(ctx, `(?m)^> ?$`); err != nil {
		return err
	}
	if err := t.line(ctx, "count the words of big files"); err != nil {
		return err
	}
	return s.still(ctx, t, "conversation.svg", `(?s)asks +plan for.*takes  3 counter.*bash go test`,
		"muster: the opening screen, the conversation with the lead, and the team below it")
}

// repository opens a terminal in a new repository with a Go module.
func (s *session) repository(ctx context.Context, name string) (*terminal, error) {
	dir := filepath.Join(s.at, name, "words")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for file, text := range map[string][]byte{
		filepath.Join(dir, "go.mod"):           []byte("module words\n\ngo 1.26\n"),
		filepath.Join(dir, "words.go"):         []byte("// Package words counts words.\npackage words\n"),
		filepath.Join(s.at, name, "team.yaml"): team,
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=you", "-c", "user.email=you@example.org", "commit", "-q", "-m", "start"},
	} {
		git := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		if text, err := git.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("git %s: %w: %s", args, err, text)
		}
	}
	return openTerminal(ctx, filepath.Join(s.at, name), dir, s.bin, columns, rows)
}

// open opens a terminal in an empty directory.
func (s *session) open(ctx context.Context, name string) (*terminal, error) {
	dir := filepath.Join(s.at, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return openTerminal(ctx, dir, dir, s.bin, columns, rows)
}

// still waits for a screen and writes it as a picture.
func (s *session) still(ctx context.Context, t *terminal, file, pattern, title string) error {
	lines, err := t.wait(ctx, pattern)
	if err != nil {
		return err
	}
	for len(lines) > 0 && strings.Trim(plain(lines[len(lines)-1:]), "$") == "" { // empty, or the next prompt
		lines = lines[:len(lines)-1]
	}
	return s.write(file, []frame{{lines: lines}}, title)
}

// write writes a picture.
func (s *session) write(file string, frames []frame, title string) error {
	height := 0
	for _, f := range frames {
		height = max(height, len(f.lines))
	}
	text := draw(frames, columns, height, title)
	if len(text) > maxSize {
		return errors.New(file + " would be too large: " + fmt.Sprint(len(text)) + " bytes")
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	fmt.Printf("%s: %d frames, %d bytes\n", file, len(frames), len(text))
	return os.WriteFile(filepath.Join(s.out, file), []byte(text), 0o644)
}
