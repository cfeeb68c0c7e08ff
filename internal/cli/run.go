package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/commands"
	"muster/internal/config"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// Job is what the user wants of a team. The command line fills it in, and Start needs nothing else to do it.
type Job struct {
	Workspace *workspace.Workspace // the repository and its state
	Settings  config.Settings
	Goal      string
	Resume    bool // go on instead: Goal is empty
	How       team.Start

	Conversation *team.Conversation     // nil: the run ends by itself
	OnlyLands    bool                   // no model is asked, so none need be there
	Emit         func(muster.Name, any) // gets what streams; nil: nobody
	Opened       func(*team.Team)       // gets the team before it runs; nil: nobody

	// demoDir is the directory of the demo's repository; "" is a repository of the user's. isTemporary says that it is
	// not kept.
	demoDir     string
	isTemporary bool
}

// Start brings a team to life and returns when its run is over. Its error is muster.CauseUser when the user has
// interrupted the run. Tests replace it, so that they need no model.
type Start func(context.Context, Job) (team.Summary, error)

// Demo makes the demo's repository in an empty directory and returns its job: Goal, Settings. The caller removes
// the directory, unless the user keeps it. In one that isPlayed the user decides about a plan.
type Demo func(ctx context.Context, dir string, isPlayed bool) (Job, error)

// runCommands are the commands that bring teams to life.
type runCommands struct{ *App }

// run returns muster run. Each run has a goal, which may be several words without quotes.
func (r runCommands) run() *cobra.Command {
	var how team.Start
	var book playbookFlags
	var isBackground bool
	c := &cobra.Command{Use: "run \"GOAL\"", Short: "the main job: a lead, tasks, teammates, lanes, landings",
		Args: namedArgs("[GOAL...]"),
		Long: "Work lands on a branch of its own, muster/TEAM, and nothing of yours is touched: your checkout, your\n" +
			"branch and your uncommitted changes stay as they are.\n\n" +
			"At a terminal it asks, where you have uncommitted changes, whether the team is to have a snapshot of\n" +
			"them: a commit on its own branch, which muster merge makes a commit of yours.\n\n" +
			"With --playbook the tasks come from a file, and the lead is asked only when something needs it.\n\n" +
			"Exits 0 when all has landed, 3 when it stopped with work left, 130 when you interrupted it (the state\n" +
			"is kept: muster resume)."}
	f := c.Flags()
	teamFlags(f, true)
	f.BoolVar(&how.Add, "add", false, "go on with a team that stopped, and give it this goal too")
	backgroundFlag(f, &isBackground)
	changesFlags(f)
	f.BoolVar(&how.Fresh, "fresh", false, "archive a target branch that has diverged and begin it again at HEAD")
	book.add(f)
	_ = c.MarkFlagFilename("playbook", "yaml", "yml") // it exists
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		goal := strings.TrimSpace(strings.Join(args, " "))
		if how.Changes, err = givenChanges(f, c.CommandPath()); err != nil {
			return err
		}
		switch {
		case book.file != "":
			if how.Playbook, err = book.read(c, r.App); err != nil {
				return err
			}
		case len(book.params) > 0 || book.isDryRun:
			return &usageError{c.CommandPath(), "--param and --dry-run go with --playbook FILE"}
		case len(args) == 0:
			return &usageError{c.CommandPath(), c.CommandPath() + " wants GOAL..."}
		case goal == "":
			return &usageError{c.CommandPath(), "the goal is empty"}
		}
		if book.isDryRun {
			return r.dryRun(c.Context(), setFlags(f), how)
		}
		j := Job{Goal: goal, How: how}
		return inBackground(c.Context(), r.App, isBackground, func(started func(*team.Team)) error {
			j.Opened = started
			return r.here(c.Context(), setFlags(f), j)
		})
	}
	return c
}

// resume returns muster resume. It has fewer flags than run, because a run that goes on keeps its name and its
// branch.
func (r runCommands) resume() *cobra.Command {
	c := &cobra.Command{Use: "resume", Short: "go on where a stopped or killed team was", Args: namedArgs(),
		Long: "The target is the run's own, and so are check and setup unless you name others. Every member goes\n" +
			"on with its own conversation, at the turn where it was."}
	var isBackground bool
	teamFlags(c.Flags(), false)
	backgroundFlag(c.Flags(), &isBackground)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return inBackground(c.Context(), r.App, isBackground, func(started func(*team.Team)) error {
			return r.here(c.Context(), setFlags(c.Flags()), Job{Resume: true, Opened: started})
		})
	}
	return c
}

