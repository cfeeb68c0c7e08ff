package recording

import (
	"context"
	"strings"
	"sync"
	"time"

	"muster"
)

// Step is one step of a run: what somebody did that others in the team can see, while nobody else did such a thing.
type Step struct {
	Who string  `json:"who"`           // a member's name, with the id of a call where it is a call's step
	Why string  `json:"why,omitempty"` // what has ended the wait before the step
	At  float64 `json:"at"`            // Unix seconds
}

// Turns puts the steps of a team's members in one order. While a run is recorded, steps are taken one at a time and
// their order is noted. While it is played, each step waits until it is its turn by that order, so whatever a step
// reads of the team's state is what it read before. A nil Turns orders nothing.
//
// What takes long and changes nothing that others see, such as a request to a model or a check, is done between two
// steps, by Outside. A wait for others is ended by Pause, which waits for the turn instead while a run is played.
type Turns struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a step ends
	holder  string        // whose step is under way; "" for none
	write   func(Step)    // notes a step while a run is recorded
	plays   bool
	plan    []Step // while a run is played
	next    int
	failed  error     // why nothing goes on
	since   time.Time // when the last step began

	ended func() // called when the plan of a run that did not end is over; nil for one that ended
}

// recordTurns returns turns whose steps are given to write.
func recordTurns(write func(Step)) *Turns {
	return &Turns{changed: make(chan struct{}), write: write}
}

// playTurns returns turns that follow a plan.
func playTurns(plan []Step, ended func()) *Turns {
	return &Turns{changed: make(chan struct{}), plays: true, plan: plan, ended: ended, since: time.Now()}
}

// Step calls do as a step of who. Called in a step of the same who it is a part of that.
func (t *Turns) Step(ctx context.Context, who string, do func() error) error {
	if t == nil || t.isHolder(who) {
		return do()
	}
	if _, err := t.begin(ctx, who, "", false); err != nil {
		return err
	}
	defer t.end(who)
	return do()
}

// Exclusive calls do while no step is under way, as no step of its own: it does what some step has left undone.
func (t *Turns) Exclusive(ctx context.Context, do func()) {
	if t == nil {
		do()
		return
	}
	const who = "nobody"
	if _, err := t.begin(ctx, who, "", true); err == nil {
		defer t.end(who)
		do()
	}
}

// Outside ends the step that is under way, calls do, and begins another step of the same member. Where ctx ends
// meanwhile there is no such step.
func (t *Turns) Outside(ctx context.Context, do func()) {
	who := t.leave()
	do()
	if who != "" {
		_, _ = t.begin(ctx, who, "", false) // the caller finds out itself that its context has ended
	}
}

// Pause ends the step that is under way, calls wait, which says what has ended the wait, and begins another step of the
// same member. While a run is played the wait is for the turn alone, and what Pause returns is what was recorded.
// waited says that wait was called.
func (t *Turns) Pause(ctx context.Context, wait func() string) (why string, waited bool) {
	who := t.leave()
	if who == "" || !t.plays {
		why, waited = wait(), true
	}
	if who != "" {
		recorded, err := t.begin(ctx, who, why, false)
		if !waited && err == nil {
			why = recorded
		}
	}
	return why, waited
}

// Note records a fact that no order of steps decides, such as how many commands have ended by now. While a run is
// played it returns what was recorded in its place. It is called in a step.
func (t *Turns) Note(fact string) (recorded string, isPlayed bool) {
	if t == nil {
		return fact, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.holder == "":
	case !t.plays:
		t.write(Step{Who: t.holder + " notes", Why: fact, At: muster.UnixTime(time.Now())})
	case t.next < len(t.plan) && t.plan[t.next].Who == t.holder+" notes":
		t.next++
		return t.plan[t.next-1].Why, true
	}
	return fact, false
}

// Plays reports whether a run is played.
func (t *Turns) Plays() bool { return t != nil && t.plays }

// isHolder reports whether a step of who is under way.
func (t *Turns) isHolder(who string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder == who
}

// begin waits for the turn of who. A step whose context has ended never begins, so that no order of steps depends on
// how fast somebody is cancelled. A quiet one has no place in the order.
func (t *Turns) begin(ctx context.Context, who, why string, quiet bool) (recorded string, err error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		t.mu.Lock()
		if err := t.failed; err != nil {
			t.mu.Unlock()
			return "", err
		}
		t.dropCancelled(who)
		if t.holder == "" && (quiet || t.isNext(who)) {
			recorded = t.take(who, why, quiet)
			t.mu.Unlock()
			return recorded, nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// isNext reports whether the next step is one of who. When a run that ended has been played to its end, the order of
// what follows is no longer said.
func (t *Turns) isNext(who string) bool {
	return !t.plays || t.next == len(t.plan) && t.ended == nil || t.next < len(t.plan) && t.plan[t.next].Who == who
}

// take makes who the holder, and returns the step's recorded reason.
func (t *Turns) take(who, why string, quiet bool) (recorded string) {
	t.holder = who
	switch {
	case quiet:
	case !t.plays:
		t.write(Step{Who: who, Why: why, At: muster.UnixTime(time.Now())})
	case t.next < len(t.plan):
		recorded, t.since = t.plan[t.next].Why, time.Now()
		t.next++
	}
	return recorded
}

// leaving is how the last step of a member ends.
const leaving = " leaves"

// Leaving names the last step in a member's life.
func Leaving(member string) string { return member + leaving }

// dropCancelled removes from the plan what a member would still have done that has been cancelled, as it was when the
// run was recorded. When exactly it was cancelled is nobody's step.
func (t *Turns) dropCancelled(who string) {
	member, isLeaving := strings.CutSuffix(who, leaving)
	if !t.plays || !isLeaving {
		return
	}
	kept := t.plan[:t.next:t.next]
	for i, s := range t.plan[t.next:] {
		if s.Who == who {
			if len(kept) < t.next+i {
				t.plan = append(kept, t.plan[t.next+i:]...)
				t.notify() // it may be somebody's turn now
			}
			return
		}
		if of, _, _ := strings.Cut(s.Who, " "); of != member {
			kept = append(kept, s)
		}
	}
}

// leave ends the step that is under way, and returns whose it was.
func (t *Turns) leave() (who string) {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	who = t.holder
	t.mu.Unlock()
	t.end(who)
	return who
}

// end ends a step of who, if one is under way.
func (t *Turns) end(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if who == "" || t.holder != who {
		return
	}
	t.holder = ""
	if t.plays && t.next == len(t.plan) && t.ended != nil {
		t.ended() // and nobody's turn comes any more
	}
	t.notify()
}

// notify wakes all who wait.
func (t *Turns) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// fail lets nobody take a step any more.
func (t *Turns) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = err
		t.notify()
	}
}

// awaited returns whose turn it is, how long nobody has taken it, and how long that was when the run was recorded. who
// is "" when no step is left, and while one is under way.
func (t *Turns) awaited() (who string, waited, recorded time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != "" || t.next == len(t.plan) {
		return "", 0, 0
	}
	s := t.plan[t.next]
	if t.next > 0 {
		recorded = time.Duration((s.At - t.plan[t.next-1].At) * float64(time.Second))
	}
	return s.Who, time.Since(t.since), recorded
}
