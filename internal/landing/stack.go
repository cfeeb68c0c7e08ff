package landing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
)

// stack is a row of landings, each merged on top of the one before, and the lowest on the target's tip. One check of
// the top proves them all. When it is red, checks of the middle find the landing that made it so: what lies below that
// lands, it goes back to its owner, and what lay above is merged anew.
//
// Invariant: the target moves only to a commit of which the tree was checked, and only from the tip on which the stack
// stands. The commits between the two land with it, and their trailers say that a later check covers them.
//
// Nothing of a stack is on disk but loose objects. A process that dies loses no more than the time of a check: the
// landings are on the board, and whoever goes on with them queues them again.
type stack struct {
	*Lander
	// tip is the commit at which the target is, or was found last. "": the target has to be looked at first.
	tip string
	// compared is the tip with which those who wait were compared last.
	compared string
	// entries are those that have not landed yet, the lowest first.
	entries []entry
	// red is the lowest position, from 1, of which the check was red; 0: none is known. redness is what it said. What
	// is below red and was checked was green, and has landed.
	red     int
	redness CheckResult
	// probes are the checks that are under way, those too whose results are not wanted any more. Each sends itself to
	// results when it ends.
	probes  []*probe
	results chan *probe
	givenUp int // checks that were given up in a row because others have come
}

// entry is one landing in a stack.
type entry struct {
	*attempt
	tree   string // all that the stack has up to it
	commit string // of that tree, with a message that says that a later check covers it
}

// advance takes the stack one step further: it takes those who wait, begins checks, and does what the next result says.
func (s *stack) advance(ctx context.Context) error {
	if err := s.extend(ctx); err != nil || len(s.entries) == 0 {
		return err
	}
	if s.options.Check.Command == "" && s.options.Hook == nil && !s.hasContracts(ctx) {
		return s.land(ctx, len(s.entries), muster.Landed{Receipt: muster.ReceiptUnchecked})
	}
	giveUpYoung(s)
	for len(s.probes) < s.jobs() {
		at := s.nextProbe()
		if at == 0 {
			break
		}
		if err := s.begin(ctx, at); err != nil {
			return err
		}
	}
	p, err := s.result()
	if p == nil || err != nil {
		return err
	}
	return s.judge(ctx, p)
}

// jobs returns how many checks may run at once.
func (s *stack) jobs() int { return max(1, s.options.Jobs) }

// limit returns how many landings one check may cover. A hook decides about each task by itself, and on a red base a
// check tells only of the last one whether it made anything worse.
func (s *stack) limit(ctx context.Context) int {
	if s.options.Hook != nil {
		return 1
	}
	if s.options.Check.Command == "" {
		return maxStack
	}
	// Where it cannot be read, the check of one landing will say so.
	if state, err := s.checkState(ctx, ""); err != nil || state == BaseRed {
		return 1
	}
	return maxStack
}

// maxStack is how many landings a stack has at most.
const maxStack = 512

// extend merges those who wait on top of the stack. Whoever conflicts with the target itself goes back to its owner at
// once; whoever conflicts with another one in the stack waits until that has landed or gone.
func (s *stack) extend(ctx context.Context) error {
	if s.red > 0 { // what lies above will be merged anew
		return s.returnConflicting(ctx)
	}
	jobs := s.queue.take()
	if len(jobs) == 0 {
		return nil
	}
	var later []*attempt
	defer func() { s.queue.putBack(later...) }()
	if err := inOrder(ctx, s.Lander, jobs); err != nil {
		later = jobs
		return err
	}
	var err error
	if s.tip == "" {
		err = s.start(ctx, &jobs)
	}
	most := s.limit(ctx)
	for i, job := range jobs {
		if err != nil || len(s.entries) >= most {
			later = append(later, jobs[i:]...)
			break
		}
		var isLater bool
		if isLater, err = s.push(ctx, job); isLater || err != nil {
			later = append(later, job)
		}
	}
	return err
}

// start finds the tip on which the stack stands. A target that was displaced is put back before; whoever did that gets
// its task back.
func (s *stack) start(ctx context.Context, jobs *[]*attempt) error {
	first := (*jobs)[0]
	d, err := first.secure(ctx)
	if err != nil {
		return err
	}
	if d != nil {
		*jobs = (*jobs)[1:]
		s.queue.decide(first, func(ctx context.Context, a *attempt) error { return a.returnDisplaced(ctx, d) })
	}
	s.tip, err = s.Target(ctx)
	return err
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

// topTree returns the tree of that commit.
func topTree(ctx context.Context, s *stack) (string, error) {
	if n := len(s.entries); n > 0 {
		return s.entries[n-1].tree, nil
	}
	return s.repo.Tree(ctx, s.tip)
}

// push merges a job on top of the stack, or decides about it. isLater says that it has to wait for what is in the
// stack.
func (s *stack) push(ctx context.Context, job *attempt) (isLater bool, err error) {
	top, tip := s.top(), s.tip
	// The merge is of trees only. Neither the user's checkout nor the lane is touched, so a landing can be given up at
	// any moment without cleaning up.
	tree, conflicts, err := mergeHead(ctx, job, top)
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		cause := err // its owner reads it while err gets another value
		s.queue.decide(job, func(ctx context.Context, a *attempt) error {
			return a.explainUnmergeable(ctx, tip, cause)
		})
		return false, nil
	}
	if len(conflicts) > 0 {
		if top != tip {
			_, conflicts, err = mergeHead(ctx, job, tip)
		}
		if len(conflicts) > 0 {
			s.queue.decide(job, func(ctx context.Context, a *attempt) error { return a.mergeInLane(ctx, tip) })
		}
		return len(conflicts) == 0, err
	}
	below, err := topTree(ctx, s)
	if err != nil {
		return false, err
	}
	switch {
	case tree == below && top != tip:
		return true, nil // another one in the stack brings all of it, if that lands
	case tree == below:
		// Everything that the lane holds is on the target already, by another task's work for example.
		s.queue.decide(job, func(ctx context.Context, a *attempt) error { return a.landNothing(ctx, tip) })
		return false, nil
	case isEmptyTree(tree):
		s.queue.decide(job, func(ctx context.Context, a *attempt) error {
			return a.returnTask(ctx, "empty", emptyText(a.branch()),
				board.Details{Text: "the lane has no file any more"})
		})
		return false, nil
	}
	commit, err := job.makeCommit(ctx, tree, top, s.expected())
	if err == nil {
		s.entries = append(s.entries, entry{attempt: job, tree: tree, commit: commit})
	}
	return false, err
}

