package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/hooks"
	"muster/internal/landing"
	"muster/internal/launchers"
	"muster/internal/mailbox"
	"muster/internal/playbook"
	"muster/internal/prompt"
	"muster/internal/requests"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/journal"
)

// teamRun is a run of the team that this process leads or has joined: it writes the run's record and tells its
// beginning and its end. A host runs the members.
type teamRun struct {
	site      *site
	host      *host
	members   *members
	finalizer *finalizer
	spending  *spending
}

func newTeamRun(ctx context.Context, at *site, shared *shared, last muster.Run) (*teamRun, error) {
	h, err := newHost(ctx, at, shared, last)
	if err != nil {
		return nil, err
	}
	r := &teamRun{site: at, host: h, members: h.members, finalizer: h.finalizer, spending: h.spending}
	h.tend = r.nameGoal
	return r, nil
}

// begin begins a run. book is its playbook, or nil. open are the tasks that are on the board already.
func (r *teamRun) begin(
	ctx context.Context, goal string, book *playbook.Book, open []muster.Task, fresh bool, changes Changes,
) (sum Summary, err error) {
	// What cannot be used is refused before a record is written.
	if err := r.host.findSandbox(ctx); err != nil {
		return sum, err
	}
	snapshot, err := r.takeSnapshot(ctx, changes, fresh)
	if err != nil {
		return sum, err
	}
	note, err := r.site.repository.Prepare(ctx, r.site.target(), r.site.config.Land != "", fresh)
	if err != nil {
		return sum, err
	}
	if err := snapshot.begin(ctx); err != nil {
		return sum, err
	}
	// A store in memory has made no file so far. The members will make some.
	if err := r.site.workspace.Mark(ctx); err != nil {
		return sum, err
	}
	prepared := r.onBegin(ctx)
	defer prepared()
	// Git looks while the records are written, and does not outlive the run.
	checkout := inBackground(func() (git.CheckoutState, error) { return r.site.repository.Checkout(ctx) })
	defer func() { _, _ = checkout() }()
	tasks, err := r.site.board.List(ctx)
	if err == nil {
		// What git still says of claims that this board cannot have made: somebody has removed its tasks.
		err = r.site.repository.ForgetRevoked(ctx, tasks)
	}
	if err != nil {
		return sum, err
	}
	return r.lead(ctx, func(ctx context.Context, host muster.HostID) error {
		prepared()
		// The records come before the event: who reads the event finds them.
		notes, err := r.writeStart(ctx, goal, book, open, host)
		if err != nil {
			return err
		}
		// It is only a note: where git cannot tell, there is none.
		if s, err := checkout(); err == nil {
			notes = append(notes, snapshot.notes(ctx, s)...)
			if s.Behind > 0 {
				notes = append(notes, fmt.Sprintf("%s is %s, and nothing is fetched: git pull", s.Branch, behind(s)))
			}
		}
		if text := r.earlierCosts(ctx); text != "" {
			notes = append(notes, text)
		}
		run, err := r.site.runs.Get(ctx)
		if err != nil {
			return err
		}
		r.site.emit(ctx, journal.RunStarted, muster.Lead, map[string]any{"goal": run.Goal, "target": r.site.branch})
		if note != "" {
			r.site.note(ctx, "", note)
		}
		if into := r.site.into; into != "" {
			r.site.note(ctx, "", fmt.Sprintf("%s is checked out: work lands on %s, and %[1]s is moved forward to it "+
				"at the end", into, r.site.branch))
		}
		for _, n := range notes {
			r.site.note(ctx, "", n)
		}
		if run.Directory != "" {
			r.site.note(ctx, "", directoryNote(run))
		}
		r.site.noteLeftOut(ctx)
		r.site.emit(ctx, journal.RunNote, "", map[string]any{"text": r.host.rights(), "rights": true})
		return r.putPlaybook(ctx)
	})
}

// directoryNote says where the commands of members and the check start.
func directoryNote(run muster.Run) string {
	note := fmt.Sprintf("commands start in %s, and relative paths begin there", run.Directory)
	if check := run.CheckText(); check != "" && !strings.Contains(check, "cd "+text.ShellQuote(run.Directory)+";") {
		note += "; the check starts at the top: " + text.OneLine(check)
	}
	return note
}

