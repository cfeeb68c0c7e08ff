package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/paths"
	"muster/internal/redact"
)

// The environment of the log: the level, and the file to write to.
const (
	logLevelVar = "MUSTER_LOG"
	logFileVar  = "MUSTER_LOG_FILE"
)

// logger returns the program's log, which says nothing unless the user asked for it. It is never nil, so callers
// need no check.
func (a *App) logger() *slog.Logger {
	if a.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return a.log
}

// startLog opens the log that --debug or the environment asks for, and notes which command begins. A log that
// cannot be had is one sentence on stderr: the command works without it. It runs before every command, after the
// flags are read, because --debug is one of them.
func (a *App) startLog(c *cobra.Command) {
	if a.log != nil { // a command that another one runs
		return
	}
	name := a.env(logLevelVar)
	if a.debug { // the flag is stronger than the environment
		name = "debug"
	}
	// UnmarshalText of slog would also accept levels such as INFO+2, which no document names.
	level, ok := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
		"error": slog.LevelError}[strings.ToLower(name)]
	var err error
	if ok {
		err = a.openLog(level)
	} else if name != "" {
		err = fmt.Errorf("%s is %q, and must be debug, info, warn or error", logLevelVar, name)
	}
	if err != nil {
		fmt.Fprintf(a.Stderr, "muster: no log is written: %s\n", muster.PlainText(err))
	}
	// A report of a defect needs the version, so it stands in the first line.
	b := thisBuild()
	a.logger().Info("process started", "version", b.Version, "revision", b.Revision,
		"command", c.CommandPath(), "dir", a.workDir())
}

// openLog opens the log's file for appending: only the user may read it. Several processes may append to the same
// file, so each line has the id of its process.
func (a *App) openLog(level slog.Level) error {
	path := a.env(logFileVar)
	if path == "" {
		dir, err := paths.UserState(a.env)
		if err != nil {
			return fmt.Errorf("%w: name a file in %s", err, logFileVar)
		}
		path = filepath.Join(dir, "muster.log")
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a.logFile = f
	// Whatever error quotes a key, and however the handler spells it, the file does not have it.
	out := redact.New(secretValues(a)...).Writer(f)
	handler := slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
	a.log = slog.New(handler).With("pid", os.Getpid())
	return nil
}

// closeLog notes how the command ended and closes the log. A command that the conversation runs has no file of its
// own, so it leaves the log open.
func (a *App) closeLog(ctx context.Context, code int) {
	if a.logFile == nil {
		return
	}
	a.logger().Info("process ended", "code", code, "interrupted", ctx.Err() != nil)
	_ = a.logFile.Close() // each line was written by itself
	a.log, a.logFile = nil, nil
}
