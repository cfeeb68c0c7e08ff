// Package cli is the command line: commands, flags, what is printed, exit codes. It chooses the store and the models,
// holds no policy, and reads and writes the records that the domain rooms define.
//
// Read in this order: app.go (the program as a struct that tests boot), repo.go (the rooms, opened as they are needed),
// then the commands by name. What people see is in internal/view.
package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
)

// App is one run of the program.
type App struct {
	Args           []string // without the program's name
	Env            []string // NAME=value
	Dir            string   // where it was started
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time

	// What brings teams to life; a command whose function is nil is not offered.
	Start Start
	Demo  Demo

	brief   bool     // the process ends with this command
	on      *drawing // what stands behind Stdout where it is no terminal itself
	dir     string   // -C
	json    bool
	noColor bool
	debug   bool
	log     *slog.Logger // nil: nobody asked for one; see logger
	logFile *os.File
}

// Main is the program: everything of the operating system, then Run. It returns the exit code.
func Main() int {
	dir, err := os.Getwd()
	if err != nil {
		explain(os.Stderr, "the current directory cannot be found: "+err.Error(), "cd to your repository")
		return exitError
	}
	cobra.EnableCommandSorting = false // the help has them in the order in which people need them
	ctx, stop := interruptible(context.Background())
	defer stop()
	a := &App{Args: os.Args[1:], Env: os.Environ(), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, brief: true}
	a.wire()
	return a.Run(ctx)
}

// interruptible ends ctx with muster.CauseUser at the first Ctrl-C (or TERM, or HUP). The second one kills, but for HUP: a
// terminal that closes sends it from several sides.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, hangups := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(hangups, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-signals:
		case <-hangups:
		case <-ctx.Done():
			return
		}
		signal.Stop(signals)
		cancel(muster.CauseUser)
	}()
	return ctx, func() { signal.Stop(signals); signal.Stop(hangups); cancel(nil) }
}

// unattended keeps the program alive, from here to its end, when nobody reads any more what it prints: a team works on without
// an audience, while a short command dies quietly. SIGPIPE is caught, not ignored: what a process starts would inherit that.
func unattended() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// unread is the error of a write, nil when all it says is that nobody reads.
func unread(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// Run runs the command and returns its exit code.
func (a *App) Run(ctx context.Context) int {
	if completing(a.Args) {
		a.Stderr = io.Discard // a shell reads the rest
	}
	root := a.root()
	root.SetArgs(a.Args)
	code := a.exit(ctx, root.ExecuteContext(ctx))
	a.closeLog(ctx, code)
	return code
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:              "muster",
		Short:            "a team of coding agents on this repository: one goal in, landed commits out",
		Args:             a.noSuch,
		RunE:             a.talk,
		SilenceErrors:    true,
		PersistentPreRun: func(c *cobra.Command, _ []string) { a.startLog(c) },
		SilenceUsage:     true,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetHelpFunc(help)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{c.CommandPath(), err.Error()}
	})
	f := root.PersistentFlags()
	f.StringVarP(&a.dir, "dir", "C", "", "work as if started in `DIR`")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.BoolVar(&a.noColor, "no-color", false, "print without colour")
	f.BoolVar(&a.debug, "debug", false,
		"write a log (MUSTER_LOG_FILE, by default muster.log in the user's state directory)")
	teamFlags(root.Flags())
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"main", "The team", a.runCommands()},
		{"look", "What goes on", []*cobra.Command{a.statusCommand(), a.logCommand(), a.requestsCommand(), a.approveCommand(), a.rejectCommand()}},
		{"planes", "Board, members, mail, lanes", []*cobra.Command{a.taskCommand(), a.teamCommand(), a.mailCommand(), a.worktreeCommand()}},
		{"place", "This repository", []*cobra.Command{a.doctorCommand(), a.configCommand(), a.archiveCommand(), a.completionCommand(), a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	a.complete(root)
	return root
}

// group is a command that only has commands of its own.
func (a *App) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: a.noSuch, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(commands...)
	return c
}

// noSuch refuses what is no command of the group.
func (a *App) noSuch(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	message := "there is no command \"" + strings.TrimSpace(strings.TrimPrefix(c.CommandPath()+" "+args[0], "muster")) + "\""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		message += " (did you mean " + strings.Join(near, " or ") + "?)"
	}
	return &usageError{c.CommandPath(), message}
}

// exactly wants these arguments, named for people; a last one with "..." may be several, and one in brackets
// may be missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		least, most := 0, len(names)
		for _, n := range names {
			if strings.Contains(n, "...") {
				most = int(^uint(0) >> 1)
			}
			if !strings.HasPrefix(n, "[") {
				least++
			}
		}
		switch {
		case len(args) < least:
			return &usageError{c.CommandPath(), c.CommandPath() + " wants " + names[len(args)]}
		case len(args) > most:
			return &usageError{c.CommandPath(), c.CommandPath() + " does not take \"" + args[most] + "\""}
		}
		return nil
	}
}

// at is the directory to work in: -C against where the program was started.
func (a *App) at() string {
	if filepath.IsAbs(a.dir) {
		return a.dir
	}
	return filepath.Join(a.Dir, a.dir)
}

// env is the value of an environment variable, "" when it is not set.
func (a *App) env(name string) string {
	for _, kv := range slices.Backward(a.Env) {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// drawing is how to draw on a screen that somebody else has.
type drawing struct {
	paint view.Paint
	width int
}

// screen is how to print to w: in colour only on a terminal, never with NO_COLOR; width 0 is no terminal.
func (a *App) screen(w io.Writer) (p view.Paint, width int) {
	if a.on != nil {
		return a.on.paint, a.on.width
	}
	width, ok := view.TerminalWidth(w)
	return view.Paint(ok && !a.noColor && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"), width
}

// print writes v as JSON with --json, else as text does.
func (a *App) print(v any, text func(w io.Writer, p view.Paint, width int) error) error {
	if a.json {
		data, err := muster.Encode(v)
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(data)
		return err
	}
	p, width := a.screen(a.Stdout)
	return text(a.Stdout, p, width)
}

// build is which program this is.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go,omitempty"`
	Revision string `json:"revision,omitempty"`
}

// thisBuild returns which program this is, as far as it was told when it was built.
func thisBuild() build {
	b := build{Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version, b.Go = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "which muster this is", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return a.print(b, func(w io.Writer, _ view.Paint, _ int) error {
				line := "muster " + b.Version
				if b.Revision != "" {
					line += " " + b.Revision[:min(len(b.Revision), 12)]
				}
				_, err := io.WriteString(w, line+" "+b.Go+"\n")
				return err
			})
		}}
}
