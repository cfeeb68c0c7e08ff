package landing

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"

	"muster"
	"muster/journal"
)

// stack is a row of landings, each merged on top of the one before, and the lowest on the target's tip. One check of
// the top proves them all. advance takes a stack through these steps:
//
//   - gather makes it of the landings that wait: those that merge cleanly, at most maxStack.
//   - The check runs on its top. If that is green, the target moves to the top, and the whole stack has landed.
//   - A red stack is halved until one suspect is left: see halve. A half that is green lands at once. One about which
//     nothing is known queues again.
//   - The check runs a second time on the last suspect. If it is green, it had failed by chance, and the work lands.
//     If it is red, the task goes back to its owner.
//
// docs/landing.md says how many checks that costs.
//
// Invariant: the target moves only to a commit whose tree was checked, and only from the tip on which the stack stands.
// The commits between the two land with it, and their trailers say that a later check covers them.
//
// Nothing of a stack is on disk but loose objects. A process that dies between two checks loses only the search: what
// was green has landed, and the other landings are on the board, from where the next process queues them again. The
// check of a tree that was green has a receipt, and does not run again.
type stack struct {
	queue   *queue
	tip     string  // the commit on which it stands: where the target was found, or was moved to
	entries []entry // the lowest first
}

// entry is one landing in a stack.
type entry struct {
	job    *job
	tree   string // the merge of its work with the entries below
	commit string // of that tree; its message says that a later check covers it
}

// maxStack is the most landings of a stack. One check for 16 saves nearly as much as one for all, and halving four
// times finds the suspect of 16.
const maxStack = 16

// advance gathers a stack and takes it to its end. Each landing in it is decided then, or waits again.
func (s *stack) advance(ctx context.Context) error {
	if err := s.gather(ctx); err != nil || len(s.entries) == 0 {
		return err
	}
	if s.queue.options.Check.Command == "" && s.queue.options.Hook == nil {
		return s.land(ctx, len(s.entries), muster.Landed{Receipt: muster.ReceiptUnchecked})
	}
	outcomes, err := s.queue.checkTops(ctx, s)
	if err != nil {
		return err
	}
	top := outcomes[0] // of the check of the top of s.entries, also after each halve
	for !top.mayLand() && len(s.entries) > 1 {
		if top, err = s.halve(ctx, top); err != nil {
			return err
		}
	}
	switch {
	case len(s.entries) == 0: // all wait again
		return nil
	case top.mayLand():
		return s.land(ctx, len(s.entries), top.landed)
	}
	return s.checkAgain(ctx, top)
}

// limit returns how many landings one check may cover. A hook decides about each task by itself, and on a red base a
// check tells only of the last one whether it made anything worse.
func (s *stack) limit(ctx context.Context) int {
	if s.queue.options.Hook != nil {
		return 1
	}
	if s.queue.options.Check.Command != "" {
		// Where it cannot be read, the check of one landing will say so.
		if state, err := s.queue.records.base(ctx, ""); err != nil || state == BaseRed {
			return 1
		}
	}
	return maxStack
}

// gather merges the landings that wait on top of each other, on the target as it is now. A task that conflicts with the
// target goes back to its owner at once; one that conflicts with another in the stack waits until that one is decided.
func (s *stack) gather(ctx context.Context) error {
	jobs := s.queue.take()
	if len(jobs) == 0 {
		return nil
	}
	var later []*job
	defer func() { s.queue.putBack(later...) }()
	err := s.queue.inOrder(ctx, jobs)
	if err == nil {
		jobs, err = s.start(ctx, jobs)
	}
	most := s.limit(ctx)
	for i, j := range jobs {
		if err != nil || len(s.entries) == most {
			later = append(later, jobs[i:]...)
			break
		}
		var isLater bool
		if isLater, err = s.push(ctx, j); isLater || err != nil {
			later = append(later, j)
		}
	}
	return err
}