// here does a job in this repository. A job that goes on with a run keeps the settings of that run, except for those
// that the flags name.
func (r runCommands) here(ctx context.Context, flags map[string]string, j Job) error {
	o, err := r.change(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	if j.Resume && !o.workspace.HasState() {
		noteLost(ctx, r.App, o.workspace)
	}
	goesOn := j.Resume
	if j.How.Add { // a goal is added only to a run that stopped; where none has, the goal begins a run of its own
		s, err := o.RunState(ctx)
		if err != nil {
			return err
		}
		goesOn = s.IsStopped
	}
	if j.Goal, err = r.expandGoal(ctx, o, j.Goal); err != nil {
		return err
	}
	if err := offerTrust(ctx, r.App, o, flags, goesOn); err != nil {
		return err
	}
	// What the user has typed is checked against the run before anything is started.
	if j.Settings, err = r.runSettings(ctx, o, flags, goesOn); err != nil {
		return err
	}
	if !goesOn {
		j.Workspace = o.workspace
		if j.How.Changes, err = askChanges(ctx, r.App, j); err != nil {
			return err
		}
	}
	return r.perform(ctx, o, j)
}

// expandGoal returns what a goal stands for that calls a command, such as "/release 1.2". Any other goal stays as it
// is, also one that begins with a path.
func (r runCommands) expandGoal(ctx context.Context, o opened, goal string) (string, error) {
	name, args, _ := strings.Cut(strings.TrimPrefix(goal, "/"), " ")
	if !strings.HasPrefix(goal, "/") {
		return goal, nil
	}
	c, ok := commands.Named(customCommands(r.App, o.Root()), name)
	if !ok {
		return goal, nil
	}
	text, notes, err := c.Expand(ctx, args)
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "%s cannot be read: %w", c.Place, err)
	}
	for _, note := range append([]string{"/" + c.Name + " is " + c.Place}, notes...) {
		explain(r.Stderr, note, "")
	}
	return text, nil
}

// perform does the job, prints what happens, and prints how it ended. Progress goes to stderr and the summary to
// stdout, so that a script can keep the summary alone.
func (r runCommands) perform(ctx context.Context, o opened, j Job) error {
	// The output reads the journal of the same workspace in which the team runs, so nothing is opened twice.
	out := newRunOutput(ctx, r.App, o, j.Settings, j.Resume)
	j.Workspace, j.Emit = o.workspace, out.emit
	if j.Resume && out.progress != nil {
		view.MarkStopped(out.progress, r.Now())
	}
	var sum team.Summary
	var err error
	// The outer err is that of the run: it says how the run ended, and is looked at when everything was printed.
	errOutput := out.during(ctx, func() { sum, err = r.Start(ctx, j) })
	if errOutput != nil {
		return errOutput
	}
	switch {
	// An interruption has no summary: it says how to go on instead.
	case errors.Is(err, muster.CauseUser):
		message, hint := "interrupted; the state is kept", "muster resume"
		if j.isTemporary {
			message, hint = "interrupted; the demo's repository is gone", ""
		} else if j.demoDir != "" {
			hint = "muster -C " + text.ShellQuote(j.demoDir) + " resume"
		}
		explain(r.Stderr, message, hint)
		return exitStatus(exitInterrupted)
	case err != nil:
		if out.progress != nil {
			out.progress.Fail(r.Now(), err)
		}
		return err
	}
	// Only text for people needs a blank line. With --json stderr has nothing but errors.
	if out.progress != nil && out.progress.HasWritten() {
		fmt.Fprintln(r.Stderr) // the summary stands by itself
	}
	return r.finish(ctx, o.Team, j, sum)
}

// finish prints the end of a run in this process, and offers to take the work. It returns the run's exit code.
func (a *App) finish(ctx context.Context, t *team.Team, j Job, sum team.Summary) error {
	err := a.conclude(context.WithoutCancel(ctx), t, j, sum)
	if _, isCode := errors.AsType[exitStatus](err); err != nil && !isCode {
		return err
	}
	if err := a.offerMerge(ctx, t, j, sum); err != nil {
		return err
	}
	return err
}

