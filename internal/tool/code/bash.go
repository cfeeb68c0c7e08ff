package code

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/llm"
	"muster/tool"
)

type bashInput struct {
	Command    string `json:"command"`
	Timeout    int    `json:"timeout,omitempty" jsonschema:"seconds, 120 by default, 600 at most"`
	Background bool   `json:"background,omitempty" jsonschema:"go on at once; its end is announced"`
}

// errTimeout is the cause when a command's time is up.
var errTimeout = errors.New("its time was up")

func (t toolset) bash() llm.Tool {
	return tool.New("bash", "Run a command where you stand. What it leaves running is killed: use background for servers and long work.",
		func(ctx context.Context, in bashInput) (llm.Result, error) {
			s, err := t.stand(ctx)
			if err != nil {
				return tool.FromError(err)
			}
			switch {
			case strings.TrimSpace(in.Command) == "":
				return llm.ErrorResult("command is empty."), nil
			case strings.ContainsRune(in.Command, 0):
				return llm.ErrorResult("command contains a NUL byte, which no shell can take: write it as \\0 in printf."), nil
			case in.Timeout < 0:
				return llm.ErrorResult("timeout is negative: give seconds."), nil
			}
			spec := proc.Spec{Argv: proc.Bash(in.Command), Dir: s.Dir, Env: With(Environ(os.Environ(), s.Dir), s.Env...)}
			if in.Background {
				return t.inBackground(ctx, in, spec, s)
			}
			tool.Progress(ctx)(firstLine(in.Command))
			return t.inForeground(ctx, spec, limit(in.Timeout, t.options.BashTimeout, bashTimeoutMost), s)
		}, tool.NeedsPlan())
}

func (t toolset) inForeground(ctx context.Context, spec proc.Spec, limit time.Duration, s Standing) (llm.Result, error) {
	out := NewOutput(t.outputs(s), "bash")
	spec.Out = out
	timed, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	p, err := t.launcher.Start(timed, spec)
	if err != nil {
		return unstarted(ctx, err)
	}
	exit, err := p.Wait()
	out.Done()
	timeUp := errors.Is(err, errTimeout)
	if err != nil && !timeUp {
		return llm.Result{}, err
	}
	text := strings.TrimRight(out.Text(), "\n")
	r := llm.Result{IsError: exit != 0 || timeUp}
	switch {
	case timeUp:
		text = join(text, fmt.Sprintf("[killed with all it had started after %v: its time was up. Give a longer timeout (at most %d), or run it in the background]",
			limit, int(bashTimeoutMost.Seconds())))
	case exit != 0:
		text = join(text, fmt.Sprintf("[exit %d%s]", exit, meaning(exit)))
	case text == "":
		text = "[exit 0, no output]"
	}
	r.Parts = []llm.Part{llm.Text{Text: text}}
	if path := out.Path(); path != "" {
		r.Files = []string{path}
	}
	return r, nil
}

func (t toolset) inBackground(ctx context.Context, in bashInput, spec proc.Spec, s Standing) (llm.Result, error) {
	id, err := t.jobs.Start(ctx, in.Command, spec, limit(in.Timeout, t.options.BackgroundTimeout, backgroundMost), NewOutput(t.outputs(s), "background"))
	switch {
	case errors.Is(err, muster.ErrHeld):
		return tool.FromError(err)
	case err != nil:
		return unstarted(ctx, err)
	}
	return tool.Text(fmt.Sprintf("Started %s. Its end will be announced; check_background shows how it does, stop_background ends it.", id)), nil
}

// unstarted says what became of a command that did not start: a command too long for the system is the model's to mend.
func unstarted(ctx context.Context, err error) (llm.Result, error) {
	if ctx.Err() == nil && errors.Is(err, muster.ErrInvalid) {
		return llm.ErrorResult("%s: write what is long to a file with write_file, and pass its path.", tool.ErrorText(err)), nil
	}
	return llm.Result{}, err
}

// outputs is the directory for long outputs.
func (t toolset) outputs(s Standing) string {
	if t.options.Outputs != "" {
		return t.options.Outputs
	}
	return s.ReadOnly["outputs"]
}

func limit(asked int, usual, most time.Duration) time.Duration {
	if asked == 0 {
		return usual
	}
	return min(time.Duration(asked)*time.Second, max(most, usual))
}

func join(text, note string) string {
	if text == "" || note == "" {
		return text + note
	}
	return text + "\n" + note
}

// meaning says what the exit statuses mean that are not the command's own.
func meaning(exit int) string {
	switch exit {
	case 126:
		return ": cannot be executed"
	case 127:
		return ": command not found"
	case 137:
		return ": killed, perhaps for want of memory"
	case 139:
		return ": segmentation fault"
	}
	return ""
}

func firstLine(s string) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		s += " ..."
	}
	return s
}