// checkDirectory refuses a run in a directory that the user's checkout does not have.
func (r *teamRun) checkDirectory() error {
	repo, isGit := r.site.repository.(gitRepository)
	dir := r.site.config.Directory
	if dir == "" || !isGit {
		return nil
	}
	if root, err := os.OpenRoot(repo.Here()); err == nil {
		defer root.Close()
		if fi, err := root.Stat(filepath.FromSlash(dir)); err == nil && fi.IsDir() { // no link leads it out
			return nil
		}
	}
	return muster.Errorf(muster.Invalid, "there is no directory %s in %s for members to start in", text.OneLine(dir),
		repo.Here()).WithHint("the setting directory is relative to the top of the repository, and . is the top")
}

// onBegin calls Config.OnBegin beside the caller, and returns what waits for its end. The records of the run are
// written after that.
func (r *teamRun) onBegin(ctx context.Context) (wait func()) {
	begin := r.site.config.OnBegin
	if begin == nil {
		return func() {}
	}
	done := inBackground(func() (any, error) { begin(ctx); return nil, nil })
	return func() { _, _ = done() }
}

// resume goes on with the stopped run. Its own name, target and cap stand. more is what the user wants besides.
func (r *teamRun) resume(ctx context.Context, run muster.Run, more string) (sum Summary, err error) {
	if err := r.validateTarget(ctx); err != nil {
		return sum, err
	}
	prepared := r.onBegin(ctx)
	defer prepared()
	return r.lead(ctx, func(ctx context.Context, host muster.HostID) error {
		prepared()
		// First the lead, whose host shows that the team is alive again; then the run, which is not ended any more. A
		// crash in between leaves a run that can be resumed again.
		if err := r.createLead(ctx, "", host); err != nil {
			return err
		}
		// The time without any process does not count as time of the run.
		away := secondsAway(ctx, r.site.journal, run)
		if _, err := r.site.runs.Change(ctx, func(x *muster.Run) {
			x.EndedAt, x.Away, x.Stopped = 0, x.Away+away, ""
			x.Cap, x.Model, x.Budget = r.site.config.Teammates, r.site.config.ModelName, r.site.config.Budgets.Team
			c := r.site.config
			x.Review, x.Directory = c.Review, c.Directory
			if x.Check != c.Check || x.Setup != c.Setup || !reflect.DeepEqual(x.Checks, []muster.NamedCheck(c.Checks)) {
				// Mended: what the old one said counts no more.
				x.Check, x.Checks, x.Setup, x.BaseCheck = c.Check, c.Checks, c.Setup, ""
			}
		}); err != nil {
			return err
		}
		if err := r.putPlaybook(ctx); err != nil {
			return err
		}
		r.site.emit(ctx, journal.RunResumed, muster.Lead, map[string]any{"goal": run.Goal, "target": r.site.branch})
		r.site.note(ctx, "", keptSettings(r.site.branch, r.site.config))
		r.site.noteLeftOut(ctx)
		if more == "" {
			return nil
		}
		_, err := r.site.post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead,
			Content: more})
		return err
	})
}

// keptSettings says with what a stopped run goes on: it is the record's word, and the user should see it.
func keptSettings(target string, c Config) string {
	text := "it goes on with the target " + target
	for _, x := range [][2]string{{"model", c.ModelName}, {"check", c.Check}, {"set-up", c.Setup},
		{"reviewer", c.Review}, {"directory", c.Directory}} {
		if x[1] != "" {
			text += fmt.Sprintf(", the %s %s", x[0], x[1])
		}
	}
	return text
}

// secondsAway is for how many seconds the run has stopped, by the journal's last event.
func secondsAway(ctx context.Context, j *journal.Journal, run muster.Run) (away float64) {
	from, err := j.Tail(ctx, 1)
	if err != nil {
		return 0
	}
	for e, err := range j.Read(ctx, from) {
		if err == nil && e.At >= run.StartedAt {
			away = max(muster.UnixTime(time.Now())-e.At, 0)
		}
	}
	return away
}

