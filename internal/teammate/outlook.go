package teammate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/requests"
)

// Outlook is how things stand for a lead that would sleep: facts of the board, the roster, the requests and the mail.
type Outlook struct {
	Ever    bool // a task was made in this run, or was open in it
	Open    []muster.Task
	Needy   []muster.Task      // that need attention, since this run began
	Landed  int                // in this run
	Talking []muster.Name      // teammates at work; where there is none and that matters, one that mail will wake
	Unread  []board.Unreadable // tasks whose record cannot be read: open, for all that is known
	Untaken []muster.Task      // ready, and no living teammate may take them
	Asks    []muster.Request   // that wait for the lead
	// Patient says that nobody is ever timed out: an idle owner keeps its task.
	Patient bool
	// Stuck says, when tasks are open, why nothing that runs or waits could ever move them; "" when something can.
	Stuck string
}

// Done reports that nothing is open and nobody is at work.
func (o Outlook) Done() bool { return len(o.Open) == 0 && len(o.Unread) == 0 && len(o.Talking) == 0 }

// Look reads the outlook. Into the inboxes of those who are idle it looks only when nobody is at work and all is done or
// nothing can move: mail that wakes somebody is what could change that, and where there are thousands it costs something.
func (r Rooms) Look(ctx context.Context) (Outlook, error) {
	o, members, err := r.outlook(ctx)
	if err != nil || len(o.Talking) > 0 || len(o.Open)+len(o.Unread) > 0 && o.Stuck == "" {
		return o, err
	}
	for _, m := range members {
		if m.Status != muster.Idle || m.Name == muster.Lead {
			continue
		}
		waits, err := r.wakes(ctx, m.Name)
		if err != nil {
			return o, err
		}
		if waits {
			o.Talking, o.Stuck = []muster.Name{m.Name}, ""
			return o, nil
		}
	}
	// Once more, after the mail: who has taken some has said before that it is at work.
	o, _, err = r.outlook(ctx)
	return o, err
}

// outlook is the outlook without the mail, and the members of whom it is.
func (r Rooms) outlook(ctx context.Context) (o Outlook, members []muster.Member, err error) {
	o.Patient = r.Patient || r.talking(ctx)
	run, err := r.Run(ctx)
	if err != nil {
		return o, nil, err
	}
	// Members before tasks: who is seen idle has claimed already what it works on.
	if members, err = r.Roster.List(ctx); err != nil {
		return o, nil, err
	}
	for i := range members {
		if m := &members[i]; m.Status == muster.Working && m.Name != muster.Lead {
			o.Talking = append(o.Talking, m.Name)
		}
	}
	tasks, err := r.Board.List(ctx)
	if err != nil {
		return o, nil, err
	}
	for _, t := range tasks {
		mine := run.Has(t)
		o.Ever = o.Ever || mine || t.Open()
		switch {
		case t.Open():
			o.Open = append(o.Open, t)
			if t.Claimable(t.ClaimRole) && !takenBy(members, nil, t) {
				o.Untaken = append(o.Untaken, t)
			}
		case t.Status == muster.NeedsAttention && mine:
			o.Needy = append(o.Needy, t)
		case t.Landed != nil && mine:
			o.Landed++
		}
	}
	pending, err := r.Requests.Pending(ctx)
	if err != nil {
		return o, nil, err
	}
	for _, q := range pending {
		if q.To == muster.Lead {
			o.Asks = append(o.Asks, q)
		}
	}
	for _, u := range r.Board.Corrupt() {
		if run.HasID(u.ID) {
			o.Unread = append(o.Unread, u)
		}
	}
	if len(o.Open)+len(o.Unread) > 0 {
		o.Stuck = stuck(o, members, pending)
	}
	return o, members, nil
}

// wakes reports whether mail waits for an idle member that will wake it.
func (r Rooms) wakes(ctx context.Context, name muster.Name) (bool, error) {
	msgs, err := r.Post.Waking(ctx, name, 0)
	if err != nil {
		return false, err
	}
	for _, msg := range msgs {
		if msg.Type == muster.MailShutdown {
			if q, err := r.Requests.Get(ctx, msg.RequestID); err == nil && requests.Final(q) {
				continue
			}
		}
		return true, nil
	}
	return false, nil
}

