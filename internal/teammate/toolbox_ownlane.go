package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/roster"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/transcript"
	"muster/internal/worktree"
	"muster/llm"
	"muster/tool"
)

// ownLane is the lane of a lead that works alone, while it has no task: its tools run there, and its first change to a
// file makes a task, to which the lane is bound. It is safe for concurrent use. A teammate has none: nil.
type ownLane struct {
	claims *claims
	alone  *alone
	log    muster.Log
	exec   func(ctx context.Context, dir, command string, timeout time.Duration) (output string, exit int, err error)

	mu       sync.Mutex
	lane     muster.Lane // its name is "" while there is none
	news     string      // what the set-up of the lane said, until the model has read it
	reminded bool        // that changes in it do not land by themselves
}

const ownLaneName muster.Name = "lead-work"

// dir returns the directory of the lane, and makes the lane first if the lead works alone. A lane without changes
// follows the target. ok is false if the member works elsewhere.
func (o *ownLane) dir(ctx context.Context) (dir string, ok bool, err error) {
	if o == nil {
		return "", false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	isAlone := o.alone.is(ctx)
	if o.lane.Name == "" && !isAlone {
		return "", false, nil
	}
	tip, err := o.claims.lander.Target(ctx)
	if err != nil {
		return "", false, err
	}
	if o.lane.Name != "" && (!isAlone || o.lane.Base != tip) {
		if err := o.drop(ctx); err != nil {
			return "", false, err
		}
	}
	if o.lane.Name == "" && isAlone {
		if o.lane, err = o.claims.lanes.create(ctx, ownLaneName, muster.Task{}, tip); err != nil {
			return "", false, err
		}
		if o.claims.readyLane != nil {
			o.news = o.claims.readyLane(ctx, o.lane)
		}
	}
	if o.lane.Name == "" {
		return "", false, nil
	}
	dir, err = o.claims.worktrees.Workdir(ctx, o.lane.Name)
	return dir, true, err
}

// drop removes the lane if it has no changes.
func (o *ownLane) drop(ctx context.Context) error {
	if o.claims.jobs.Running() > 0 {
		return nil
	}
	if changed, err := o.claims.worktrees.Changed(ctx, o.lane.Name); err != nil || changed {
		return err
	}
	o.claims.lanes.leave(ctx, o.lane.Name)
	if err := o.claims.worktrees.Remove(ctx, o.lane.Name, false); err != nil && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	o.lane, o.news = muster.Lane{}, ""
	return nil
}

// find finds the lane that the lead had when its last process ended.
func (o *ownLane) find(ctx context.Context) error {
	if o == nil {
		return nil
	}
	run, err := o.claims.run(ctx)
	if err != nil {
		return err
	}
	task, _ := o.claims.CurrentTask()
	lanes, err := o.claims.worktrees.List(ctx)
	for _, lane := range lanes {
		if lane.TaskID == 0 && lane.Name != task.Worktree && lane.CreatedAt >= run.StartedAt &&
			worktree.OccupantOf(lane).Member == o.claims.name && o.claims.lanes.occupy(ctx, lane.Name) == nil {
			o.lane = lane
		}
	}
	return err
}

// get returns the lane; ok is false if there is none.
func (o *ownLane) get() (lane muster.Lane, ok bool) {
	if o == nil {
		return lane, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lane, o.lane.Name != ""
}

// forget notes that the lane has become a task's.
func (o *ownLane) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lane, o.reminded = muster.Lane{}, false
}

// leave ends the use of the lane with the run. Without changes to tracked files it is removed, and untracked files go
// to the archive. What else has changed stays in the lane.
func (o *ownLane) leave(ctx context.Context) error {
	if o == nil || o.lane.Name == "" {
		return nil
	}
	o.claims.jobs.Stop()
	if err := o.drop(ctx); err != nil || o.lane.Name == "" {
		return err
	}
	files, err := o.tracked(ctx)
	if err == nil && len(files) == 0 {
		_, err = o.claims.worktrees.Archive(ctx, o.lane.Name)
		return err
	}
	o.claims.lanes.leave(ctx, o.lane.Name)
	return err
}

// tracked returns the files that git tracks and that are not as in the commit from which the lane was made.
func (o *ownLane) tracked(ctx context.Context) ([]string, error) {
	if changed, err := o.claims.worktrees.Changed(ctx, o.lane.Name); err != nil || !changed {
		return nil, err
	}
	dir, err := o.claims.worktrees.Workdir(ctx, o.lane.Name)
	if err != nil {
		return nil, err
	}
	out, exit, err := o.exec(ctx, dir, "git diff --name-only --no-renames "+o.lane.Base, time.Minute)
	if err == nil && exit != 0 {
		err = fmt.Errorf("git diff in lane %s: exit %d: %s", o.lane.Name, exit, text.CutBytes(out, 200))
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), err
}

// reminder is what the lead reads, once, when it ends its turn and has changed tracked files without a task.
func (o *ownLane) reminder(ctx context.Context) string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lane.Name == "" || o.reminded {
		return ""
	}
	files, err := o.tracked(ctx)
	if err != nil || len(files) == 0 {
		o.claims.diary.dropped(ctx, "looking at the changes without a task", err)
		return ""
	}
	o.reminded = true
	return fmt.Sprintf("You have changed %s, and this has not landed. If it should land, call complete_task with a "+
		"summary. If not, undo it with git checkout. If you end again without either, it stays in the worktree, and "+
		"the run does not count as done.", text.EscapeTags(text.List(files, maxScratchFiles)))
}

