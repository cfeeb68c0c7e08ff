package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster"
	"muster/internal/config"
	"muster/internal/git"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// Job is what the user wants of a team.
type Job struct {
	Dir      string       // the repository's root
	Store    muster.Store // its state
	Settings config.Settings
	Goal     string
	Resume   bool // go on instead: Goal is empty
	How      team.Start

	Conversation *team.Conversation     // nil: the run ends by itself
	Emit         func(muster.Name, any) // gets what streams; nil: nobody

	elsewhere, gone bool // the demo's repository is not where the user stands, or not kept
}

// Start brings a team to life and returns when its run is over.
type Start func(context.Context, Job) (team.Summary, error)

// Demo makes the demo's repository in an empty directory and returns its job: Goal, Settings.
type Demo func(ctx context.Context, dir string) (Job, error)

func (a *App) runCommands() (all []*cobra.Command) {
	if a.Start != nil {
		all = append(all, a.runCommand())
	}
	if a.Start != nil && a.Demo != nil {
		all = append(all, a.demoCommand())
	}
	if a.Start != nil {
		all = append(all, a.resumeCommand(), a.joinCommand())
	}
	return all
}

// teamFlags are the flags that set settings, by the settings' own flag names.
func teamFlags(f *pflag.FlagSet) {
	f.String("model", "", "`MODEL` as provider/model, such as anthropic/claude-sonnet-5 or openai/qwen3@http://localhost:11434/v1")
	f.Int("teammates", 4, "how many teammates at most; 0: the lead does everything")
	f.String("check", "", "`COMMAND` that proves the merged tree before anything lands")
	f.String("setup", "", "`COMMAND` that runs before the check in a fresh checkout, such as npm ci")
	f.Int("max-turns", 50, "turns a member has in a work phase")
}

// given are the settings among the flags that were given.
func given(f *pflag.FlagSet) map[string]string {
	known := map[string]bool{}
	for _, s := range config.Table() {
		known[s.Flag()] = true
	}
	m := map[string]string{}
	f.Visit(func(x *pflag.Flag) {
		if known[x.Name] {
			m[x.Name] = x.Value.String()
		}
	})
	return m
}

func (a *App) runCommand() *cobra.Command {
	var how team.Start
	c := &cobra.Command{Use: "run \"GOAL\"", Short: "the main job: a lead, tasks, teammates, lanes, landings", Args: exactly("GOAL..."),
		Long: "Work lands on a branch of its own, muster/TEAM, and nothing of yours is touched: your checkout, your\n" +
			"branch and your uncommitted changes stay as they are.\n\n" +
			"Exits 0 when all has landed, 3 when it stopped with work left, 130 when you interrupted it (the state\n" +
			"is kept: muster resume)."}
	f := c.Flags()
	teamFlags(f)
	f.String("land", "", "`BRANCH` to land on instead of muster/TEAM; it must not be checked out")
	f.String("team", "", "`NAME` of the team (default: the directory's)")
	f.BoolVar(&how.Add, "add", false, "go on with a team that stopped, and give it this goal too")
	f.BoolVar(&how.Fresh, "fresh", false, "archive a target branch that has diverged and begin it again at HEAD")
	c.RunE = func(c *cobra.Command, args []string) error {
		goal := strings.TrimSpace(strings.Join(args, " "))
		if goal == "" {
			return &usageError{c.CommandPath(), "the goal is empty"}
		}
		return a.work(c.Context(), Job{Goal: goal, How: how}, given(c.Flags()))
	}
	return c
}

func (a *App) resumeCommand() *cobra.Command {
	c := &cobra.Command{Use: "resume", Short: "go on where a stopped or killed team was", Args: exactly(),
		Long: "Check, setup and target are the run's own unless you name others. Every member goes on with its own\nconversation, at the turn where it was."}
	teamFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.work(c.Context(), Job{Resume: true}, given(c.Flags()))
	}
	return c
}