// expected is what the commit of an entry says before anything is checked: most have others above them.
func (s *stack) expected() muster.Landed {
	if s.options.Check.Command == "" {
		return muster.Landed{Receipt: muster.ReceiptUnchecked}
	}
	return muster.Landed{Receipt: muster.ReceiptCovered, Check: s.options.Check.Command}
}

// position returns the position of a commit in the stack, from 1; 0: it is not there any more.
func (s *stack) position(commit string) int {
	return 1 + slices.IndexFunc(s.entries, func(e entry) bool { return e.commit == commit })
}

// judge does what the result of a check says.
func (s *stack) judge(ctx context.Context, p *probe) error {
	at := s.position(p.commit)
	s.entries[at-1].noteGoneInCheck(ctx)
	landed, err := s.receipt(ctx, p.commit, &p.res)
	if err != nil {
		return err
	}
	if err := s.tellChecked(ctx, p, landed.Receipt); err != nil {
		return err
	}
	if landed.Receipt != "" {
		if p.res.Green {
			s.chance.sawGreen(false)
		}
		err = s.land(ctx, at, landed)
	} else {
		s.red, s.redness = at, p.res
		s.drop()
	}
	switch {
	case err != nil || s.red != 1: // whose work has made it red is not known yet
		return err
	case s.redness.Refused:
		s.returnCulprit()
		return nil
	}
	return s.checkAgain(ctx)
}

// checkAgain runs a red check once more before the task goes back, or more often where the check is known to fail by
// chance: one that is green now fails by chance, and that is nobody's fault.
func (s *stack) checkAgain(ctx context.Context) error {
	e := s.entries[0]
	for reds := 1; s.chance.mayBe(reds, s.options.Receipts); reds++ {
		res, err := s.check(ctx, e.commit, fmt.Sprintf("task-%d-%d", e.v.Task.ID, e.claim), &e.v.Task)
		if err != nil {
			return err
		}
		landed, err := s.receipt(ctx, e.commit, &res)
		if err != nil {
			return err
		}
		again := probe{tasks: []int{int(e.v.Task.ID)}, res: res}
		if err := s.tellChecked(ctx, &again, landed.Receipt); err != nil {
			return err
		}
		if landed.Receipt != "" {
			return landByChance(ctx, s, landed, res)
		}
		s.redness = res
	}
	s.returnCulprit()
	return nil
}

// landByChance lands the lowest task, which the check has failed by chance.
func landByChance(ctx context.Context, s *stack, landed muster.Landed, res CheckResult) error {
	if landed.Flaky = res.Green; landed.Flaky {
		s.chance.sawGreen(true)
	} else if err := s.note(ctx, "failed once, and not on the same tree again: "+s.redness.Failed); err != nil {
		return err // on a red base, where something else is red still
	}
	s.red = 0
	return s.land(ctx, 1, landed)
}

// returnCulprit returns the task with whose work the check became red: it is the lowest one, because what was green
// below it has landed.
func (s *stack) returnCulprit() {
	tip, res, culprit := s.tip, s.redness, s.entries[0].attempt
	s.entries = s.entries[1:]
	s.queue.decide(culprit, func(ctx context.Context, a *attempt) error { return a.returnRed(ctx, tip, res) })
	s.requeue()
}

// requeue lets all in the stack wait again: what they were merged with is not what they will land on.
func (s *stack) requeue() {
	var jobs []*attempt
	for _, e := range s.entries {
		jobs = append(jobs, e.attempt)
	}
	s.entries, s.red, s.tip = nil, 0, ""
	s.drop()
	s.queue.putBack(jobs...)
}

// receipt returns what a result says of the work that was checked. It has no receipt when it may not land.
func (s *stack) receipt(ctx context.Context, commit string, res *CheckResult) (landed muster.Landed, err error) {
	landed = muster.Landed{Seconds: res.Seconds, Check: s.options.Check.Command}
	for _, c := range res.Advice() {
		landed.Advisory = strings.TrimPrefix(landed.Advisory+", "+c.Name, ", ")
	}
	switch {
	case res.Refused:
	case s.options.Check.Command == "" && !res.CannotRun:
		landed.Receipt = muster.ReceiptUnchecked
	default:
		landed.Receipt, err = s.receiptOf(ctx, s.tip, commit, res)
	}
	return landed, err
}