// lead hosts the team in this process until the lead's life is over. It finishes what a crash left half done, then
// calls write, which writes the records of the run and of the lead. The caller holds LeadLease.
func (r *teamRun) lead(ctx context.Context, write func(context.Context, muster.HostID) error) (sum Summary, err error) {
	// Lanes first, because an effect may archive one. All of this may run any number of times: a crash in the middle
	// leaves the rest to the next start.
	prepare := func(ctx context.Context, host muster.HostID) error {
		at := r.site
		for _, finish := range []func(context.Context) error{at.lanes.Recover, at.settle, at.requests.Settle} {
			if err := finish(ctx); err != nil {
				return err
			}
		}
		if err := answerLateShutdowns(ctx, r.site.requests); err != nil {
			return err
		}
		return write(ctx, host)
	}
	err = r.host.serve(ctx, "muster run", prepare, func(ctx context.Context, s *supervisor) error {
		r.site.log.Info("run hosted", "team", r.site.config.Name, "host", s.id)
		endNotices := r.notifyUser(ctx)
		end, err := s.lead(ctx, r.checkBase)
		r.site.log.Info("run left", "team", r.site.config.Name, "host", s.id, "code", end.Code, "cause", causeText(err))
		end = r.host.lookLast(context.WithoutCancel(ctx), end)
		sum, err = r.conclude(context.WithoutCancel(ctx), end, err)
		endNotices()
		return err
	})
	return sum, err
}

// answerLateShutdowns grants the shutdowns that were asked of a lead that was dead already: they do not concern its
// next life.
func answerLateShutdowns(ctx context.Context, all *requests.Requests) error {
	pending, err := all.Pending(ctx)
	for _, r := range pending {
		if r.Kind == muster.AskShutdown && r.To == muster.Lead && err == nil {
			_, _, err = all.Decide(ctx, r.ID, muster.Lead, true, "it had stopped already")
		}
	}
	return err
}

// isEndReported reports whether the journal has the end of the last run. The run's record says that it has ended before
// the journal does, so a process that is killed in between leaves a run that has ended and of which nobody was told.
func isEndReported(ctx context.Context, j *journal.Journal) (told bool, err error) {
	for e, err := range j.Read(ctx, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
		case err != nil:
			return false, err
		case e.Kind == journal.RunStarted, e.Kind == journal.RunResumed:
			told = false
		case e.Kind == journal.RunEnded:
			told = true
		}
	}
	return told, nil
}

// reportEnd returns the summary of a run that has ended, and tells its end, as the process that ran it would have done.
// No member lives and no model is asked.
func (r *teamRun) reportEnd(ctx context.Context, run muster.Run) (Summary, error) {
	if err := r.site.settle(ctx); err != nil {
		return Summary{}, err
	}
	end, err := r.members.leadEnd(ctx)
	if err != nil {
		return Summary{}, err
	}
	return r.summarize(ctx, run, end)
}

// checkBase runs the check on the base beside the lead's first turn. What it finds is said to user and lead; a check
// that cannot run at all stops the run.
func (r *teamRun) checkBase(ctx context.Context) error {
	// A record that cannot be read must not mean that the base was never checked, or the check would run again. So the
	// error stops the run.
	run, err := r.site.runs.Get(ctx)
	if err != nil || run.Check == "" || run.BaseCheck != "" {
		return err
	}
	r.site.emit(ctx, journal.CheckStarted, "", map[string]any{"command": run.Check})
	var v landing.CheckResult
	if err := r.site.runWithRestarts(ctx, "the check on the base", "", func() (err error) {
		v, err = r.site.lander.CheckBase(ctx)
		return err
	}); err != nil {
		return err
	}
	result := workspace.BaseGreen
	switch {
	case v.CannotRun:
		return muster.Errorf(muster.Invalid, "the check cannot run: %s\n%s", run.Check, v.Output).
			WithHint("%s", "mend it, or name another: muster run --check CMD"+r.missingSetup(ctx, run)+r.confinedHint())
	case !v.Green:
		result = workspace.BaseRed
	}
	hint := r.emptySubmodules(ctx, run) + r.missingSetup(ctx, run) + r.confinedHint()
	if line := launchers.Line(v.Output); line != "" {
		hint = "; " + line
	}
	failed := v.Failed
	if v.TimedOut {
		if len(v.Checks) == 0 { // of several it says that already
			failed = v.How
		}
		hint = fmt.Sprintf(" (%s; the setting check_timeout gives it more time)%s", v.How, hint)
	}
	r.site.emit(ctx, journal.CheckBase, "",
		map[string]any{"result": result, "seconds": v.Seconds, "command": run.Check, "failed": failed})
	// What CheckBase has found is in the run's record by now. The mail is for the lead, which may plan for it.
	if v.Green {
		return nil
	}
	if hint != "" {
		r.site.emit(ctx, journal.RunNote, "", map[string]any{"text": "the check fails on the base" + hint})
	}
	_, err = r.site.post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.System, To: muster.Lead,
		Content: fmt.Sprintf("The check fails on the base already, before any work%s: %s\n"+
			"Until a landing turns it green, work that adds no failure lands, marked \"still red\". After that, a red "+
			"check is refused. %s", hint, run.Check, mailbox.Short(v.Output))})
	return err
}

