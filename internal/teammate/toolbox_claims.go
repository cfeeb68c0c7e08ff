package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/collision"
	"muster/internal/failpoint"
	"muster/internal/hooks"
	"muster/internal/landing"
	"muster/internal/prompt"
	"muster/internal/tool/code"
)

// claims is the member's hold on its task. The board alone says whether a claim still holds: check reads it before a
// tool changes something, and when the member decides what to do next.
type claims struct {
	name        muster.Name
	role        string
	mayWrite    bool // files, by its role
	requirePlan bool
	board       *board.Board
	run         func(context.Context) (muster.Run, error)
	worktrees   Lanes
	lander      Lander
	lanes       laneKeeper
	plans       *plans
	hooks       *userHooks
	jobs        *code.Jobs
	collisions  *collision.Watcher
	own         *ownLane                                           // nil: the member has none
	readyLane   func(ctx context.Context, lane muster.Lane) string // nil: there is no set-up
	review      func(context.Context, landing.ReviewRequest) (landing.ReviewVerdict, error)
	diary       *diary
	presence    display
	phase       rounds
	hasRead     func(muster.MessageID) bool // the member's model was given to read it

	held guarded[claim] // its task has no id when the member has none
}

type display interface {
	Me() muster.Member
	setStatus(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error
	showActivity(ctx context.Context, what string) (done func())
}

type rounds interface {
	noteChange()
	noteOpen(call string)
	extend()
	end()
}

// claim is one claim: the task as it was read last, whose id and fence are the claim's key, and what this process has
// done about it.
type claim struct {
	task           muster.Task
	presented      bool // a tool call has returned the task's text to the owner
	landingResumed bool // an interrupted landing of it was gone on with while the owner was idle
	warnedIgnored  bool // the owner was told that its lane has ignored files only
	wrote          bool // a tool has written files in the lane
	warnedLost     bool // the owner was told that what it wrote is gone
	triedIdle      bool // the owner has called idle

	files    string        // the fingerprint of the lane, when it was looked at last
	lookedAt time.Time     // when that was
	lookTook time.Duration // and how long it took
}

// CurrentTask returns the claimed task as it was read last.
func (c *claims) CurrentTask() (muster.Task, bool) {
	h := c.held.get()
	return h.task, h.task.ID != 0
}

func (c *claims) setTask(t muster.Task) {
	c.held.change(func(h *claim) {
		if claimKey(h.task) != claimKey(t) {
			*h = claim{} // what was known of another claim says nothing of this one
			c.phase.noteChange()
		}
		h.task = t
	})
}

func (c *claims) noteWrite() { c.held.change(func(h *claim) { h.wrote = h.task.ID != 0 }) }
func (c *claims) clearTask() { c.held.change(func(h *claim) { *h = claim{} }) }

func (c *claims) endTask() {
	c.clearTask()
	if c.name != muster.Lead {
		c.phase.end()
	}
}

func (c *claims) watch(ctx context.Context) <-chan struct{} { return c.board.Watch(ctx) }

func (c *claims) dir(ctx context.Context) (string, error) {
	t, ok := c.CurrentTask()
	if !ok {
		return "", nil
	}
	return c.worktrees.Workdir(ctx, t.Worktree)
}

func (c *claims) claimHooks(ctx context.Context, text string) (string, error) {
	t, ok := c.CurrentTask()
	if !ok || text == "" || !c.hooks.has(hooks.TaskClaimed) {
		return text, nil
	}
	dir, err := c.dir(ctx)
	if err != nil {
		return text, err
	}
	o, err := c.hooks.run(ctx, hooks.TaskClaimed, dir, nil, taskFields(t))
	if o.Blocked { // the claim stands
		o.Context = append(o.Context, o.Reason)
	}
	if said := hookTexts(o.Context); said != "" {
		text += "\n" + said
	}
	return text, err
}

// find reads from the board what the member has claimed: a claim outlives its owner's process. The member becomes the
// occupant of the lane again. If an earlier owner still lives in it, the task gets a fresh lane. If the lane is gone,
// the member's tools say so.
func (c *claims) find(ctx context.Context) error {
	all, err := c.board.Claimed(ctx)
	i := slices.IndexFunc(all, func(t muster.Task) bool { return t.Owner == c.name })
	if err != nil || i < 0 {
		return err
	}
	t := all[i]
	c.setTask(t)
	if t.Worktree == "" {
		return nil
	}
	err = c.lanes.occupy(ctx, t.Worktree)
	if errors.Is(err, muster.ErrHeld) {
		if _, _, err = c.lanes.forTask(ctx, &t, c.own); err == nil {
			c.setTask(t)
		}
	}
	return ignoreLostClaim(c.onClaimLost(ctx, err))
}

func (c *claims) archiveAbandoned(ctx context.Context) { c.lanes.archiveAbandoned(ctx) }

// nextTask returns the text of a task that was claimed and not read, or of the next one; "" for none.
func (c *claims) nextTask(ctx context.Context) (text string, key muster.MessageID, err error) {
	if err := ignoreLostClaim(c.verify(ctx)); err != nil {
		return "", "", err
	}
	h := c.held.get()
	if h.task.ID == 0 {
		t, ok, err := c.board.ClaimNext(ctx, board.Claim{Owner: c.name, Role: c.role,
			Source: muster.SourceAuto, OnlyOwn: !c.mayWrite})
		if err != nil || !ok {
			return "", "", ignoreLostClaim(err)
		}
		// The claim is on the board. After a crash here its owner finds it, and has not read its text.
		failpoint.Hit("teammate.claimed")
		c.setTask(t)
		h.task = t
		// Before the lane is made, which may take long: an idle owner would seem to leave its task alone.
		if err := c.presence.setStatus(ctx, muster.Working, "", ""); err != nil {
			return "", "", ignoreLostClaim(err)
		}
	} else if c.hasReadTask() {
		return "", "", nil
	}
	if text, key, err = c.taskPrompt(ctx, h.task); err == nil {
		text, err = c.claimHooks(ctx, text)
	}
	return text, key, ignoreLostClaim(err)
}

// Claim claims a task for a tool call and returns its text. The result presents the task. The claim's key is not noted
// in the transcript, so that after a crash before the result the owner gets the text at its next rest.
func (c *claims) Claim(ctx context.Context, id muster.TaskID) (string, error) {
	if t, ok := c.CurrentTask(); ok {
		if t.ID == id || id == 0 {
			return fmt.Sprintf("Task #%d is yours already.", t.ID), nil
		}
		return "", muster.Errorf(muster.Held, "you hold task %d: call complete_task or release_task first", t.ID)
	}
	if id == 0 {
		return c.claimNext(ctx)
	}
	role, err := c.roleFor(ctx, id)
	if err != nil {
		return "", err
	}
	t, err := c.board.Claim(ctx, id, board.Claim{Owner: c.name, Role: role, Source: muster.SourceManual})
	if errors.Is(err, muster.ErrHeld) { // perhaps by the member itself: a claim whose answer was an error may stand
		if now, e := c.board.Get(ctx, id); e == nil && now.Owner == c.name && now.Claimed() {
			t, err = now, nil
		}
	}
	if err != nil {
		return "", err
	}
	return c.present(ctx, t)
}

// claimNext claims the next task that the member may take, for a tool call.
func (c *claims) claimNext(ctx context.Context) (string, error) {
	t, ok, err := c.board.ClaimNext(ctx, board.Claim{Owner: c.name, Role: c.role, Source: muster.SourceManual,
		OnlyOwn: !c.mayWrite && c.name != muster.Lead})
	if err != nil {
		return "", err
	}
	if !ok {
		return "", muster.Errorf(muster.NotFound, "no task is ready for you").
			WithHint("task_list shows all; a task for another role needs its task_id.")
	}
	return c.present(ctx, t)
}

// present returns the text of a task that a tool call has claimed.
func (c *claims) present(ctx context.Context, t muster.Task) (string, error) {
	c.setTask(t)
	text, _, err := c.taskPrompt(ctx, t)
	if err == nil && text == "" {
		err = muster.Errorf(muster.Invalid, "task %d could not start: no lane could be made for it", t.ID)
	}
	if err == nil {
		text, err = c.claimHooks(ctx, text)
	}
	c.held.change(func(h *claim) { h.presented = true })
	if c.name == muster.Lead {
		c.phase.extend()
	}
	return text, err
}

// roleFor returns the role in which the member claims a task: its own. A lead without teammates has them all.
func (c *claims) roleFor(ctx context.Context, id muster.TaskID) (string, error) {
	role := c.role
	run, err := c.run(ctx)
	if err == nil && c.name == muster.Lead && run.Cap == 0 {
		var t muster.Task
		t, err = c.board.Get(ctx, id)
		role = cmp.Or(t.ClaimRole, role)
	}
	return role, err
}

// taskPrompt gives the claimed task its lane, if it has none, and returns what its owner reads: "" if the claim was
// lost, or released because no lane could be made.
func (c *claims) taskPrompt(ctx context.Context, t muster.Task) (string, muster.MessageID, error) {
	_, isOwn := c.own.get()
	lane, had, err := c.lanes.forTask(ctx, &t, c.own)
	switch {
	case err == nil:
	case context.Cause(ctx) != nil: // not the lane's fault: the claim stands, and whoever takes over makes the lane
		return "", "", context.Cause(ctx)
	case errors.Is(err, muster.ErrFenced), errors.Is(err, muster.ErrNotFound) && c.verify(ctx) != nil:
		c.clearTask()
		return "", "", nil
	default:
		note := fmt.Sprintf("no lane could be made: %v", err)
		if err = c.release(ctx, "no lane", note, true); err == nil {
			err = c.diary.tellLead(ctx, muster.MailError, t.ID, fmt.Sprintf("Task #%d could not start: %s", t.ID, note))
		}
		return "", "", err
	}
	c.setTask(t)
	run, err := c.run(ctx)
	if err != nil {
		return "", "", err
	}
	t.RequirePlan = t.RequirePlan || c.name != muster.Lead && c.requirePlan
	if t, err = c.board.WithBlocks(ctx, t); err != nil {
		return "", "", err
	}
	planned, err := c.plans.isApproved(ctx, t)
	if err != nil {
		return "", "", err
	}
	text := prompt.Claimed(t, prompt.Work{BuiltOn: c.tasks(ctx, t.DependsOn), Waiting: c.tasks(ctx, t.Blocks),
		Lane: lane, Changes: had, IsOwn: isOwn || c.hasReadTask(), Check: run.CheckText(), Planned: planned})
	// Before the text that lets the member begin: none of its commands runs in the lane yet.
	if c.readyLane != nil && had == "" {
		text = strings.TrimSuffix(text+"\n"+c.readyLane(ctx, lane), "\n")
	}
	return "<auto-claimed>\n" + text + "\n</auto-claimed>", claimKey(t), nil
}

func (c *claims) hasReadTask() bool {
	h := c.held.get()
	return h.presented || c.hasRead(claimKey(h.task))
}

// tasks returns those of the tasks that can be read: they are only mentioned to the owner of another one.
func (c *claims) tasks(ctx context.Context, ids []muster.TaskID) (found []muster.Task) {
	for _, id := range ids {
		if t, err := c.board.Get(ctx, id); err == nil {
			found = append(found, t)
		}
	}
	return found
}

// isLostClaim reports whether an error says that a claim is over: the task was taken or deleted.
func isLostClaim(err error) bool {
	return errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound)
}