// start finds the tip on which the stack stands. A target that was displaced is put back before; whoever did that gets
// its task back. It returns the jobs that are left.
func (s *stack) start(ctx context.Context, jobs []*job) ([]*job, error) {
	d, err := s.queue.target.secure(ctx, jobs[0].task.Worktree)
	if err != nil {
		return jobs, err
	}
	if d != nil {
		s.queue.answer(jobs[0], decision{do: doReturnDisplaced, err: d})
		jobs = jobs[1:]
	}
	s.tip, err = s.queue.target.tip(ctx)
	return jobs, err
}

// The functions below keep the invariant of the entries: the commit of each has that of the one below it, or the tip,
// as its first parent, and its tree is the merge of that commit with the head of the landing.

// top returns the commit on which the next entry is merged.
func (s *stack) top() string {
	if n := len(s.entries); n > 0 {
		return s.entries[n-1].commit
	}
	return s.tip
}

func (s *stack) topTree(ctx context.Context) (string, error) {
	if n := len(s.entries); n > 0 {
		return s.entries[n-1].tree, nil
	}
	return s.queue.repo.Tree(ctx, s.tip)
}

// push merges a job on top of the stack, or decides about it. isLater says that it has to wait for what is in the
// stack.
func (s *stack) push(ctx context.Context, j *job) (isLater bool, err error) {
	top, tip := s.top(), s.tip
	// The merge is of trees only. Neither the user's checkout nor the lane is touched, so a landing can be given up at
	// any moment without cleaning up.
	tree, conflicts, err := j.mergeOnto(ctx, s.queue.repo, top)
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		s.queue.answer(j, decision{do: doExplainUnmergeable, tip: tip, err: err})
		return false, nil
	}
	if len(conflicts) > 0 {
		if top != tip {
			_, conflicts, err = j.mergeOnto(ctx, s.queue.repo, tip)
		}
		if len(conflicts) > 0 {
			s.queue.answer(j, decision{do: doMerge, tip: tip})
		}
		return len(conflicts) == 0, err
	}
	below, err := s.topTree(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case tree == below && top != tip:
		return true, nil // another one in the stack brings all of it, if that lands
	case tree == below:
		// Everything that the lane holds is on the target already, by another task's work for example.
		s.queue.answer(j, decision{do: doLandNothing, tip: tip})
		return false, nil
	case isEmptyTree(tree):
		s.queue.answer(j, decision{do: doReturnEmpty})
		return false, nil
	}
	return false, s.add(ctx, j, tree)
}

func (s *stack) add(ctx context.Context, j *job, tree string) error {
	commit, err := s.queue.makeCommit(ctx, j, tree, s.top(), s.expected())
	if err == nil {
		s.entries = append(s.entries, entry{job: j, tree: tree, commit: commit})
	}
	return err
}