// around starts a task before the first change to a file, and tells the model of it. It is inside of the permissions
// and hooks, which may refuse the call.
func (o *ownLane) around(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	started := ""
	if o != nil && writesFiles(code.AsPatch(c).Name) && o.canStart(ctx) {
		text, err := o.startTask(ctx)
		if err != nil {
			return tool.FromError(tool.Classify(err))
		}
		started = "\n[" + text + "]"
	}
	r, err := next(ctx, c)
	if o != nil && err == nil {
		o.mu.Lock()
		if o.news != "" {
			r.Parts = append(r.Parts, llm.Text{Text: "\n" + o.news})
			o.news = ""
		}
		o.mu.Unlock()
		if started != "" {
			r.Parts = append(r.Parts, llm.Text{Text: started})
		}
	}
	return r, err
}

// canStart reports whether the member works alone and has no task.
func (o *ownLane) canStart(ctx context.Context) bool {
	if _, has := o.claims.CurrentTask(); has {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lane.Name != "" || o.alone.is(ctx)
}

// complete makes a task of what commands have changed, so that it can be completed. text says why there is none.
func (o *ownLane) complete(ctx context.Context) (text string, err error) {
	const nothing = "You hold no task: call claim_task first."
	lane, ok := o.get()
	if !ok {
		return nothing, nil
	}
	if changed, err := o.claims.worktrees.Changed(ctx, lane.Name); err != nil || !changed {
		return "You have changed no file, so there is nothing to land. End your turn with the answer.", err
	}
	_, err = o.startTask(ctx)
	return "", err
}

// maxSubject is how many bytes of the goal name the task that is made of it.
const maxSubject = 72

// startTask makes a task of what the user asked for last, and claims it with the lane.
func (o *ownLane) startTask(ctx context.Context) (string, error) {
	if _, _, err := o.dir(ctx); err != nil {
		return "", err
	}
	run, err := o.claims.run(ctx)
	if err != nil {
		return "", err
	}
	words := cmp.Or(run.Goal, run.FirstWords)
	if run.Goal == "" { // a conversation: its first words may be a greeting
		mail, err := transcript.LastDelivered(ctx, o.log, o.claims.name, transcript.MaxShown)
		if err != nil {
			return "", err
		}
		for _, m := range mail {
			if m.From == muster.User {
				words = m.Content
			}
		}
	}
	subject, rest, _ := strings.Cut(strings.TrimSpace(words), "\n")
	if len(subject) > maxSubject || rest != "" {
		rest = words
	}
	subject = cmp.Or(text.CutBytes(subject, maxSubject), "the changes")
	said, err := o.claims.hooks.created(ctx, subject, rest)
	if err != nil {
		return "", err
	}
	if subject, err = o.unused(ctx, run, subject); err != nil {
		return "", err
	}
	t, err := o.claims.board.Create(ctx, board.Draft{Subject: subject, Description: rest, CreatedBy: o.claims.name})
	if err != nil {
		return "", err
	}
	if _, err := o.claims.Claim(ctx, t.ID); err != nil {
		return "", err
	}
	return strings.TrimSpace(fmt.Sprintf("Task #%d (%s) was made for your changes and is yours. When it is done, call "+
		"complete_task with a summary. %s", t.ID, text.EscapeTags(subject), said)), nil
}

// unused returns the subject, with a number if the run has a task of that subject.
func (o *ownLane) unused(ctx context.Context, run muster.Run, subject string) (string, error) {
	all, err := o.claims.board.List(ctx)
	name := subject
	for n := 2; slices.ContainsFunc(all, func(t muster.Task) bool { return run.Has(t) && t.Subject == name }); n++ {
		name = fmt.Sprintf("%s (%d)", subject, n)
	}
	return name, err
}

// alone tells whether the lead works alone: until it has a teammate or two open tasks. It has the tools of a worker
// then. A run with a playbook is for a team from the start.
type alone struct {
	run    func(context.Context) (muster.Run, error)
	board  *board.Board
	roster *roster.Roster
	diary  *diary
	found  guarded[*bool] // what was found last; nil: look again
}

// mayEnd has the records looked at again: the lead has made a task, or spawned a teammate.
func (a *alone) mayEnd() {
	a.found.change(func(found **bool) {
		if *found != nil && **found {
			*found = nil
		}
	})
}

func (a *alone) is(ctx context.Context) bool {
	isAlone, err := a.look(ctx)
	if err != nil {
		a.diary.dropped(ctx, "reading whether the lead works alone", err)
	}
	return isAlone
}

func (a *alone) look(ctx context.Context) (isAlone bool, err error) {
	if a == nil {
		return false, nil
	}
	if found := a.found.get(); found != nil {
		return *found, nil
	}
	run, errRun := a.run(ctx)
	tasks, errTasks := a.board.List(ctx)
	members, err := a.roster.List(ctx)
	if err := cmp.Or(errRun, errTasks, err); err != nil {
		return false, err
	}
	n := 0
	for _, t := range tasks {
		if t.Open() {
			n++
		}
	}
	for _, m := range members {
		if m.Name != muster.Lead && (m.Status != muster.Shutdown || m.JoinedAt >= run.StartedAt) {
			n += 2
		}
	}
	isAlone = run.Cap == 0 || run.Playbook == nil && n < 2
	a.set(isAlone)
	return isAlone, nil
}

func (a *alone) set(isAlone bool) { a.found.change(func(found **bool) { *found = &isAlone }) }
