package code

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

// bashInput is the input of bash. Zero means the default for each optional field.
type bashInput struct {
	Command    string `json:"command"`
	Timeout    int    `json:"timeout,omitempty" jsonschema:"seconds, 120 by default, 600 at most"`
	Background bool   `json:"background,omitempty" jsonschema:"go on at once; its end is announced"`
	Workdir    string `json:"workdir,omitempty"`
}

// errTimeout is the cause when a command was killed at its time limit.
var errTimeout = errors.New("its time was up")

// bash checks the input and runs the command, in the foreground or as a background job. It is not confined:
// a command may do whatever the process may do. A command that only passes a patch to apply_patch is not run: the patch
// is applied as that tool does.
func (t toolset) bash(ctx context.Context, in bashInput) (llm.Result, error) {
	s, err := t.workdir(ctx)
	if err != nil {
		return tool.FromError(err)
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return llm.ErrorResult("command is empty."), nil
	case strings.ContainsRune(in.Command, 0):
		return llm.ErrorResult(
			"command contains a NUL byte, which no shell can take: write it as \\0 in printf."), nil
	case in.Timeout < 0:
		return llm.ErrorResult("timeout is negative: give seconds."), nil
	}
	if t.options.MayRun != nil {
		if err := t.options.MayRun(in.Command); err != nil {
			return tool.FromError(err)
		}
	}
	at := s.Start()
	if in.Workdir != "" {
		if at, err = s.directory(in.Workdir); err != nil {
			return tool.FromError(err)
		}
	}
	if patch, ok := patchOf(in.Command, in.Workdir); ok {
		said, err := t.patch(ctx, patchInput{Input: patch})
		if err != nil {
			return tool.FromError(err)
		}
		return tool.Text(said), nil
	}
	spec := s.Spec(t.options.Environ, proc.Bash(in.Command), at)
	if in.Background {
		return t.startBackground(ctx, in, spec)
	}
	tool.Progress(ctx)(firstLine(in.Command))
	return t.runForeground(ctx, spec, timeLimit(in.Timeout, t.options.BashTimeout, maxBashTimeout))
}

// runForeground runs a command to its end. The launcher kills everything that the command has started
// before Wait returns, so nothing outlives the call.
func (t toolset) runForeground(ctx context.Context, spec proc.Spec, limit time.Duration) (llm.Result, error) {
	out := NewOutput(t.options.Outputs, "bash").Below(t.options.Root)
	spec.Out = out
	// The time limit has a cause of its own, so that it is told from the end of the member.
	timed, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	p, err := t.launcher.Start(timed, spec)
	if err != nil {
		return startError(ctx, err)
	}
	// Wait returns the cause of the context if the command was killed. A time limit is for the model to
	// know; any other cause means that the member is to stop.
	exit, err := p.Wait()
	out.Done()
	timedOut, tooMuch := errors.Is(err, errTimeout), errors.Is(err, ErrTooMuchOutput)
	if err != nil && !timedOut && !tooMuch {
		return llm.Result{}, err
	}
	text := strings.TrimRight(out.Text(), "\n")
	switch {
	case tooMuch:
		text = joinLines(text, fmt.Sprintf("[killed with all it had started: %v]", ErrTooMuchOutput))
	case timedOut:
		text = joinLines(text, fmt.Sprintf("[killed with all it had started after %v: its time was up. "+
			"Give a longer timeout (at most %.0f), or run it in the background]", limit, maxBashTimeout.Seconds()))
	case exit != 0:
		text = joinLines(text, fmt.Sprintf("[exit %d%s]", exit, exitMeanings[exit]))
	case text == "":
		text = noOutput
	}
	r := llm.Result{IsError: exit != 0 || err != nil, Parts: []llm.Part{llm.Text{Text: text}}}
	if path := out.Path(); path != "" {
		r.Files = []string{path}
	}
	return r, nil
}