// conclude prints the end of a run on standard output and returns its exit code. With --json nothing is added,
// because the events have said it all. A reader that has gone away is no error.
func (a *App) conclude(ctx context.Context, t *team.Team, j Job, sum team.Summary) error {
	if !a.json {
		tally := view.NewTally()
		// From the first event: a run that was resumed may have begun anywhere. Events that cannot be read are not
		// counted.
		for e, err := range t.Journal().Read(ctx, 0) {
			if err == nil && e.At >= sum.Run.StartedAt {
				tally.Add(e.Event)
			}
		}
		// The summary is computed from the events and the last records, so it is the same for a run that was resumed.
		end := view.Summary{Run: sum.Run, Code: sum.Code, Text: sum.Text, CheckIsRed: sum.Red, Tasks: sum.Tasks,
			Unreadable: sum.Unread, OffTarget: sum.Off, GoOn: sum.GoOn, Tally: tally, Now: a.Now(),
			Moved: sum.Forward.Branch, NotMoved: sum.Forward.Why, Detached: sum.Detached, IsTemporary: j.isTemporary,
			WordsShown: j.Conversation != nil, Markdown: !isPlain(a),
			// Of a run in another process the settings are not known here. The demo's commands are known.
			Unconfined: j.Workspace != nil && !j.Settings.Sandbox.On && !j.isTemporary && j.demoDir == ""}
		if spent, err := readSpending(ctx, t); err == nil { // the run has ended as it has, whatever it cost
			end.Spending = spent
		}
		if j.demoDir != "" {
			end.RepositoryFlag = "-C " + text.ShellQuote(j.demoDir) + " "
			if receipts, err := team.ReceiptsOf(ctx, t); err == nil {
				end.Proof = proofLine(receipts)
			}
		}
		_, err := io.WriteString(a.Stdout, end.Draw(a.screen(a.Stdout)))
		if err = ignoreEPIPE(err); err != nil {
			return err
		}
		// The lead may say that it has done something. Standard output has its answer alone.
		if end.IsAnswer() {
			made := "no task was made"
			if tally.HasMade() {
				made = "no task is left"
			}
			fmt.Fprintln(a.Stderr, view.Because(made+", and nothing has landed", end.Spending.Text()))
			for _, line := range []string{tally.Trouble(), tally.Remembered()} {
				if line != "" {
					fmt.Fprintln(a.Stderr, line)
				}
			}
		}
	}
	if sum.Code != 0 {
		return exitStatus(sum.Code)
	}
	return nil
}

// join returns muster join, which makes this process a second host of the team. The process has workers but no
// lead: its workers claim tasks from the board.
func (r runCommands) join() *cobra.Command {
	var workers team.Workers
	c := &cobra.Command{Use: "join", Short: "add a process with workers to the team at work here", Args: namedArgs(),
		Long: "The workers, worker-1 and so on, claim tasks as every teammate does. Teammates of a process that\n" +
			"dies are taken over by one that lives. Ends when the run is over, or the workers have shut down;\n" +
			"Ctrl-C leaves them to the team's other processes."}
	f := c.Flags()
	f.String("model", "", "`MODEL` of the workers (default: the run's)")
	f.IntVar(&workers.N, "teammates", 1, "how many workers")
	f.StringVar(&workers.Role, "role", "worker", "`ROLE` of the workers: tasks for another role are not theirs")
	// The number is checked before anything is opened: package team would take 0 for one worker.
	c.RunE = func(c *cobra.Command, _ []string) error {
		if workers.N < 1 {
			return &usageError{c.CommandPath(), "--teammates is how many workers join: at least 1"}
		}
		flags := setFlags(f)
		delete(flags, "teammates") // as a setting it is the run's own limit, which is another thing
		o, err := r.change(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		return r.hostWorkers(c.Context(), o, &workers, flags)
	}
	return c
}

// hostWorkers hosts workers until there is nothing for them here, and prints what happens meanwhile. The settings
// are those of the run that is going on, except for what the flags say about the workers.
func (r runCommands) hostWorkers(
	ctx context.Context, o opened, workers *team.Workers, flags map[string]string,
) error {
	if err := offerTrust(ctx, r.App, o, flags, true); err != nil {
		return err
	}
	settings, err := r.runSettings(ctx, o, flags, true)
	if err != nil {
		return err
	}
	// Events of the whole team are printed, not only those of the members in this process.
	out := newRunOutput(ctx, r.App, o, settings, true)
	// It has a configuration of its own, with the model for the workers. The one in o only looks.
	t, err := r.openTeam( //nolint:contextcheck // Opening starts nothing.
		Job{Workspace: o.workspace, Settings: settings, Emit: out.emit})
	if err != nil {
		return err
	}
	var why team.Ending
	// left is why this process left the team; err is what stopped it from watching.
	var left error
	if err := out.during(ctx, func() { why, left = t.Join(ctx, workers) }); err != nil {
		return err
	}
	switch {
	// It is no failure of the team: its other processes go on with the workers.
	case errors.Is(left, muster.CauseUser):
		names := view.Join(workers.Names, ", ", func(n muster.Name) string { return string(n) })
		explain(r.Stderr, "left; the team's other processes take "+names+" over", "")
		return exitStatus(exitInterrupted)
	case left != nil:
		if over, ok := spend.IsExceeded(left); ok { // it is no failure: the team has stopped with work left
			explain(r.Stderr, over.Error(), strings.TrimSpace("muster resume "+over.GoOn()))
			return exitStatus(exitLeft)
		}
		return left
	}
	_, err = fmt.Fprintf(r.Stdout, "%s left: %s\n", text.Count(len(workers.Names), "worker"), why)
	return ignoreEPIPE(err)
}
