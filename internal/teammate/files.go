package teammate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/durable"
	"muster/internal/proc"
	"muster/internal/tool/code"
	"muster/llm"
)

type fileTools struct {
	launcher proc.Launcher
	jobs     *code.Jobs
	options  code.Options
}

func (f *fileTools) tools(dir code.Place, model string) []llm.Tool {
	o := f.options
	o.Patches = knowsPatches(model)
	return code.Tools(dir, f.launcher, f.jobs, o)
}

func (f *fileTools) reading(dir code.Place) []llm.Tool {
	o := f.options
	return code.ReadTools(dir, f.launcher, code.Options{BashTimeout: o.BashTimeout, Environ: o.Environ, Root: o.Root})
}

// keep writes a text to a file of the member that every member can read. It is no state: what is lost is made again.
func (f *fileTools) keep(name, text string) (path string, err error) {
	path = filepath.Join(f.options.Outputs, name)
	return path, durable.WriteBelow(f.options.Root, path, []byte(text))
}

// knowsPatches reports whether a model was trained on apply_patch: those of OpenAI were. Others edit better without it.
func knowsPatches(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return strings.HasPrefix(name, "gpt-") || strings.Contains(name, "codex")
}

func (f *fileTools) execInLane(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(f.options.Outputs, "worktree_run").Below(f.options.Root)
	p, err := f.launcher.Start(ctx, proc.Spec{Argv: proc.Shell(command), Dir: dir,
		Env: code.Environ(ctx, f.options.Environ, dir), Out: out})
	if err != nil {
		return "", 0, err
	}
	exit, err := p.Wait()
	out.Done()
	text := out.Text()
	if errors.Is(err, code.ErrTooMuchOutput) {
		return text + fmt.Sprintf("\n[killed: %v]", err), exit, nil
	}
	if ctx.Err() == context.DeadlineExceeded { // the caller is told what the command had printed by then
		return text + fmt.Sprintf("\n[killed after %s]", timeout), exit, nil
	}
	return text, exit, err
}