// alone returns a stack of some landings on a tip. It is nil where they do not merge so, or where one of them brings
// nothing there.
func (q *queue) alone(ctx context.Context, tip string, landings []entry) (*stack, error) {
	s := &stack{queue: q, tip: tip}
	for _, e := range landings {
		below, err := s.topTree(ctx)
		if err != nil {
			return nil, err
		}
		tree, conflicts, err := e.job.mergeOnto(ctx, q.repo, s.top())
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil || len(conflicts) > 0 || tree == below || isEmptyTree(tree) {
			return nil, nil
		}
		if err := s.add(ctx, e.job, tree); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// expected is what the commit of an entry says before anything is checked: most have others above them.
func (s *stack) expected() muster.Landed {
	if s.queue.options.Check.Command == "" {
		return muster.Landed{Receipt: muster.ReceiptUnchecked}
	}
	return muster.Landed{Receipt: muster.ReceiptCovered, Check: s.queue.options.Check.Command}
}

type outcome struct { // of the check of the top
	res    CheckResult
	landed muster.Landed // without a Receipt the work may not land
}

func (o outcome) mayLand() bool { return o.landed.Receipt != "" }

// errNoOutcome is the error of a check whose goroutine has ended without one.
var errNoOutcome = errors.New("the check ended without an outcome")

// checkTops runs the checks of the tops of some stacks at the same time.
func (q *queue) checkTops(ctx context.Context, stacks ...*stack) ([]outcome, error) {
	for _, s := range stacks {
		if err := s.emit(ctx, journal.LandingCheck, map[string]any{"tasks": s.tasks()}); err != nil {
			return nil, err
		}
	}
	outcomes, errs := make([]outcome, len(stacks)), make([]error, len(stacks))
	var running sync.WaitGroup
	for i, s := range stacks {
		e := s.entries[len(s.entries)-1]
		errs[i] = errNoOutcome // a test ends the goroutine as a dying process does
		running.Go(func() { outcomes[i].res, errs[i] = q.checks.run(ctx, e.job.checkOf(e.commit), &e.job.task) })
	}
	running.Wait()
	for i, s := range stacks {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if err := s.judge(ctx, &outcomes[i]); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// judge finds out whether the work that was checked may land, and what a landing of it would record. It notes the end
// of the check in the journal.
func (s *stack) judge(ctx context.Context, o *outcome) (err error) {
	q, res := s.queue, &o.res
	q.target.noteGoneInCheck(ctx)
	o.landed = muster.Landed{Seconds: res.Seconds, Check: q.options.Check.Command}
	for _, c := range res.Advice() {
		o.landed.Advisory = strings.TrimPrefix(o.landed.Advisory+", "+c.Name, ", ")
	}
	switch {
	case res.Refused:
	case q.options.Check.Command == "" && !res.CannotRun:
		o.landed.Receipt = muster.ReceiptUnchecked
	default:
		if o.landed.Receipt, err = q.checks.receiptOf(ctx, s.tip, res); err != nil {
			return err
		}
	}
	result := cmp.Or(o.landed.Receipt, "red")
	if !o.mayLand() && res.CannotRun {
		result = "cannot run"
	}
	q.options.Log.InfoContext(ctx, "landing checked", "tasks", s.tasks(), "how", res.How, "seconds", res.Seconds,
		"receipt", o.landed.Receipt)
	return s.emit(ctx, journal.LandingChecked, map[string]any{"tasks": s.tasks(), "result": result,
		"seconds": res.Seconds, "failed": res.Failed})
}

// emit writes an event about the check of the stack.
func (s *stack) emit(ctx context.Context, kind string, fields map[string]any) error {
	top := s.entries[len(s.entries)-1].job.task.ID
	return s.queue.journal.Emit(ctx, muster.Event{Kind: kind, Task: top, Fields: fields})
}

func (s *stack) tasks() (ids []int) {
	for _, e := range s.entries {
		ids = append(ids, int(e.job.task.ID))
	}
	return ids
}

// halve halves a red stack: it leaves the half in it that has a suspect, and returns the outcome of that half's check.
// red is the outcome of the whole stack's.
//
// The lower half is checked as it stands. With landing.jobs over 1 the upper half is checked at the same time, on the
// tip and without the lower half, if it merges so.
//
//   - The lower half is green and lands. The upper half on top of it has the tree of the whole stack, which was red.
//   - The upper half alone is green and lands. The lower half on top of it is the suspect.
//   - Otherwise the lower half is the suspect, and the upper half queues again.
func (s *stack) halve(ctx context.Context, red outcome) (outcome, error) {
	half := len(s.entries) / 2
	lower, above := s.entries[:half:half], s.entries[half:]
	halves := []*stack{{queue: s.queue, tip: s.tip, entries: lower}}
	if s.queue.options.Jobs > 1 {
		upper, err := s.queue.alone(ctx, s.tip, above)
		if err != nil {
			return red, err
		}
		if upper != nil {
			halves = append(halves, upper)
		}
	}
	outcomes, err := s.queue.checkTops(ctx, halves...)
	switch {
	case err != nil:
		return red, err
	case outcomes[0].mayLand():
		return red, s.land(ctx, half, outcomes[0].landed)
	case len(outcomes) > 1 && outcomes[1].mayLand():
		return red, s.landUpper(ctx, halves[1], outcomes[1])
	}
	s.entries = lower
	s.queue.putBack(jobsOf(above)...)
	return outcomes[0], nil
}

// landUpper lands the upper half, which is green without the lower one, and puts the lower one on top of it. That has
// the tree of the whole stack, which was red. If merging in the other order gives another tree, nothing is known of it,
// and the lower half queues again.
func (s *stack) landUpper(ctx context.Context, upper *stack, o outcome) error {
	whole := s.entries[len(s.entries)-1].tree
	s.entries = s.entries[:len(s.entries)-len(upper.entries)]
	if err := upper.land(ctx, len(upper.entries), o.landed); err != nil {
		upper.requeue()
		return err
	}
	if upper.tip == s.tip { // it has not landed, and waits again
		s.requeue()
		return nil
	}
	lower, err := s.queue.alone(ctx, upper.tip, s.entries)
	if err != nil {
		return err
	}
	if lower == nil || lower.entries[len(lower.entries)-1].tree != whole {
		s.requeue()
		return nil
	}
	s.tip, s.entries = lower.tip, lower.entries
	return nil
}

// checkAgain runs the check a second time on the last suspect. If it is green, it had failed by chance, and the work
// lands; else the task goes back to its owner. Work that a hook has refused goes back at once.
func (s *stack) checkAgain(ctx context.Context, red outcome) error {
	if red.res.Refused {
		s.decide(s.entries[0].job, decision{do: doReturnRed, tip: s.tip, result: red.res})
		return nil
	}
	outcomes, err := s.queue.checkTops(ctx, s)
	if err != nil {
		return err
	}
	again := outcomes[0]
	if !again.mayLand() {
		s.decide(s.entries[0].job, decision{do: doReturnRed, tip: s.tip, result: again.res})
		return nil
	}
	if again.landed.Flaky = again.res.Green; !again.landed.Flaky {
		// The base is red: what had failed before fails still.
		text := "failed once, and not on the same tree again: " + red.res.Failed
		if err := s.queue.records.note(ctx, text); err != nil {
			return err
		}
	}
	return s.land(ctx, 1, again.landed)
}

// returnConflicting returns the tasks that wait and conflict with the tip, to which the target has just moved. Their
// owners can resolve that while the next checks run.
func (s *stack) returnConflicting(ctx context.Context) error {
	var later []*job
	defer func() { s.queue.putBack(later...) }()
	tip, jobs := s.tip, s.queue.take()
	for i, j := range jobs {
		tree, conflicts, err := j.mergeOnto(ctx, s.queue.repo, tip)
		switch {
		case ctx.Err() != nil:
			later = append(later, jobs[i:]...)
			return context.Cause(ctx)
		case len(conflicts) > 0:
			s.queue.answer(j, decision{do: doMerge, tip: tip})
			continue
		case err == nil: // what cannot be merged at all is explained when its turn comes
			j.merged = merged{onto: tip, head: j.head, tree: tree}
		}
		later = append(later, j)
	}
	return nil
}

func (s *stack) requeue() {
	jobs := jobsOf(s.entries)
	s.entries = nil
	s.queue.putBack(jobs...)
}

func jobsOf(entries []entry) (jobs []*job) {
	for _, e := range entries {
		jobs = append(jobs, e.job)
	}
	return jobs
}

// isEmptyTree reports whether a tree, of either kind of repository, has no file.
func isEmptyTree(tree string) bool {
	return tree == "4b825dc642cb6eb9a060e54bf8d69288fbee4904" ||
		tree == "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
}