func (a *App) demoCommand() *cobra.Command {
	var keep string
	c := &cobra.Command{Use: "demo", Short: "a real team on a throw-away repository; needs no key and no network", Args: exactly(),
		Long: "Only the model's words are scripted: git, tools, tests and landings are real."}
	c.Flags().StringVar(&keep, "keep", "", "make the repository in `DIR`, an empty or new directory, and keep it")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		dir, err := a.demoDir(keep)
		if err != nil {
			return err
		}
		if keep == "" {
			defer os.RemoveAll(dir)
		}
		job, err := a.Demo(ctx, dir)
		if err != nil {
			return err
		}
		job.Dir, job.elsewhere, job.gone = dir, true, keep == ""
		if !a.json {
			fmt.Fprintf(a.Stderr, "muster demo: a lead and two teammates on a throw-away repository\n"+
				"the model's words are scripted; git, tools, tests and landing are real (a real model: muster run --model ...)\n\n")
		}
		in := *a // the same program, started in the demo's repository
		in.Dir, in.dir = dir, ""
		return in.perform(ctx, job)
	}
	return c
}

// demoDir is an empty directory for the demo.
func (a *App) demoDir(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "muster-demo-")
	}
	if !filepath.IsAbs(keep) {
		keep = filepath.Join(a.at(), keep)
	}
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return "", muster.Errorf(muster.Invalid, "the directory %s cannot be made: %w", keep, err)
	}
	entries, err := os.ReadDir(keep)
	if err == nil && len(entries) > 0 {
		return "", muster.Errorf(muster.Invalid, "%s is not empty", keep).WithHint("name a new directory: muster demo --keep DIR")
	}
	return keep, err
}

// work does a job in this repository.
func (a *App) work(ctx context.Context, j Job, flags map[string]string) error {
	p, err := a.change(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if j.Settings, err = a.settings(string(p.home), flags); err != nil {
		return err
	}
	if run, ok, err := p.stopped(ctx, j); err != nil {
		return err
	} else if ok {
		if err := goOn(run, flags, &j.Settings); err != nil {
			return err
		}
	}
	j.Dir = string(p.home)
	return a.perform(git.With(ctx, p.repo), j)
}

// stopped is the run that a job goes on with; ok is false when the job starts a run of its own.
func (p *place) stopped(ctx context.Context, j Job) (run muster.Run, ok bool, err error) {
	if !j.Resume && !j.How.Add {
		return run, false, nil
	}
	if run, err = p.run(ctx); err != nil || run.StartedAt == 0 || j.Resume {
		return run, err == nil && run.StartedAt > 0, err
	}
	_, ok, err = p.left(ctx)
	return run, ok, err
}

// goOn makes the settings those of the run that goes on, but for what the command line gives: a run keeps the model it
// was started with, not whichever key is set today.
func goOn(run muster.Run, flags map[string]string, s *config.Settings) error {
	const keeps = "the team that stopped keeps its %s, %s: leave --%s out, or put the team aside first with muster archive"
	if name, given := flags["team"]; given && name != string(run.Team) {
		return &usageError{"muster run", fmt.Sprintf(keeps, "name", run.Team, "team")}
	}
	if branch, given := flags["land"]; given && branch != run.Target {
		return &usageError{"muster run", fmt.Sprintf(keeps, "branch", run.Target, "land")}
	}
	if run.Team != "" {
		s.Team = string(run.Team)
	}
	if _, given := flags["model"]; !given && run.Model != "" {
		s.Model = run.Model
	}
	if _, given := flags["teammates"]; !given {
		s.Teammates = run.Cap
	}
	if _, given := flags["check"]; !given {
		s.Check = run.Check
	}
	if _, given := flags["setup"]; !given {
		s.Setup = run.Setup
	}
	return nil
}

// perform does the job, tells what happens, and prints how it ended.
func (a *App) perform(ctx context.Context, j Job) error {
	unattended()
	p, err := a.openAt(ctx, j.Dir)
	if err != nil {
		return err
	}
	defer p.close()
	j.Store = p.store
	from, err := p.journal.Tail(ctx, 0)
	if err != nil {
		return err
	}
	type result struct {
		sum team.Summary
		err error
	}
	out := a.teller(context.WithoutCancel(ctx), p, j)
	j.Emit = out.Unwritten
	var r result
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.sum, r.err = a.Start(ctx, j)
	}()
	a.watch(ctx, p, from, done, out)
	switch {
	case errors.Is(r.err, muster.CauseUser):
		switch {
		case j.gone:
			explain(a.Stderr, "interrupted; the demo's repository is gone", "")
		case j.elsewhere:
			explain(a.Stderr, "interrupted; the state is kept", "muster -C "+quoted(j.Dir)+" resume")
		default:
			explain(a.Stderr, "interrupted; the state is kept", "muster resume")
		}
		return status(exitInterrupted)
	case r.err != nil:
		return r.err
	}
	if told, ok := out.listener.(*view.Progress); ok && told.HasWritten() {
		fmt.Fprintln(a.Stderr) // the summary stands by itself
	}
	return a.conclude(context.WithoutCancel(ctx), p, j, r.sum)
}

