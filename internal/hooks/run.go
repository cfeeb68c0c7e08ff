package hooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/journal"
)

// The limits of what a hook prints. One that prints more than maxPrinted is killed, and of less the beginning is read.
const (
	maxPrinted = 1 << 20
	maxRead    = 64 << 10
	// stderrGrace is how long the rest of what a dead hook has printed is waited for.
	stderrGrace = 2 * time.Second
)

// errTooMuch is the error of a hook that has printed too much.
var errTooMuch = fmt.Errorf("it printed more than %d MB", maxPrinted>>20)

// errTimeout is the cause of a context that ended because of the hook's time limit.
var errTimeout = errors.New("the hook took too long")

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	hooks    []Hook
	root     string
	secrets  *redact.Secrets
	launcher proc.Launcher // nil before Start
	foreign  proc.Launcher // starts the hooks that the repository brings
	journal  *journal.Journal
	ending   context.Context // of async hooks
	end      context.CancelFunc
	running  sync.WaitGroup // async hooks

	mu    sync.Mutex
	async []*asyncHook // that run now
}

// asyncHook is an async hook that runs.
type asyncHook struct {
	dir    string
	cancel context.CancelFunc
	done   chan struct{}
}

// settleGrace is how long async hooks may go on in a directory that is to stay as it is.
const settleGrace = time.Second

// NewRunner returns what runs those of the hooks that have no problem, and nil if there are none. root is the root of
// the repository. The runner runs nothing before Start.
func NewRunner(all []Hook, root string, secrets *redact.Secrets) *Runner {
	all = slices.DeleteFunc(slices.Clone(all), func(h Hook) bool { return h.Problem != "" })
	if len(all) == 0 {
		return nil
	}
	return &Runner{hooks: all, root: root, secrets: secrets}
}

// Start sets what starts the user's own hooks and those that the repository brings, and where it is said that they have
// run. Nothing else is called before it returns.
func (r *Runner) Start(own, foreign proc.Launcher, j *journal.Journal) {
	if r != nil {
		r.launcher, r.foreign, r.journal = own, foreign, j
		r.ending, r.end = context.WithCancel(context.Background())
	}
}

// End ends the async hooks that still run, and waits for them. No hook runs after it until Start.
func (r *Runner) End() {
	if r != nil && r.end != nil {
		r.end()
		r.running.Wait()
	}
}

// Settle waits for the async hooks that run in a directory, and ends those that still run after a while: nothing may
// write there when it returns.
func (r *Runner) Settle(ctx context.Context, dir string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	here := slices.DeleteFunc(slices.Clone(r.async), func(h *asyncHook) bool { return h.dir != dir })
	r.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	for _, h := range here {
		select {
		case <-h.done:
		case <-limited.Done():
			h.cancel()
			<-h.done
		}
	}
}

// Has reports whether there are hooks for an event that is about one of the names; without names, whatever it is about.
func (r *Runner) Has(event Event, names ...string) bool {
	return r != nil && slices.ContainsFunc(r.hooks, func(h Hook) bool { return h.Event == event && h.matches(names) })
}

// Moment is what happens when hooks run.
type Moment struct {
	Event  Event
	Names  []string       // what the event is about, for matchers
	Fields map[string]any // what hooks are told of it, beside what they are always told
	Member muster.Name
	Team   muster.Name
	Task   muster.TaskID // 0: none
	Dir    string        // where the hooks run; "" is the root of the repository
	Env    []string      // the environment of the hooks
}

// Run runs the hooks of a moment, one after another, until one blocks. Each is told the input as those before want it.
// The error is that of ctx, whose end kills the hook that runs.
func (r *Runner) Run(ctx context.Context, m Moment) (all Outcome, err error) {
	if !r.Has(m.Event, m.Names...) || r.launcher == nil {
		return Outcome{}, nil
	}
	m.Dir = cmp.Or(m.Dir, r.root)
	var done []string
	for _, h := range r.hooks {
		// The same command in two files is meant once.
		what := h.what() + ": " + h.Command
		if h.Event != m.Event || !h.matches(m.Names) || slices.Contains(done, what) || !h.isFor(m) {
			continue
		}
		done = append(done, what)
		if h.Async {
			r.inBackground(ctx, h, m)
			continue
		}
		o, err := r.one(ctx, h, m)
		if err != nil {
			return all, err
		}
		all.Context = append(all.Context, o.Context...)
		if o.Input != nil {
			all.Input = o.Input
			m.Fields = maps.Clone(m.Fields)
			m.Fields["tool_input"] = o.Input
		}
		if all.Blocked, all.Reason = o.Blocked, o.Reason; o.Blocked {
			break
		}
	}
	return all, nil
}

// inBackground runs a hook that nothing waits for. It may outlive the moment, and not the run.
func (r *Runner) inBackground(ctx context.Context, h Hook, m Moment) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(r.ending, cancel) //nolint:contextcheck // It ends with the run.
	now := &asyncHook{dir: m.Dir, cancel: cancel, done: make(chan struct{})}
	r.mu.Lock()
	r.async = append(r.async, now)
	r.mu.Unlock()
	r.running.Go(func() {
		_, _ = r.one(ctx, h, m) // it decides nothing
		stop()
		cancel()
		r.mu.Lock()
		r.async = slices.DeleteFunc(r.async, func(h *asyncHook) bool { return h == now })
		r.mu.Unlock()
		close(now.done)
	})
}

