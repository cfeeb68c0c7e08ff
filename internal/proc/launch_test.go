//go:build linux

package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

func sh(script string) Spec {
	return Spec{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "A=1"}}
}

func TestWhatAProgramGets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		spec Spec
		out  string
		exit int
	}{
		"output, both streams":  {sh("echo a; echo b >&2; echo c"), "a\nb\nc\n", 0},
		"exit status":           {sh("exit 7"), "", 7},
		"death by signal":       {sh("kill -TERM $$"), "", 128 + 15},
		"empty stdin":           {sh("cat; echo end"), "end\n", 0},
		"its directory":         {Spec{Argv: []string{"pwd"}, Dir: dir}, dir + "\n", 0},
		"its whole environment": {sh("echo $A,$HOME,${" + CallVar + ":+tagged}"), "1,,tagged\n", 0},
		"one tag, not an outer": {Spec{Argv: []string{"sh", "-c", "env | grep -c " + CallVar + "; env | grep -c outer"}, Env: []string{CallVar + "=outer"}}, "1\n0\n", 1},
		"default signals":       {sh("exec 2>/dev/null; for s in INT QUIT HUP TERM USR1; do sh -c \"kill -$s \\$\\$; echo ignored\"; done; echo $?"), "138\n", 0},
		"no terminal":           {sh("ps -o tty= -p $$ | tr -d ' '; (: </dev/tty) 2>/dev/null || echo none"), "?\nnone\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l Launcher) {
				var out bytes.Buffer
				c.spec.Out = &out
				exit, err := start(t, l, t.Context(), c.spec).Wait()
				if err != nil || exit != c.exit || out.String() != c.out {
					t.Errorf("exit %d, error %v, output %q; want exit %d, output %q", exit, err, out.String(), c.exit, c.out)
				}
			})
		})
	}
}

// With a file of its own for stderr, Out gets stdout alone.
func TestStderrOfItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l Launcher) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		var out bytes.Buffer
		s := sh("echo a; echo b >&2; echo c")
		s.Out, s.Err = &out, w
		exit, err := start(t, l, t.Context(), s).Wait()
		if _ = w.Close(); err != nil || exit != 0 || out.String() != "a\nc\n" {
			t.Errorf("exit %d, error %v, stdout %q", exit, err, out.String())
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "b\n" {
			t.Errorf("stderr is %q, error %v", text, err)
		}
	})
}

func TestStdinAndFiles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l Launcher) {
		var out bytes.Buffer
		long := strings.Repeat("0123456789", 1<<20/10*3)
		s := sh("cat")
		s.Stdin, s.Out = strings.NewReader(long), &out
		if exit, err := start(t, l, t.Context(), s).Wait(); err != nil || exit != 0 || out.String() != long {
			t.Errorf("through pipes: exit %d, error %v, %d bytes of %d", exit, err, out.Len(), len(long))
		}
		// A reader that nobody reads to its end, or that never ends, holds nobody up.
		r, w := io.Pipe()
		defer w.Close()
		s = sh("exit 3")
		s.Stdin = r
		ends(t, start(t, l, t.Context(), s), 3)
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		require.NoError(t, err)
		defer f.Close()
		s = sh("cat; echo file")
		s.Stdin, s.Out = strings.NewReader("in "), f
		if _, err := start(t, l, t.Context(), s).Wait(); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(f.Name()); string(got) != "in file\n" {
			t.Errorf("file: %q", got)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortBuffer }

func TestOutThatFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l Launcher) {
		s := sh("yes")
		s.Out = full{}
		exit, err := start(t, l, t.Context(), s).Wait()
		if !errors.Is(err, io.ErrShortBuffer) || exit != 128+13 {
			t.Errorf("exit %d, error %v; want the writer's error and death by SIGPIPE", exit, err)
		}
	})
}