// ignoreLostClaim drops an error that only says that another was faster, or took the task.
func ignoreLostClaim(err error) error {
	if isLostClaim(err) || errors.Is(err, muster.ErrHeld) {
		return nil
	}
	return err
}

// Release gives the current task back for a tool call. It counts as an attempt. It is Held when the work has landed.
func (c *claims) Release(ctx context.Context, id muster.TaskID, reason string) error {
	if t, ok := c.CurrentTask(); !ok || t.ID != id {
		return muster.Errorf(muster.Invalid, "you do not hold task %d", id)
	}
	err := c.giveUp(ctx, board.Release{Reason: "cannot", Note: reason, Counts: true, By: c.name})
	if err == nil || errors.Is(err, muster.ErrHeld) {
		c.endTask()
	}
	return err
}

// release releases the current task, if there is one, and keeps its lane. That it has landed is no error. The next
// owner reads the note; after too many attempts the task needs attention.
func (c *claims) release(ctx context.Context, reason, note string, isAttempt bool) error {
	err := c.giveUp(ctx, board.Release{Reason: reason, Note: note, Counts: isAttempt, By: c.name})
	if errors.Is(err, muster.ErrHeld) {
		return nil
	}
	return err
}

// giveUp releases the current task. It is Held when the work has landed. The order keeps the next owner alone in the
// lane: commands stop, the member leaves, a landing is cancelled, and only then the task goes back to the board.
func (c *claims) giveUp(ctx context.Context, r board.Release) error {
	t, ok := c.CurrentTask()
	if !ok {
		return nil
	}
	// The claim is forgotten whatever fails below: a member that lives on is not stuck with a task that it gives back.
	defer c.clearTask()
	c.jobs.Stop()
	c.lanes.leave(ctx, t.Worktree)
	if err := c.plans.cancel(ctx, t, "the task was given back"); err != nil {
		return err
	}
	if t.Worktree != "" {
		if err := c.worktrees.Release(ctx, t.Worktree); err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
	}
	// A landing in an unknown state must not land for the next owner. Revoke is Held when it has landed.
	now, err := c.board.Get(ctx, t.ID)
	if err == nil && now.Status == muster.Landing && now.Fence == t.Fence {
		err = c.lander.Revoke(ctx, t.ID, t.Fence)
	}
	if err == nil {
		_, err = c.board.Release(ctx, t.ID, t.Fence, r)
	}
	if isLostClaim(err) { // taken from the member, or deleted: there is nothing to give back
		return nil
	}
	return err
}

