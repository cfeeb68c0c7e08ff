package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// patience is how long a screen may take to show what is waited for.
const patience = 2 * time.Minute

// terminal is a tmux server with one window of a fixed size, in which a shell waits whose prompt is "$ ".
type terminal struct {
	socket string
	env    []string
}

// openTerminal starts a terminal of columns by rows in dir, with bin first in the shell's PATH.
func openTerminal(ctx context.Context, at, dir, bin string, columns, rows int) (*terminal, error) {
	rc := filepath.Join(at, "rc")
	text := "PS1='$ '\nPATH=" + bin + ":$PATH\n"
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		return nil, err
	}
	t := &terminal{socket: filepath.Join(at, "socket")}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TMUX") && !strings.HasPrefix(v, "MUSTER_") {
			t.env = append(t.env, v)
		}
	}
	// The user's own settings, keys and colours are left out: the pictures show what everybody gets.
	t.env = append(t.env, "ENV="+rc, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "HOME="+at, "XDG_CONFIG_HOME="+at,
		"XDG_STATE_HOME="+filepath.Join(at, "state"), "TZ=UTC", "NO_COLOR=", "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=",
		"MUSTER_MODEL=script/../team.yaml", "GIT_AUTHOR_NAME=you", "GIT_AUTHOR_EMAIL=you@example.org",
		"GIT_COMMITTER_NAME=you", "GIT_COMMITTER_EMAIL=you@example.org")
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // they hang on HOME otherwise
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return nil, err
		}
		t.env = append(t.env, name+"="+strings.TrimSpace(string(value)))
	}
	_, err := t.tmux(ctx, "new-session", "-d", "-c", dir, "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows),
		"exec sh -i")
	if err == nil {
		_, err = t.wait(ctx, `\$ $`)
	}
	return t, err
}

// close ends the server, and with it what runs in the window.
func (t *terminal) close(ctx context.Context) {
	_, _ = t.tmux(context.WithoutCancel(ctx), "kill-server")
}

// tmux runs a tmux command and returns what it prints.
func (t *terminal) tmux(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", t.socket, "-f", "/dev/null"}, args...)...)
	c.Env = t.env
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args, err, out)
	}
	return string(out), nil
}

// line types text and Enter.
func (t *terminal) line(ctx context.Context, text string) error {
	_, err := t.tmux(ctx, "send-keys", "-l", text)
	if err == nil {
		_, err = t.tmux(ctx, "send-keys", "Enter")
	}
	return err
}

// screen returns the lines that are seen, with their colours as escape sequences.
func (t *terminal) screen(ctx context.Context) ([]string, error) {
	text, err := t.tmux(ctx, "capture-pane", "-p", "-e")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), err
}

// wait waits until the screen without its colours fits a pattern, in which $ is the end of the screen.
func (t *terminal) wait(ctx context.Context, pattern string) ([]string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(step) {
		lines, err := t.screen(ctx)
		if err != nil {
			return nil, err
		}
		text := plain(lines)
		if strings.HasSuffix(text, "$") {
			text += " " // the prompt's
		}
		if re.MatchString(text) {
			return lines, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("the screen never fitted %q:\n%s", pattern, text)
		}
	}
}

// step is the time between two looks at the screen.
const step = 100 * time.Millisecond

// frame is what the screen shows from a moment on.
type frame struct {
	at    time.Duration
	lines []string
}

// shortest is how long each frame is shown at least: a demo on a fast machine would be over before it is read.
const shortest = 400 * time.Millisecond

// record returns how the screen changes until it fits a pattern. Pauses are made shorter than longest, because nobody
// wants to watch a compiler.
func (t *terminal) record(ctx context.Context, until string, longest time.Duration) ([]frame, error) {
	re, err := regexp.Compile(until)
	if err != nil {
		return nil, err
	}
	var frames []frame
	var at time.Duration
	last := time.Now()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(step) {
		lines, err := t.screen(ctx)
		if err != nil {
			return nil, err
		}
		if len(frames) > 0 && strings.Join(lines, "\n") == strings.Join(frames[len(frames)-1].lines, "\n") {
			continue
		}
		now := time.Now()
		if len(frames) > 0 {
			at += max(shortest, min(now.Sub(last), longest))
		}
		last = now
		frames = append(frames, frame{at, lines})
		if re.MatchString(plain(lines)) {
			return frames, nil
		}
	}
	return nil, fmt.Errorf("the screen never fitted %q:\n%s", until, plain(frames[len(frames)-1].lines))
}

// escape finds the sequences that set colours; tmux writes no others.
var escape = regexp.MustCompile("\x1b\\[([0-9;:]*)m|\x1b[()]B|\x0f|\x0e")

// plain returns the text of a screen without its colours and without blanks at the end.
func plain(lines []string) string {
	bare := make([]string, len(lines))
	for i, l := range lines {
		bare[i] = strings.TrimRight(escape.ReplaceAllString(l, ""), " ")
	}
	return strings.TrimRight(strings.Join(bare, "\n"), "\n")
}