// writeStart writes the records of a new run, in this order: the run, the lead. It returns what the user should know.
func (r *teamRun) writeStart(
	ctx context.Context, goal string, book *playbook.Book, open []muster.Task, host muster.HostID,
) (notes []string, err error) {
	if err := r.finalizer.stopOrphans(ctx); err != nil {
		return nil, err
	}
	all, errTasks := r.site.board.List(ctx)
	base, errBase := r.site.repository.Resolve(ctx, r.site.target())
	if err := cmp.Or(errTasks, errBase); err != nil {
		return nil, err
	}
	first := muster.TaskID(1)        // after every task that there is
	var needsAttention []muster.Task // nobody has looked at them since they were given up
	for _, task := range all {
		first = max(first, task.ID+1)
		if task.Status == muster.NeedsAttention {
			needsAttention = append(needsAttention, task)
			notes = append(notes, fmt.Sprintf("task %d (%s) of an earlier run needs you: muster task retry %d",
				task.ID, task.Subject, task.ID))
		}
	}
	// An id of a record that cannot be read is used too: the record may be mended, and then it is a task again.
	for _, u := range r.site.board.Corrupt() {
		first = max(first, u.ID+1)
	}
	c := r.site.config
	// Noted before the run's record has it: a resume finds that the user has named it.
	if err := r.confirmTargets(ctx); err != nil {
		return nil, err
	}
	// Fields that other programs have added to the record (Extra) outlive the run that they were added to.
	run, err := r.site.runs.Change(ctx, func(x *muster.Run) {
		*x = muster.Run{Team: c.Name, Goal: goal, Check: c.Check, Checks: c.Checks, Setup: c.Setup, Review: c.Review,
			Directory: c.Directory, Target: r.site.branch, Model: c.ModelName, Cap: c.Teammates,
			Budget: c.Budgets.Team, Base: base, StartedAt: muster.UnixTime(time.Now()), First: first, Into: r.site.into,
			Tips: []muster.Tip{{Commit: base}}, Extra: x.Extra}
		x.Open = view.TaskIDs(open)
		beginAsConversation(x, c.Conversation != nil && book == nil)
		if book != nil {
			x.Playbook = &muster.Playbook{Name: book.Name, Hash: book.Hash, Tasks: book.Tasks}
		}
	})
	if err != nil {
		return nil, err
	}
	words := prompt.Goal(run, open, needsAttention)
	if c.Conversation != nil {
		words += "\n\n" + prompt.Talk
	}
	if book != nil {
		words += "\n\n" + prompt.Playbook
	}
	return notes, r.createLead(ctx, words, host)
}

func (r *teamRun) createLead(ctx context.Context, words string, host muster.HostID) error {
	// The epoch rises with each life, so that what was said to an earlier one is recognised. A lead that is resumed
	// gets no new prompt: its conversation has the first one.
	leads := config.Stored(cmp.Or(r.site.config.role("lead").Model, r.site.config.ModelName))
	_, err := r.site.roster.Update(ctx, muster.Lead, func(m *muster.Member) {
		m.Status, m.IdleReason, m.Doing, m.Task, m.Host = muster.Working, "", "", 0, host
		m.Epoch++
		m.Model, m.Prompt = leads, cmp.Or(words, m.Prompt)
	})
	if errors.Is(err, muster.ErrNotFound) {
		_, err = r.site.roster.Add(ctx, muster.Member{Name: muster.Lead, Role: "lead", Status: muster.Working,
			Prompt: words, Model: leads, Host: host})
	}
	return err
}

// missingSetup says that a check may have failed because what the repository depends on is not installed: the run has
// no set-up, and the repository's files ask for one. It is the end of a sentence, "" where there is nothing to say.
//
// It is only a guess. So it stands beside what the check has printed, and nothing is decided by it.
func (r *teamRun) missingSetup(ctx context.Context, run muster.Run) string {
	if run.Setup != "" {
		return ""
	}
	proposal, err := propose(ctx, r.site.workspace)
	command := proposal.SetupCommand()
	if err != nil || command == "" {
		return ""
	}
	return ", perhaps because a fresh checkout lacks what it depends on; muster init proposes a set-up, such as " +
		"--setup '" + command + "'"
}