func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	for name, c := range map[string]struct {
		spec Spec
		want error
		say  string
	}{
		"no such program":    {Spec{Argv: []string{"no-such-program"}}, muster.ErrNotFound, `there is no program "no-such-program" in PATH`},
		"no such path":       {Spec{Argv: []string{"/no/such/program"}}, muster.ErrNotFound, "cannot start /no/such/program: no such file or directory"},
		"no such directory":  {Spec{Argv: []string{"sh"}, Dir: "/no/such/dir"}, muster.ErrNotFound, "cannot start sh: there is no directory /no/such/dir"},
		"not executable":     {Spec{Argv: []string{plain}}, muster.ErrInvalid, "cannot start " + plain + ": permission denied"},
		"nothing":            {Spec{}, muster.ErrInvalid, "no program was named"},
		"too many arguments": {Spec{Argv: []string{"true", strings.Repeat("x", 1<<20)}}, muster.ErrInvalid, "cannot start true: argument list too long"},
		"a NUL":              {Spec{Argv: []string{"true", "a\x00b"}}, muster.ErrInvalid, "an argument of true contains a NUL byte"},
		"a relative PATH":    {Spec{Argv: []string{"plain"}, Dir: filepath.Dir(plain), Env: []string{"PATH=.:"}}, muster.ErrNotFound, `there is no program "plain" in PATH`},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l Launcher) {
				_, err := l.Start(t.Context(), c.spec)
				if !errors.Is(err, c.want) || err.Error() != c.say {
					t.Errorf("got %q (%v), want %q", err, errors.Is(err, c.want), c.say)
				}
			})
		})
	}
	each(t, func(t *testing.T, l Launcher) {
		_, err := l.Start(t.Context(), Spec{Argv: []string{"/no/such/program"}})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the cause is lost: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(muster.CauseUser)
		if _, err := l.Start(ctx, sh("exit")); !errors.Is(err, muster.CauseUser) {
			t.Errorf("after the end of ctx: %v", err)
		}
		require.NoError(t, l.Close())
		if _, err := l.Start(t.Context(), sh("exit")); !errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestArgumentsAreLimitedByTheSystemOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l Launcher) {
		var out bytes.Buffer
		s := Spec{Argv: []string{"sh", "-c", `echo $# ${#A}`, "sh"}, Out: &out}
		for range 8 {
			s.Argv = append(s.Argv, strings.Repeat("x", 100_000))
		}
		s.Env = []string{"A=" + strings.Repeat("y", 120_000)}
		if exit, err := start(t, l, t.Context(), s).Wait(); err != nil || exit != 0 || out.String() != "8 120000\n" {
			t.Errorf("exit %d, error %v, output %q", exit, err, out.String())
		}
	})
}

// TestNothingLeaks: after many starts, ten at a time, everything is as before.
func TestNothingLeaks(t *testing.T) {
	each(t, func(t *testing.T, l Launcher) {
		count := func() (descriptors, goroutines, processes int) {
			pids := children(os.Getpid())
			if g, ok := l.(*Guard); ok {
				below := children(g.PID())
				pids = append(pids, below...)
				descriptors = len(numbers("/proc/" + itoa(g.PID()) + "/fd"))
			}
			return descriptors + len(numbers("/proc/self/fd")), runtime.NumGoroutine(), len(pids)
		}
		run := func() {
			var out bytes.Buffer
			s := sh("cat; exit 5")
			s.Stdin, s.Out = strings.NewReader("x"), &out
			p, err := l.Start(t.Context(), s)
			if err != nil {
				t.Error(err)
				return
			}
			if exit, err := p.Wait(); exit != 5 || err != nil || out.String() != "x" {
				t.Errorf("exit %d, error %v, output %q", exit, err, out.String())
			}
		}
		run()
		d0, g0, p0 := count()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range tier.Amount(5, 20) {
					run()
				}
			})
		}
		all.Wait()
		wait.For(t, "as before", func() bool {
			d, g, p := count()
			return d <= d0 && g <= g0 && p <= p0
		})
	})
}

func TestKillAndWaitFromManySides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l Launcher) {
		p := start(t, l, t.Context(), sh("sleep 100"))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := p.Kill(); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				ends(t, p, 137)
			})
		}
		all.Wait()
		if err := p.Kill(); err != nil {
			t.Errorf("killing the dead: %v", err)
		}
	})
}