// watch tells the events from the place on until done, and those that came before it was seen.
func (a *App) watch(ctx context.Context, p *place, from muster.Pos, done <-chan struct{}, out *teller) {
	ctx = context.WithoutCancel(ctx) // what happens after Ctrl-C is told too
	defer out.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	entries := make(chan journal.Entry)
	go func() {
		defer close(entries)
		for e, err := range p.journal.Follow(following, from) {
			if err != nil {
				continue // that a line is broken is the doctor's to say
			}
			select {
			case entries <- e:
			case <-following.Done():
				return
			}
		}
	}()
	tick := time.NewTicker(view.RedrawInterval)
	defer tick.Stop()
	for running := true; running; {
		select {
		case e, ok := <-entries:
			if !ok {
				entries = nil // the rest is read at the end
				continue
			}
			out.Event(e.Event)
			from = e.Pos
		case <-tick.C:
			out.Tick(a.Now())
		case <-done:
			running = false
		}
	}
	for e, err := range p.journal.Read(ctx, from) {
		if err == nil {
			out.Event(e.Event)
		}
	}
}

// listener is who is told what happens: people, or with --json a program.
type listener interface {
	Event(muster.Event)
	Tick(time.Time)
	Close()
}

// teller tells one listener what several goroutines have seen.
type teller struct {
	mu sync.Mutex
	listener
}

func (t *teller) Event(e muster.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listener.Event(e)
}

func (t *teller) Tick(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listener.Tick(now)
}

// Unwritten takes what a team emits, and tells the events that its journal could not take.
func (t *teller) Unwritten(_ muster.Name, v any) {
	if e, ok := v.(muster.Event); ok {
		t.Event(e)
	}
}

func (a *App) teller(ctx context.Context, p *place, j Job) *teller {
	if a.json {
		return &teller{listener: jsonLines{a.Stdout}}
	}
	pt, width := a.screen(a.Stderr)
	opening := "makes the team ready"
	if j.Resume {
		opening = "finds what the team has left: tasks, lanes, conversations"
	}
	run, _ := p.run(ctx) // without it a check is named a little later
	return &teller{listener: view.NewProgress(view.Options{Out: a.Stderr, Paint: pt, Width: width, Start: a.Now(), Check: run.Check, Opening: opening,
		Task: func(id muster.TaskID) (muster.Task, error) { return p.theBoard().Get(ctx, id) }})}
}

// jsonLines prints one event a line.
type jsonLines struct{ w io.Writer }

func (j jsonLines) Event(e muster.Event) {
	if data, err := muster.Line(e); err == nil {
		j.w.Write(append(data, '\n'))
	}
}
func (jsonLines) Tick(time.Time) {}
func (jsonLines) Close()         {}

// conclude prints the end of a run on stdout and returns its exit code.
func (a *App) conclude(ctx context.Context, p *place, j Job, sum team.Summary) error {
	if !a.json {
		count := view.NewTally()
		for e, err := range p.journal.Read(ctx, 0) {
			if err == nil && e.At >= sum.Run.StartedAt {
				count.Add(e.Event)
			}
		}
		pt, width := a.screen(a.Stdout)
		end := view.Ending{Run: sum.Run, Code: sum.Code, Text: sum.Text, CheckIsRed: sum.Red, Tasks: sum.Tasks, Unreadable: sum.Unread, OffTarget: sum.Off, Tally: count, Now: a.Now(), IsTemporary: j.gone}
		if j.elsewhere {
			end.RepositoryFlag = "-C " + quoted(j.Dir) + " "
		}
		if err := unread(view.Summarise(end).Write(a.Stdout, pt, width)); err != nil {
			return err
		}
	}
	if sum.Code != 0 {
		return status(sum.Code)
	}
	return nil
}

// quoted is a path as it is typed.
func quoted(path string) string {
	if strings.ContainsAny(path, " '\"\\$`&;()<>|*?[]#~") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
