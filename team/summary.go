package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/teammate"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/journal"
	"muster/llm"
)

// Summary is how a run ended.
type Summary struct {
	Run muster.Run
	// Code: 0 all done, 1 an error, 3 stopped with work left.
	Code int
	// GoOn is what to type behind muster resume, where a budget has stopped the run.
	GoOn string
	// Text is the lead's last words, or why the run stopped; where Off is not empty its first line says that, and what
	// to do.
	Text string
	// Verified is false when no check is set.
	Verified bool
	// Red says that the target's check was red at the end.
	Red bool
	// Tasks of the board, by id.
	Tasks []muster.Task
	// Unread says, by id, why the record of a task of this run cannot be read: whether it is open is not known.
	Unread map[muster.TaskID]string
	// Off are the tasks that landed in this run and are no longer on its target: somebody has moved or removed it.
	Off []muster.TaskID
	// Forward is what became of the branch that is moved to the target at the end.
	Forward Forward
	// Detached says that no branch is checked out that could take the work.
	Detached bool
	// Left is what members have changed and what did not land. Where something of it was not given up on purpose,
	// Code is not 0.
	Left []Leftover
}

// conclude writes the end of the run and gathers its summary. A run that was interrupted or met a limit has not ended:
// it can be resumed.
func (r *teamRun) conclude(ctx context.Context, end teammate.End, err error) (Summary, error) {
	var stop *teammate.TeamStop
	isLimit := errors.As(err, &stop)
	// A key that is refused is the user's to mend, and not a limit of the team.
	if isLimit && llm.KindOf(err) == llm.Denied {
		isLimit, end.Code = false, 1
		err = muster.Errorf(muster.Invalid, "the model cannot be used: %w", stop.Err).
			WithHint("mend that, then: muster resume")
	}
	over, isOver := exceeded(err)
	goOn, hint := "", ""
	if isOver {
		goOn, hint = over.GoOn(), over.Hint()
		r.spending.tell(ctx, journal.BudgetSpent, over, over.Error())
	}
	if isLimit {
		end = teammate.End{Code: 3, Text: stop.Error() + hint}
	} else if err != nil {
		return r.interrupted(ctx, end, err), err
	}
	// What a member's end cut short (news, an archived lane) is done now, not at the next start.
	err = r.site.settle(ctx)
	if err == nil && !isLimit {
		err = r.finalizer.stopOrphans(ctx)
	}
	var run muster.Run
	if err == nil {
		run, err = r.site.runs.Change(ctx, func(x *muster.Run) {
			if !isLimit {
				x.EndedAt = muster.UnixTime(time.Now())
			}
		})
	}
	if err != nil {
		return Summary{}, err
	}
	sum, err := r.summarize(ctx, run, end)
	sum.GoOn = goOn
	return sum, err
}

// interrupted returns the summary of a run that was stopped by an error. Its records stay as they are.
func (r *teamRun) interrupted(ctx context.Context, end teammate.End, cause error) Summary {
	run, err := r.site.runs.Get(ctx)
	logDropped(ctx, r.site.log, "reading the run's record after it was stopped", err)
	why := "stopped: " + muster.PlainText(cause)
	if errors.Is(cause, muster.CauseUser) {
		why = "interrupted; the state is kept"
	}
	r.site.emit(ctx, journal.RunNote, "", map[string]any{"text": why, "stop": true})
	tasks, err := r.site.board.List(ctx)
	logDropped(ctx, r.site.log, "reading the board after the run was stopped", err)
	return Summary{Run: run, Code: max(end.Code, 1), Text: muster.PlainText(cause), Tasks: tasks}
}