// emptySubmodules names the submodules that are empty in checks, because the user's checkout does not have them.
func (r *teamRun) emptySubmodules(ctx context.Context, run muster.Run) string {
	repo, isGit := r.site.repository.(gitRepository)
	if !isGit {
		return ""
	}
	var empty []string
	names, err := git.Submodules(ctx, repo.Repo, run.Base)
	logDropped(ctx, r.site.log, "looking for submodules", err)
	for path, name := range names {
		if durable.IsMissing(filepath.Join(repo.CommonDir(), "modules", filepath.FromSlash(name), "HEAD")) {
			empty = append(empty, path)
		}
	}
	if len(empty) == 0 {
		return ""
	}
	slices.Sort(empty)
	return fmt.Sprintf(", perhaps because your checkout does not have the submodules %s, so they are empty in lanes "+
		"and checks, too: git submodule update --init --recursive && git submodule absorbgitdirs", text.List(empty, 5))
}

// A check that needs what the sandbox has not fails on the base, too. The rule for a red base would then let every red
// landing pass as no worse than before, so the user is told what else may be the reason.

// confinedHint says what may be the reason that a check fails which passes elsewhere; "" where it is not confined.
func (r *teamRun) confinedHint() string {
	if !r.host.confinesChecks() {
		return ""
	}
	return "; it is confined, without your files, your servers and a network: if it needs them, " +
		"sandbox: {checks: false} in your own config.yaml"
}

// earlierCosts returns what landed tasks of earlier runs have cost here: the median, and of how many. It is "" where
// fewer than three are known with their whole price.
func (r *teamRun) earlierCosts(ctx context.Context) string {
	tasks, err := r.site.board.List(ctx)
	var costs []spend.Dollars
	if err == nil {
		err = spend.NewLedger(r.site.config.Store.Log(), muster.StreamSpend, nil).Look(ctx, func(b *spend.Book) {
			for _, t := range tasks {
				if sum := b.Tasks[t.ID]; t.Landed != nil && sum.Dollars > 0 && sum.Unpriced == 0 {
					costs = append(costs, sum.Dollars)
				}
			}
		})
	}
	logDropped(ctx, r.site.log, "looking what earlier tasks have cost", err)
	if len(costs) < 3 {
		return ""
	}
	slices.Sort(costs)
	return fmt.Sprintf("a task that landed here has cost %v (the median of %d)", costs[len(costs)/2], len(costs))
}

// notifyUser runs the Notification hooks, beside everything else, for what happens from now on and needs the user. The
// function that it returns runs those for what has happened by then, and ends it. The end of ctx kills the hooks.
func (r *teamRun) notifyUser(ctx context.Context) (end func()) {
	if !r.site.hooks.Has(hooks.Notification) {
		return func() {}
	}
	at, err := r.site.journal.Tail(ctx, 0)
	if err != nil {
		logDropped(ctx, r.site.log, "reading the journal for hooks", err)
		return func() {}
	}
	each := func(entries iter.Seq2[journal.Entry, error]) {
		for e, err := range entries {
			if at = max(at, e.Pos); err == nil {
				r.notify(ctx, e.Event)
			}
		}
	}
	following, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { each(r.site.journal.Follow(following, at)) })
	return func() {
		stop()
		working.Wait()
		each(r.site.journal.Read(ctx, at))
	}
}

func (r *teamRun) notify(ctx context.Context, e muster.Event) {
	kind := map[string]string{journal.TaskAttention: "needs_attention", journal.BudgetWarned: "budget",
		journal.BudgetSpent: "budget", journal.RequestCreated: "permission_prompt"}[e.Kind]
	if kind == "" {
		return
	}
	t, _ := r.site.board.Get(ctx, e.Task) // one that cannot be read is only numbered
	_, err := r.site.hooks.Run(ctx, hooks.Moment{Event: hooks.Notification, Names: []string{kind}, Env: r.site.environ,
		Member: e.Member, Team: r.site.config.Name, Task: e.Task, Fields: map[string]any{"notification_type": kind,
			"message": cmp.Or(e.Text("text"), e.Text("reason")), "task_subject": t.Subject}})
	logDropped(ctx, r.site.log, "running a hook", err)
}
