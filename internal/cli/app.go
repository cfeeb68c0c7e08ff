// Package cli is the command line of muster: the commands, their flags, what they print, and their exit codes. It also
// chooses the store and the models, and passes both to package team, which runs the team.
//
// A command goes through these steps:
//
//   - Main makes an App from what the operating system gives to the process. A test makes an App of its own.
//   - App.Run builds the tree of commands, and cobra finds the one that the arguments name and reads its flags.
//   - The command checks its arguments. What is wrong in them is a usageError, and nothing was done.
//   - It opens the workspace and the team in it. A command that shows something gets both from App.looking, which
//     creates nothing, and a command that changes something from App.changing. One that brings a team to life calls
//     App.change, which refuses at once what one of the team's own tools may not do.
//   - It calls a method of the team's API, such as team.Tasks.Add, and prints the result with App.print. This prints
//     JSON with --json, so every command has both forms. The function list does all of this for a list.
//   - App.exit turns the error of the command into a message on stderr and an exit code.
//
// Each group of commands is a small type around App: runCommands, taskCommands, teamCommands, mailCommands,
// requestCommands, laneCommands. A method such as taskCommands.claim returns one command with its flags. Three parts
// are larger than a command: conversation is the bare muster, in which the user talks with the lead; runOutput prints
// what happens during a run; and registerCompletions tells shells what may
// stand where.
//
// These rules hold in the whole package:
//
//   - The result of a command goes to stdout. Messages, hints and progress go to stderr.
//   - Only App has what comes from the process. No command reads os.Args, os.Environ or the current directory.
//   - A command that only looks writes nothing, not even a directory.
//   - Text of a model, a file or a user goes through text.OneLine or text.Clean before it is printed for people,
//     because it could steer the terminal.
//
// Read app.go first, then open.go and output.go, then the commands by name. How things are drawn is in internal/view.
// What a task, a mail or a lane may do is decided by package team, not here: a test in internal/importtest holds that
// this package imports no service.
package cli

import (
	"cmp"
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/detach"
	"muster/internal/durable"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/view"
)

// App is one run of the program. It holds everything that a process has from the operating system, so that a test
// can run a command without starting a process. An App runs one command; a conversation copies it for each command
// that it runs.
type App struct {
	Args           []string // without the program's name
	Env            []string // NAME=value
	Dir            string   // where it was started
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time

	// Start brings teams to life, and Demo makes the demo's repository.
	Start Start
	Demo  Demo

	// endsProcess says that the process ends with this command. A command that the conversation runs must not change
	// the limits of the process.
	endsProcess bool
	// foreground is the terminal, where this process can leave it and work on; nil: it cannot.
	foreground *detach.Terminal
	// temporary says that the user's directory for temporary files is not used, and hasNoCache that there is none for
	// caches.
	temporary  string
	hasNoCache bool
	// screenShape is how Stdout will be shown where it is no terminal itself: the conversation shows what its commands
	// print. Nil: Stdout says it itself.
	screenShape *view.Screen
	// otherConfigHome takes the place of XDG_CONFIG_HOME; "": nothing does.
	otherConfigHome string
	// joined returns the members of the team that is open, in the order in which they joined; nil: none is.
	joined func() []muster.Name

	// The flags of every command.
	dir     string // -C
	json    bool
	noColor bool
	plain   bool
	debug   bool

	// secrets are hidden in all that is printed, logged and stored. Run sets them; nil hides nothing.
	secrets *redact.Secrets
	// secretList are the values of secrets, as secretValues found them first.
	secretList []string

	noHelp error // why no help was printed

	log     *slog.Logger // nil if nobody asked for one; see logger
	logFile *os.File
}

// Main is the program: it takes everything from the operating system, and runs. It returns the exit code. A test
// never calls it, because it changes what is common to the process, such as its signal handlers.
func Main() int {
	dir, err := os.Getwd()
	if err != nil {
		explain(os.Stderr, "the current directory cannot be found: "+muster.PlainText(err), "cd to your repository")
		return exitError
	}
	cobra.EnableCommandSorting = false // the help has them in the order in which people need them
	ctx, stop := interruptible(context.Background())
	defer stop()
	// os.Args lies in the memory in which the secrets are overwritten. os.Environ is a copy.
	var args []string
	for _, arg := range os.Args[1:] {
		args = append(args, strings.Clone(arg))
	}
	a := &App{Args: args, Env: os.Environ(), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, endsProcess: true}
	if a.foreground, a.Env = detach.FromEnv(a.Env); a.foreground != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = a.foreground.Context(ctx, muster.CauseUser) // the process that the shell waits for was killed
		defer cancel(nil)
	}
	proc.HideEnvironment(secretValues(a)) // before anything is started that could read it
	if a.Env, a.temporary = withTemporary(a.Env); a.temporary != "" {
		_ = os.Setenv("TMPDIR", a.env("TMPDIR")) // it has no NUL
	}
	// The method value needs the App itself, so it cannot be in the literal above.
	a.Start = a.startTeam
	a.Demo = func(ctx context.Context, dir string, isPlayed bool) (Job, error) {
		return demoJob(ctx, dir, cacheDir(a), isPlayed)
	}
	return a.Run(ctx)
}

// Run runs the command and returns its exit code. It prints the error itself and closes the log last, so that the
// log has the exit code.
func (a *App) Run(ctx context.Context) int {
	if len(a.Args) > 0 && strings.HasPrefix(a.Args[0], cobra.ShellCompRequestCmd) {
		a.Stderr = io.Discard // a shell reads what is printed, and nothing may be said beside it
	}
	defer a.hideSecrets()()
	// Building the commands needs no context: cobra gives each command the one of ExecuteContext.
	root := a.root()                            //nolint:contextcheck
	root.SetArgs(append([]string{}, a.Args...)) // cobra takes those of the process in place of nil
	err := root.ExecuteContext(ctx)
	code := a.exit(ctx, cmp.Or(err, a.noHelp))
	a.closeLog(ctx, code)
	return code
}