func (c *claims) revoke(ctx context.Context, t muster.Task, reason string) error {
	// The right to land ends before the claim: work that landed in between would be of a task that is on the board.
	if t.Worktree != "" {
		if err := c.lander.Revoke(ctx, t.ID, t.Fence); err != nil {
			return err
		}
	}
	_, err := c.board.Revoke(ctx, t.ID, t.Fence, c.name, reason)
	return err
}

// check reads the claimed task again. It is Fenced or NotFound when the task is no longer the member's.
func (c *claims) check(ctx context.Context) error {
	t, ok := c.CurrentTask()
	if !ok {
		return nil
	}
	now, err := c.board.Get(ctx, t.ID)
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return muster.Errorf(muster.NotFound, "task %d was deleted: stop working on it", t.ID)
	case errors.Is(err, muster.ErrCorrupt):
		return nil // the landing asks again
	case err == nil && now.Status == muster.Completed: // by the user, perhaps, in the owner's name
		return muster.Errorf(muster.Fenced, "task %d is completed: stop working on it", t.ID)
	case err == nil && (now.Fence != t.Fence || now.Owner != c.name):
		return muster.Errorf(muster.Fenced, "task %d was taken from you (it is %s now): stop working on it",
			t.ID, now.Status)
	case err == nil:
		c.setTask(now)
	}
	return err
}

