package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/lazyregexp"
	"muster/internal/proc"
	"muster/internal/text"
)

// To make namespaces takes several times as long as to start a program in them. So when a sandbox is asked for again
// soon after another one that shows the same, a third is started ahead. In it a shell waits for its one command, which
// takes the shell's place: no two commands ever share a sandbox.
//
// A sandbox that was started ahead is a program of its launcher like any other, and dies with it. It is used only by a
// command that fits it in all but its arguments, and while every path in its rules leads to what it led to before the
// sandbox was started.

const (
	idle = 10 * time.Second // how long a sandbox waits for its command
	// pause is how long after the start of a command the next sandbox is made. Most commands are short, and would be
	// slower beside that.
	pause = 15 * time.Millisecond
)

// sandboxID says what a sandbox shows, and how and where its program runs.
type sandboxID struct {
	launcher proc.Launcher
	shows    string
}

// sandboxFor returns the identity of a sandbox for s. args are the arguments that make it by the rules.
func sandboxFor(l proc.Launcher, s proc.Spec, args []string, r Rules) sandboxID {
	parts := slices.Concat(args, []string{fmt.Sprint(s.Limits)}, s.Env)
	for _, x := range r {
		parts = append(parts, identity(x.Path), identity(x.From))
	}
	return sandboxID{l, strings.Join(parts, "\x00")}
}

type ahead struct {
	mu    sync.Mutex
	asked map[sandboxID]*request
}

// request is for a kind of sandbox that was asked for in the last time.
type request struct {
	next   *waiting    // nil: none was started yet
	forget *time.Timer // removes the request
}

// starter starts a program in a new sandbox.
type starter func(ctx context.Context, s proc.Spec) (proc.Process, error)

func (a *ahead) start(ctx context.Context, s proc.Spec, id sandboxID, begin starter) (proc.Process, error) {
	if !canWait(s) {
		return begin(ctx, s)
	}
	next, isAgain := a.take(id)
	if isAgain {
		late := context.WithoutCancel(ctx)
		time.AfterFunc(pause, func() {
			if w, err := newWaiting(late, s, begin); err == nil { // else the next command says what is wrong
				a.put(id, w)
			}
		})
	}
	if next != nil && next.give(s) {
		release := context.AfterFunc(ctx, func() { _ = next.Kill() })
		return proc.Then(next, func(exit int, err error) (int, error) {
			if !release() {
				err = context.Cause(ctx)
			}
			return exit, err
		}), nil
	}
	return begin(ctx, s)
}

// take returns the sandbox that waits for its command, if there is one. isAgain says that such a one was asked for in
// the last time.
func (a *ahead) take(id sandboxID) (next *waiting, isAgain bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.asked[id]; r != nil {
		r.forget.Reset(idle)
		next, r.next = r.next, nil
		return next, true
	}
	a.asked[id] = &request{forget: time.AfterFunc(idle, func() { a.forget(id) })}
	return nil, false
}

// put keeps a sandbox for the next command, where there is none.
func (a *ahead) put(id sandboxID, w *waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.asked[id]; r != nil && r.next == nil {
		r.next = w
	} else {
		_ = w.Kill()
	}
}

// forget ends a sandbox that nothing has asked for.
func (a *ahead) forget(id sandboxID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.asked[id]; r != nil && r.next != nil {
		_ = r.next.Kill()
	}
	delete(a.asked, id)
}

// shellVariable is a variable whose name is one of a shell.
var shellVariable = lazyregexp.New("^[A-Za-z_][A-Za-z0-9_]*(=|$)")

// canWait reports whether a shell that was started before can become the program of s. It has read the environment, and
// may have dropped other variables than those of a shell.
func canWait(s proc.Spec) bool {
	_, isFile := s.Out.(*os.File)
	isOther := func(kv string) bool { return !shellVariable().MatchString(kv) }
	return s.Stdin == nil && s.Err == nil && !isFile && len(s.Argv) > 0 && !strings.HasPrefix(s.Argv[0], "-") &&
		!slices.ContainsFunc(s.Env, isOther)
}

type waiting struct {
	proc.Process
	command *io.PipeWriter
	out     lateWriter
	ended   chan struct{} // closed when the outcome is final
}

// newWaiting starts a sandbox for a program like that of s.
func newWaiting(ctx context.Context, s proc.Spec, begin starter) (w *waiting, err error) {
	w = &waiting{ended: make(chan struct{})}
	var script *io.PipeReader
	script, w.command = io.Pipe()
	s.Argv, s.Stdin, s.Out = []string{"/bin/sh"}, script, &w.out
	if w.Process, err = begin(ctx, s); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.ended)
		_, _ = w.Process.Wait()
		_ = script.Close() // ends what writes the command
	}()
	return w, nil
}

// give gives the sandbox its command; ok is false where the sandbox has ended.
func (w *waiting) give(s proc.Spec) (ok bool) {
	select {
	case <-w.ended:
		return false
	default:
	}
	w.out.Store(new(cmp.Or[io.Writer](s.Out, io.Discard)))
	script := "exec"
	for _, arg := range s.Argv {
		script += " " + text.ShellQuote(arg)
	}
	go func() { // the shell may not read yet
		_, _ = io.WriteString(w.command, script+" </dev/null\n")
		_ = w.command.Close()
	}()
	return true
}

// lateWriter writes to where it is told to, and discards what comes before: a sandbox that has something to say while
// it is made ends, and is not used.
type lateWriter struct{ atomic.Pointer[io.Writer] }

func (w *lateWriter) Write(data []byte) (int, error) {
	if out := w.Load(); out != nil {
		return (*out).Write(data)
	}
	return len(data), nil
}