// secretValues returns what is secret in the environment, in the user's own settings and endpoints, and in the URLs and
// commands of the command line.
func secretValues(a *App) []string {
	if a.secretList != nil {
		return slices.Clone(a.secretList)
	}
	values := append(redact.FromEnviron(a.Env), config.ReadEndpoints(a.configOptions("")).Secrets()...)
	// A file that cannot be read has no settings. Whoever reads the settings says so.
	own, _ := durable.ReadRegular(config.UserFile(a.configHome()), config.MaxSize)
	values = append(values, redact.InText(string(own))...)
	before := ""
	for _, arg := range a.Args {
		flag, _, _ := strings.Cut(arg, "=")
		if flag == "--check" || flag == "--setup" || before == "--check" || before == "--setup" {
			values = append(values, redact.InText(arg)...)
		} else {
			values = append(values, redact.InURLs(arg)...)
		}
		before = arg
	}
	a.secretList = values
	return slices.Clone(values)
}

// hideSecrets hides the secrets in all that the command prints, until the function that it returns is called.
func (a *App) hideSecrets() (end func()) {
	if a.secrets == nil { // a command that the conversation runs has those of the conversation
		a.secrets = redact.New(secretValues(a)...)
	}
	if a.secrets == nil {
		return func() {}
	}
	if a.endsProcess { // net/http writes headers to this log when GODEBUG asks it to
		log.SetOutput(a.secrets.Writer(os.Stderr))
	}
	stdout, stderr := a.Stdout, a.Stderr
	out, errs := a.secrets.Writer(stdout), a.secrets.Writer(stderr)
	a.Stdout, a.Stderr = out, errs
	return func() {
		_, _ = out.Flush(), errs.Flush() // the command has ended, and its exit code says how
		a.Stdout, a.Stderr = stdout, stderr
	}
}

// root returns all commands. The flags are bound to the fields of the App, so each run of the program makes its
// commands anew.
func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:              "muster",
		Short:            "a team of coding agents on this repository: one goal in, landed commits out",
		Args:             firstWords(a),
		RunE:             a.converse,
		PersistentPreRun: func(c *cobra.Command, _ []string) { a.startLog(c) },
		SilenceErrors:    true,
		SilenceUsage:     true,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	// A flag that cobra refuses is an error of usage: it exits with 2 and names the command whose help says more.
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.StringVarP(&a.dir, "dir", "C", "", "work as if started in `DIR`")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.BoolVar(&a.noColor, "no-color", false, "print without colour")
	f.BoolVar(&a.plain, "plain", false, "redraw and ring nothing: plain lines, as for screen readers")
	f.BoolVar(&a.debug, "debug", false,
		"write a log (MUSTER_LOG_FILE, by default muster.log in the user's state directory)")
	teamFlags(root.Flags(), false)
	changesFlags(root.Flags())
	root.Flags().Bool("continue", false, "go on at once with the team that stopped here")
	root.Flags().Bool("version", false, "which muster this is, as muster version")
	// The help prints the groups and their commands in this order.
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"main", "The team", []*cobra.Command{inTerminal(runCommands{a}.run()), inTerminal(runCommands{a}.demo()),
			inTerminal(runCommands{a}.resume()), inTerminal(newAttachCommand(a)), newStopCommand(a),
			inTerminal(runCommands{a}.join())}},
		{"home", "What has landed", []*cobra.Command{newMergeCommand(a), newPRCommand(a), newUndoCommand(a),
			newReceiptsCommand(a), newCleanCommand(a)}},
		{"look", "What goes on",
			[]*cobra.Command{newStatusCommand(a), inTerminal(newWatchCommand(a)), newCostCommand(a),
				newLogCommand(a), newContextCommand(a), newDiffCommand(a), newWhyCommand(a), newReviewCommand(a),
				inTerminal(newWebCommand(a)), newShareCommand(a),
				requestCommands{a}.list(),
				requestCommands{a}.decide(true, "approve ID [TEXT]", "say yes to a question"),
				requestCommands{a}.decide(false, "reject ID [WHY]", "say no to a question")}},
		{"services", "Board, members, mail, lanes", []*cobra.Command{taskCommands{a}.group(), teamCommands{a}.group(),
			mailCommands{a}.group(), laneCommands{a}.group()}},
		{"repository", "This repository",
			[]*cobra.Command{inTerminal(newInitCommand(a)), newDoctorCommand(a), newModelsCommand(a),
				newSkillsCommand(a), newRolesCommand(a), newHooksCommand(a), newMemoryCommand(a), newMCPCommand(a),
				newConfigCommand(a), newTrustCommand(a), newAllowCommand(a), newTargetCommand(a), newAdoptCommand(a),
				newArchiveCommand(a),
				inTerminal(newCompletionCommand(a)), newVersionCommand(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	setHelp(a, root)
	// The completions come last, because they are registered with commands that exist.
	a.registerCompletions(root)
	return root
}

// workDir returns the directory to work in: -C against where the program was started. Only commands read it: the
// directory of the process itself never changes.
func (a *App) workDir() string {
	if filepath.IsAbs(a.dir) {
		return a.dir
	}
	return filepath.Join(a.Dir, a.dir)
}

// env returns the value of an environment variable, or "" when it is not set. It reads App.Env and never the
// environment of the process, so that tests can set variables without races.
func (a *App) env(name string) string {
	value, _ := lookup(a.Env, name)
	return value
}
