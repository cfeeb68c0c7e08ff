package team

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"muster/internal/proc"
	"muster/internal/redact"
	"muster/llm"
)

// logDropped logs an error that stops nobody: whoever comes by does again what has failed. An error that only says that
// ctx has ended is not worth a line.
func logDropped(ctx context.Context, log *slog.Logger, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	log.WarnContext(ctx, "error dropped", "what", what, "err", causeText(err))
}

// causeText returns an error as the log has it. Of a model's error that is its kind and status: the provider's words
// may quote the request.
func causeText(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return slog.GroupValue(slog.String("kind", string(e.Kind)), slog.Int("status", e.Status)).String()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// loggedLauncher logs each program that is started and how it ended. Of its arguments it logs the program only: the
// others are a model's words. It hides secrets in what the program prints, so that neither a result nor a file has
// them.
type loggedLauncher struct {
	proc.Launcher
	log     *slog.Logger
	secrets *redact.Secrets
}

// Start starts a program and logs its end when that comes.
func (l loggedLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	began, argv0 := time.Now(), ""
	if len(s.Argv) > 0 {
		argv0 = filepath.Base(s.Argv[0])
	}
	var out *redact.Writer
	if s.Out != nil && l.secrets != nil {
		out = l.secrets.Writer(s.Out)
		s.Out = out
	}
	p, err := l.Launcher.Start(ctx, s)
	if err != nil {
		l.log.Warn("process not started", "argv0", argv0, "dir", s.Dir, "err", err)
	}
	if err == nil && out != nil {
		p = hiddenOutput{p, out}
	}
	if err != nil || !l.log.Enabled(ctx, slog.LevelDebug) {
		return p, err
	}
	// Several goroutines may wait for the same process, and its end is one line.
	return &loggedProcess{p, sync.OnceValues(func() (int, error) {
		exit, err := p.Wait()
		l.log.Debug("process ended", "argv0", argv0, "dir", s.Dir, "process", p.PID(), "exit", exit,
			"seconds", time.Since(began).Seconds(), "err", causeText(err))
		return exit, err
	})}, nil
}

// loggedProcess is a process whose end is logged by its first Wait.
type loggedProcess struct {
	proc.Process
	wait func() (int, error)
}

// Wait waits for the end.
func (p *loggedProcess) Wait() (int, error) { return p.wait() }

// hiddenOutput is a process in whose output secrets are hidden.
type hiddenOutput struct {
	proc.Process
	out *redact.Writer
}

// Wait waits for the end. The output is whole when it returns: what was held back follows.
func (p hiddenOutput) Wait() (int, error) {
	exit, err := p.Process.Wait()
	return exit, cmp.Or(err, p.out.Flush())
}