// one runs one hook, and says in the journal what came of it.
func (r *Runner) one(ctx context.Context, h Hook, m Moment) (Outcome, error) {
	began := time.Now()
	result, err := r.exec(ctx, h, m)
	if cause := context.Cause(ctx); cause != nil {
		return Outcome{}, cause
	}
	var o Outcome
	message, problem := "", ""
	broken := err != nil && !errors.Is(err, errTimeout) && !errors.Is(err, errTooMuch) || result.isBroken()
	switch {
	case errors.Is(err, errTimeout):
		problem = fmt.Sprintf("it did not end within %s", clock.Duration(h.Timeout))
	case err != nil:
		problem = err.Error()
	case result.exit != 0 && result.exit != 2:
		line, _, _ := strings.Cut(strings.TrimSpace(result.stderr), "\n")
		problem = strings.TrimSuffix(fmt.Sprintf("exit %d: %s", result.exit, clean(line)), ": ")
	default:
		if o, message, err = result.decide(h.Event); err != nil {
			o, problem = Outcome{}, "what it printed is no JSON that muster can read: "+err.Error()
		}
	}
	if broken && h.isGuard() && !h.MayBreak {
		o = Outcome{Blocked: true, Reason: "the hook cannot start (" + problem +
			"): mend it, or set broken_hooks: pass in your own config.yaml"}
		problem = ""
	}
	if h.Async {
		o = Outcome{}
	}
	fields := map[string]any{"hook": string(h.Event), "command": h.Gist(), "file": h.File, "exit": result.exit,
		"seconds": time.Since(began).Seconds(), "outcome": "ok"}
	switch {
	case problem != "":
		fields["outcome"] = "failed"
	case o.Blocked:
		fields["outcome"] = "blocked"
	case o.Input != nil:
		fields["outcome"] = "changed"
	}
	if text := cmp.Or(problem, o.Reason, message); text != "" {
		fields["text"] = text
	}
	// Nothing depends on the journal.
	_ = r.journal.Emit(context.WithoutCancel(ctx),
		muster.Event{Kind: journal.HookRan, Member: m.Member, Task: m.Task, Fields: fields})
	return o, nil
}

// input returns what a hook reads.
func (r *Runner) input(m Moment) ([]byte, error) {
	in := map[string]any{"hook_event_name": m.Event, "cwd": m.Dir, "permission_mode": "default",
		"session_id": string(m.Member) + "@" + string(m.Team), "team_name": m.Team, "teammate_name": m.Member}
	if m.Task != 0 {
		in["task_id"] = strconv.Itoa(int(m.Task))
	}
	maps.Copy(in, m.Fields)
	return json.Marshal(in)
}

// exec runs a command to its end, with everything that it starts.
func (r *Runner) exec(ctx context.Context, h Hook, m Moment) (result ended, err error) {
	data, err := r.input(m)
	if err != nil {
		return result, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, h.Timeout, errTimeout)
	defer cancel()
	reader, writer, err := os.Pipe()
	if err != nil {
		return result, err
	}
	defer reader.Close()
	var stdout, stderr printed
	launcher := r.launcher
	if h.needsTrust {
		launcher = r.foreign
	}
	process, err := launcher.Start(limited, proc.Spec{Argv: h.argv(r.root), Dir: m.Dir,
		Env: proc.WithVariables(m.Env, r.variables(h, m)...), Stdin: bytes.NewReader(data), Out: &stdout, Err: writer})
	_ = writer.Close() // the hook has its own
	if err != nil {
		return result, err
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(&stderr, reader)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			_ = process.Kill()
		}
		copied <- err
	}()
	result.exit, err = process.Wait()
	_ = reader.SetReadDeadline(time.Now().Add(stderrGrace)) // a process that could not be killed may hold the pipe
	if copyErr := <-copied; errors.Is(copyErr, errTooMuch) {
		err = copyErr
	}
	result.stdout, result.stderr = r.secrets.String(stdout.kept.String()), r.secrets.String(stderr.kept.String())
	return result, err
}

// variables returns the variables of a hook.
func (r *Runner) variables(h Hook, m Moment) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h.Env)) {
		all = append(all, name+"="+inProject(h.Env[name], r.root))
	}
	return append(all, "PWD="+m.Dir, "CLAUDE_PROJECT_DIR="+r.root)
}

// argv returns the program of a hook with its arguments. A shell starts each, so that all fail alike.
func (h Hook) argv(root string) []string {
	if h.Args == nil && h.Cwd == "" {
		return h.shell(h.Command)
	}
	script, values := `exec "$@"`, []string{}
	if h.Args == nil {
		values = h.shell(h.Command)
	} else {
		for _, value := range append([]string{h.Command}, h.Args...) {
			values = append(values, inProject(value, root))
		}
	}
	if h.Cwd != "" {
		script = `cd -- "$1" || exit 126; shift; ` + script
		values = append([]string{inProject(h.Cwd, root)}, values...)
	}
	return slices.Concat(h.shell(script), []string{"hook"}, values)
}

// shell returns what runs a script. People write for bash, and say so where they do not.
func (h Hook) shell(script string) []string {
	if h.Shell == "sh" {
		return proc.Shell(script)
	}
	return proc.Bash(script)
}

// inProject returns a text with the root of the repository in place of its variable, where no shell reads it.
func inProject(text, root string) string {
	return strings.NewReplacer("${CLAUDE_PROJECT_DIR}", root, "$CLAUDE_PROJECT_DIR", root).Replace(text)
}

// printed keeps the beginning of what a hook prints, and fails when it prints too much.
type printed struct {
	kept bytes.Buffer
	size int
}

// Write keeps what fits.
func (p *printed) Write(data []byte) (int, error) {
	if p.size += len(data); p.size > maxPrinted {
		return 0, errTooMuch
	}
	_, _ = p.kept.Write(data[:min(len(data), max(0, maxRead-p.kept.Len()))])
	return len(data), nil
}