// stuck says why nothing can move the open tasks, or "".
func stuck(o Outlook, members []muster.Member, pending []muster.Request) string {
	if len(o.Talking) > 0 {
		return ""
	}
	for _, r := range pending {
		if r.To != muster.Lead { // somebody may still answer it
			return ""
		}
	}
	busy := map[muster.Name]bool{} // who has a task in hand takes no other
	for _, t := range o.Open {
		busy[t.Owner] = true
	}
	alive := map[muster.Name]muster.Member{} // of those; there may be thousands of others
	gone := map[muster.Name]bool{}
	for i := range members {
		m := &members[i]
		if !busy[m.Name] {
			continue
		}
		if m.Status == muster.Shutdown {
			gone[m.Name] = true
		} else if m.Name != muster.Lead {
			alive[m.Name] = *m
		}
	}
	var why []string
	for _, u := range o.Unread {
		why = append(why, unread(u))
	}
	for _, t := range o.Open {
		owner, here := alive[t.Owner]
		switch {
		case t.Owner == muster.Lead:
			why = append(why, fmt.Sprintf("task #%d is in your own hand", t.ID))
		case here && answerer(owner) != "":
			why = append(why, fmt.Sprintf("task #%d is in the hand of %s, who waits for an answer of %s", t.ID, owner.Name, answerer(owner)))
		case here && o.Patient && restsWith(&owner, t) && !askedOf(owner)[muster.User]:
			why = append(why, fmt.Sprintf("task #%d is in the hand of %s, who is idle", t.ID, owner.Name))
		case gone[t.Owner]:
			why = append(why, fmt.Sprintf("task #%d is in the hand of %s, who has shut down", t.ID, t.Owner))
		case t.Owner != "":
			return "" // it is timed out, or waits for the user; one from outside is ended from there
		case len(t.BlockedBy) > 0:
			why = append(why, fmt.Sprintf("task #%d waits for %s", t.ID, ids(t.BlockedBy)))
		case takenBy(members, busy, t):
			return ""
		default:
			why = append(why, untaken(t))
		}
	}
	return strings.Join(why, "; ")
}

// settling is how long a claim may stand on the board before its owner's record shows it.
const settling = 10 * time.Second

// restsWith reports whether the owner of a task is idle and leaves it lie. One that claimed it this moment is about to say
// that it works; of a claim that it lost sight of, in an error perhaps, it never will.
func restsWith(owner *muster.Member, t muster.Task) bool {
	return owner.Status == muster.Idle && (owner.Task == t.ID || time.Since(muster.Time(t.ClaimedAt)).Abs() >= settling)
}

// answerer is whom an idle member waits for, when that is nobody who could answer by itself: everybody is idle, and only
// the user may write at any time. "" when it waits for nobody, or for the user.
func answerer(m muster.Member) muster.Name {
	asked := askedOf(m)
	if asked[muster.User] {
		return ""
	}
	if asked[muster.Lead] {
		return muster.Lead
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		return name
	}
	return ""
}

// unread says that a task's record cannot be read.
func unread(u board.Unreadable) string {
	return fmt.Sprintf("task #%d cannot be read (%s)", u.ID, u.Why)
}

// untaken says that nobody may take a task.
func untaken(t muster.Task) string {
	if t.ClaimRole != "" {
		return fmt.Sprintf("task #%d is for a %s and there is none", t.ID, t.ClaimRole)
	}
	return fmt.Sprintf("task #%d is ready and there is no teammate to take it", t.ID)
}

func ids(list []muster.TaskID) string {
	var s []string
	for _, id := range list {
		s = append(s, fmt.Sprintf("#%d", id))
	}
	return strings.Join(s, ", ")
}

func opened(n int) string {
	if n == 1 {
		return "1 task is open"
	}
	return fmt.Sprintf("%d tasks are open", n)
}