// startBackground starts a command as one of the member's jobs. The model is told when too many run already.
func (t toolset) startBackground(ctx context.Context, in bashInput, spec proc.Spec) (llm.Result, error) {
	limit := timeLimit(in.Timeout, t.options.BackgroundTimeout, maxBackgroundTimeout)
	out := NewOutput(t.options.Outputs, "background").Below(t.options.Root)
	id, err := t.jobs.Start(ctx, in.Command, spec, limit, out)
	switch {
	case errors.Is(err, muster.ErrHeld):
		return tool.FromError(err)
	case err != nil:
		return startError(ctx, err)
	}
	return tool.Text(fmt.Sprintf(
		"Started %s. Its end will be announced; check_background shows its output, or stops it.", id)), nil
}

// startError reports a command that did not start. The model can shorten a command that is too long for the
// system; it can do nothing about any other error.
func startError(ctx context.Context, err error) (llm.Result, error) {
	if ctx.Err() == nil && errors.Is(err, muster.ErrInvalid) {
		return llm.ErrorResult("%s: write what is long to a file with write_file, and pass its path.",
			tool.ErrorText(err)), nil
	}
	return llm.Result{}, err
}

// timeLimit returns how long a command may run: as many seconds as a call asks for, but at most longest.
// Where the options set a default above longest, a call may ask for as much as the default.
func timeLimit(seconds int, byDefault, longest time.Duration) time.Duration {
	if seconds == 0 {
		return byDefault
	}
	return min(time.Duration(seconds)*time.Second, max(longest, byDefault))
}

// joinLines puts b on a line of its own behind a, if neither is empty.
func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// exitMeanings says what an exit status means that the shell or the system has set, not the command itself.
// Models often take such a status for a failure of the command.
var exitMeanings = map[int]string{
	126: ": cannot be executed",
	127: ": command not found",
	137: ": killed, perhaps for want of memory",
	139: ": segmentation fault",
}

// CouldNotStart reports whether the result of a command says that the shell did not find it or could not start it.
func CouldNotStart(result string) bool {
	result = "\n" + result
	return strings.Contains(result, "\n[exit 126:") || strings.Contains(result, "\n[exit 127:")
}

// firstLine shortens a command to its first line, for a display of one line.
func firstLine(s string) string {
	const most = 200
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if line = text.OneLine(line); rest != "" && len(line) <= most {
		return line + " ..."
	}
	return text.CutBytes(line, most)
}

// Spec returns how a command starts in a directory at or below the working directory. base is as in Environ. The
// process starts in Dir, by which launchers know where the member works. The last argument is that of the command,
// which is what people see.
func (s Workdir) Spec(base, argv []string, at string) proc.Spec {
	spec := proc.Spec{Argv: argv, Dir: s.Dir, Env: environ(base, s.Dir, at)}
	if at != s.Dir {
		spec.Argv = append(proc.Bash("cd -- "+text.ShellQuote(at)+` || exit; exec "$0" "$@"`), argv...)
	}
	return spec
}

// Environ returns the environment of a command that runs in dir. base is what it may see of the user's
// (proc.Environment); nil is what it may see of this process's. Environ adds what keeps programs from waiting
// for a person, from using colours and from paging. Each name occurs once.
func Environ(_ context.Context, base []string, dir string) []string { return environ(base, dir, dir) }

// environ is Environ for a command that starts in a directory at or below dir.
func environ(base []string, dir, at string) []string {
	set := []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "EDITOR=true", "PAGER=cat", "GIT_PAGER=cat",
		"TERM=dumb", "NO_COLOR=1", "PWD=" + dir}
	// A lane may lie inside the repository. Go would then find the go.work above it and build the repository.
	for ; ; at = filepath.Dir(at) {
		if st, err := os.Lstat(filepath.Join(at, "go.work")); err == nil && st.Mode().IsRegular() {
			break
		}
		if len(at) <= len(dir) {
			set = append(set, "GOWORK=off")
			break
		}
	}
	if base == nil {
		base = proc.Environment(os.Environ(), nil)
	}
	return proc.WithVariables(base, set...)
}