// summarize gathers the summary of a run whose record is written, and tells its end. It reads the tasks after the end
// was written: what is made later belongs to the next run.
func (r *teamRun) summarize(ctx context.Context, run muster.Run, end teammate.End) (Summary, error) {
	tasks, err := r.site.board.List(ctx)
	if err != nil {
		return Summary{}, err
	}
	// A task that somebody has added while the run ended is nobody's yet. The run is over, but not all is done.
	if open, late := run.Left(tasks); late && end.Code == 0 {
		why := fmt.Sprintf("%s\n%s came while the run ended: muster resume goes on.", end.Text,
			text.Count(len(open), "open task"))
		end = teammate.End{Code: 3, Text: strings.TrimSpace(why)}
	}
	run.Target = r.site.branch // where this process landed, whatever the record says by now
	sum := Summary{Run: run, Code: end.Code, Text: end.Text, Tasks: tasks, Verified: run.Check != "",
		Red: run.BaseCheck == workspace.BaseRed, Unread: map[muster.TaskID]string{}}
	for _, u := range r.site.board.Corrupt() {
		// A task of an earlier run does not make this one incomplete.
		if run.HasID(u.ID) {
			sum.Unread[u.ID] = u.Why
			sum.Code = max(sum.Code, 3)
		}
	}
	r.findLeftovers(ctx, &sum)
	r.verifyLanded(ctx, &sum)
	r.verifyTarget(ctx, &sum)
	r.noteReason(ctx, &sum)
	// Before the end is told: a process that is killed here leaves a run whose end resume tells, and moves the branch.
	r.forward(ctx, &sum)
	r.site.emit(ctx, journal.RunEnded, muster.Lead, r.endFields(ctx, sum))
	return sum, nil
}

// endFields returns what the last event of the run says.
func (r *teamRun) endFields(ctx context.Context, sum Summary) map[string]any {
	var trouble journal.Trouble
	for e, err := range r.site.journal.Read(ctx, 0) {
		if err == nil && e.At >= sum.Run.StartedAt { // the rest only counts less
			trouble.Add(e.Event)
		}
	}
	fields := map[string]any{"text": sum.Text, "code": sum.Code}
	for name, n := range map[string]int{"refused": trouble.Refused, "not_started": trouble.NotStarted} {
		if n > 0 {
			fields[name] = n
		}
	}
	return fields
}

// noteReason writes into the run's record why it stops with work left, for those who look at the team later.
func (r *teamRun) noteReason(ctx context.Context, sum *Summary) {
	why := ""
	if sum.Code == 3 {
		why, _, _ = strings.Cut(strings.TrimSpace(sum.Text), "\n")
		needs := slices.IndexFunc(sum.Tasks, func(x muster.Task) bool {
			return x.Status == muster.NeedsAttention && sum.Run.Has(x)
		})
		isLost := func(l Leftover) bool { return !l.Dropped }
		switch {
		case sum.Run.EndedAt == 0, len(sum.Off)+len(sum.Unread) > 0, slices.ContainsFunc(sum.Left, isLost),
			slices.ContainsFunc(sum.Tasks, muster.Task.Open):
			// The text says it. Otherwise it is the lead's.
		case needs >= 0:
			why = fmt.Sprintf("task #%d needs you: %s", sum.Tasks[needs].ID, sum.Tasks[needs].Result)
		case sum.Red:
			why = "the check is red on " + r.site.branch + ": " + sum.Run.Check
		}
	}
	if why = text.CutBytes(text.OneLine(why), 300); why == sum.Run.Stopped {
		return
	}
	run, err := r.site.runs.Change(ctx, func(x *muster.Run) { x.Stopped = why })
	logDropped(ctx, r.site.log, "noting why the run stopped", err)
	if err == nil {
		run.Target = sum.Run.Target
		sum.Run = run
	}
}

// missingTasks are the tasks whose commits are on the target no longer, and the commits that together hold the work of
// all.
func (r *teamRun) missingTasks(
	ctx context.Context, tasks []muster.Task,
) (ids []muster.TaskID, heads []string, err error) {
	var commits []string
	for _, x := range tasks {
		if x.Landed != nil && x.Landed.Commit != "" {
			commits = append(commits, x.Landed.Commit)
		}
	}
	if len(commits) == 0 {
		return nil, nil, nil
	}
	off, heads, err := r.site.repository.MissingCommits(ctx, r.site.target(), commits)
	gone := map[string]bool{}
	for _, c := range off {
		gone[c] = true
	}
	for _, x := range tasks {
		if x.Landed != nil && gone[x.Landed.Commit] {
			ids = append(ids, x.ID)
		}
	}
	return ids, heads, err
}