// verify checks the claim before a tool changes something for it, and drops a lost one.
func (c *claims) verify(ctx context.Context) error { return c.onClaimLost(ctx, c.check(ctx)) }

// onClaimLost drops the claim if err says that it is lost and the board agrees, and returns err. It stops the member's
// commands first, because the lane may be the next owner's; a lane that no longer belongs to the task is archived.
func (c *claims) onClaimLost(ctx context.Context, err error) error {
	if !isLostClaim(err) {
		return err
	}
	t, had := c.CurrentTask()
	if had {
		c.diary.log.InfoContext(ctx, "claim lost", "task", t.ID, "fence", t.Fence, "cause", err)
		switch now := c.check(ctx); {
		case now == nil && errors.Is(err, muster.ErrFenced): // its landing was revoked, and whoever did it has died
			if e := c.release(ctx, "its right to land was taken back", "", false); e != nil {
				return e
			}
			c.endTask()
			return err
		case !isLostClaim(now):
			return err // the claim stands: something else is missing, the lane or the target
		}
	}
	c.jobs.Stop()
	c.endTask()
	if !had || t.Worktree == "" {
		return err
	}
	// A void plan does no harm.
	c.diary.dropped(ctx, "cancelling the plans of a lost task", c.plans.cancel(ctx, t, "the task was taken back"))
	if now, e := c.board.Get(ctx, t.ID); errors.Is(e, muster.ErrNotFound) || e == nil && now.Worktree != t.Worktree {
		c.lanes.archive(ctx, t.Worktree)
	} else {
		c.lanes.leave(ctx, t.Worktree)
	}
	return err
}

// conflicts returns the news of collisions. wrote says that the lane is to be looked at, in the background.
func (c *claims) conflicts(ctx context.Context, wrote bool) (text string) {
	t, _ := c.CurrentTask()
	if wrote {
		c.collisions.Changed(t.Worktree)
	}
	if notices := c.collisions.Take(c.name, t.ID); len(notices) > 0 {
		run, err := c.run(ctx)
		c.diary.dropped(ctx, "reading the target for a reminder", err)
		text = prompt.Collisions(notices, t.ID, strings.TrimPrefix(run.Target, "refs/heads/"))
	}
	return text
}

const lookPause = 20 // the pause between looks at the files, as a multiple of the time that a look takes

// lookAtFiles reports whether the files of the lane have changed since the last look. ok is false if it did not look:
// it looks rarely, unless isDue says that a limit depends on it.
func (c *claims) lookAtFiles(ctx context.Context, isDue bool) (changed, ok bool) {
	h := c.held.get()
	if h.task.Worktree == "" || !isDue && time.Since(h.lookedAt) < lookPause*h.lookTook {
		return false, false
	}
	began := time.Now()
	files, err := c.worktrees.Fingerprint(ctx, h.task.Worktree)
	c.diary.dropped(ctx, "looking at the files of the lane", err) // the tools tell the member what is wrong with it
	c.held.change(func(h *claim) {
		h.lookedAt, h.lookTook = time.Now(), time.Since(began)
		if err == nil {
			h.files = files
		}
	})
	return files != h.files, err == nil
}