// verifyLanded looks whether all that landed in the run is still there: somebody may have moved the target, or removed
// it.
func (r *teamRun) verifyLanded(ctx context.Context, sum *Summary) {
	mine := slices.DeleteFunc(slices.Clone(sum.Tasks), func(x muster.Task) bool { return !sum.Run.Has(x) })
	ids, heads, err := r.missingTasks(ctx, mine)
	said := ""
	switch {
	case err != nil:
		said = fmt.Sprintf("Whether all that landed is still on %s cannot be told: %s", r.site.branch,
			muster.PlainText(err))
	case len(ids) > 0:
		sum.Off = ids
		said = fmt.Sprintf("%s no longer on %s, which somebody has moved or removed; to have it back: %s",
			landedAndNow(ids), r.site.branch, r.recoveryCommand(ctx, heads))
	default:
		return
	}
	sum.Text = strings.TrimSpace(said + "\n" + sum.Text)
	sum.Code = cmp.Or(sum.Code, 3)
}

// verifyTarget looks whether the check is red on the target. Where somebody has moved it to a commit of which no check
// is known, the check runs there. Where no task was made, the answer was the goal, and the target does not matter.
func (r *teamRun) verifyTarget(ctx context.Context, sum *Summary) {
	o, err := r.members.progress(ctx)
	logDropped(ctx, r.site.log, "looking whether the run had tasks", err)
	if err != nil || !o.HadTasks || sum.Code != 0 {
		return
	}
	if l, ok := r.site.lander.(*landing.Lander); ok {
		res, isRun, err := l.CheckMoved(ctx)
		switch {
		case err != nil:
			sum.Code, sum.Text = 3, fmt.Sprintf("Whether the check passes on %s cannot be told: %s\n%s", r.site.branch,
				muster.PlainText(err), sum.Text)
		case isRun:
			sum.Red = !res.Green
		}
	}
	if sum.Red {
		sum.Code = cmp.Or(sum.Code, 3)
	}
}

func (r *teamRun) recoveryCommand(ctx context.Context, heads []string) string {
	if at, err := r.site.repository.Resolve(ctx, r.site.target()); err == nil && at != "" {
		return fmt.Sprintf("git switch %s && git merge %s", r.site.branch, strings.Join(heads, " "))
	}
	way := fmt.Sprintf("git branch %s %s", r.site.branch, heads[0])
	if more := heads[1:]; len(more) > 0 {
		way += fmt.Sprintf(" && git switch %s && git merge %s", r.site.branch, strings.Join(more, " "))
	}
	return way
}

// validateTarget refuses to go on where the target is gone, with the commit to bring it back at, or checked out.
func (r *teamRun) validateTarget(ctx context.Context) error {
	err := r.site.repository.ValidateTarget(ctx, r.site.target())
	gone, ok := errors.AsType[*muster.Error](err)
	if !ok || !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	if tasks, lerr := r.site.board.List(ctx); lerr == nil {
		if _, heads, lerr := r.missingTasks(ctx, tasks); lerr == nil && len(heads) > 0 {
			return gone.WithHint("bring it back: %s", r.recoveryCommand(ctx, heads))
		}
	}
	return err
}

func landedAndNow(ids []muster.TaskID) string {
	const most = 20
	subject, verb := "Tasks", "are"
	if len(ids) == 1 {
		subject, verb = "Task", "is"
	}
	names := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids[:min(len(ids), most)]), "[]"), " ", ", ")
	if more := len(ids) - most; more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("%s %s landed and %s", subject, names, verb)
}
