package teammate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/roles"
	"muster/internal/roster"
)

// TeamProgress is how the team stands. The lead's sleep and the end of a run are decided from it.
type TeamProgress struct {
	HadTasks       bool // a task was created in this run, or was open in it
	Open           []muster.Task
	NeedsAttention []muster.Task           // since this run began
	Landed         int                     // tasks, in this run
	Working        []muster.Name           // teammates at work; without any, one that mail will wake
	Unreadable     []muster.UnreadableTask // tasks whose record cannot be read: open, for all that is known
	Unclaimable    []muster.Task           // ready, and no living teammate may take them
	HeldOutside    []muster.Task           // claimed by somebody who is no member
	Requests       []muster.Request        // that wait for the lead
	Patient        bool                    // no member is timed out: an idle owner keeps its task
	mayTake        taking                  // who takes which tasks; nil: by their roles
	Stuck          string                  // why nothing could ever move the open tasks; "" when something can
}

// Done reports that nothing is open and nobody is at work.
func (p TeamProgress) Done() bool {
	return len(p.Open) == 0 && len(p.Unreadable) == 0 && len(p.Working) == 0
}

// Overview reads from a team's records how the team stands.
type Overview struct {
	Store    muster.Store
	Board    *board.Board
	Post     *mailbox.Mail
	Roster   *roster.Roster
	Requests *requests.Requests
	Run      func(context.Context) (muster.Run, error) // the record of the current run
	Roles    []roles.Role                              // of the repository and of the user, with what is built in
	Patient  bool                                      // idle members are never timed out
	Talk     Talk                                      // the user's with the lead; nil: the run ends by itself
}

// Progress reads how the team stands. It looks into the inboxes of idle members only when nobody is at work
// and either all is done or nothing can move: only then does mail change the answer, and there may be thousands.
func (o *Overview) Progress(ctx context.Context) (TeamProgress, error) {
	p, members, err := o.progressWithoutMail(ctx)
	if err != nil || len(p.Working) > 0 || len(p.Open)+len(p.Unreadable) > 0 && p.Stuck == "" {
		return p, err
	}
	for _, m := range members {
		if m.Status != muster.Idle || m.Name == muster.Lead {
			continue
		}
		wakes, err := o.hasWakingMail(ctx, m.Name)
		if err != nil {
			return p, err
		}
		if wakes {
			p.Working, p.Stuck = []muster.Name{m.Name}, ""
			return p, nil
		}
	}
	// Read again after the inboxes: a member says that it works before it takes its mail.
	p, _, err = o.progressWithoutMail(ctx)
	return p, err
}

func (o *Overview) tasksForLead(ctx context.Context) ([]muster.Task, error) {
	p, err := o.Progress(ctx)
	return slices.Concat(p.Open, p.NeedsAttention), err
}

func (o *Overview) progressWithoutMail(ctx context.Context) (p TeamProgress, members []muster.Member, err error) {
	p.Patient = o.Patient || o.hasConversation(ctx)
	run, runErr := o.Run(ctx)
	// Members before tasks: a member claims a task while it is idle, and then says that it works.
	members, membersErr := o.Roster.List(ctx)
	tasks, tasksErr := o.Board.List(ctx)
	pending, err := o.Requests.Pending(ctx)
	if err = cmp.Or(runErr, membersErr, tasksErr, err); err != nil {
		return p, nil, err
	}
	p.mayTake = o.taking(members)
	for i := range members {
		if m := &members[i]; m.Status == muster.Working && m.Name != muster.Lead {
			p.Working = append(p.Working, m.Name)
		}
	}
	p.addTasks(run, tasks, members)
	ofOthers := func(r muster.Request) bool { return r.To != muster.Lead }
	p.Requests = slices.DeleteFunc(slices.Clone(pending), ofOthers)
	outOfRun := func(u muster.UnreadableTask) bool { return !run.HasID(u.ID) }
	p.Unreadable = slices.DeleteFunc(slices.Clone(o.Board.Corrupt()), outOfRun)
	p.Stuck = stuckReason(p, members, pending)
	return p, members, nil
}

func (p *TeamProgress) addTasks(run muster.Run, tasks []muster.Task, members []muster.Member) {
	owners := byName(members)
	for _, t := range tasks {
		mine := run.Has(t)
		p.HadTasks = p.HadTasks || mine || t.Open()
		switch {
		case t.Open():
			p.Open = append(p.Open, t)
			if isHeldOutside(t, owners) {
				p.HeldOutside = append(p.HeldOutside, t)
			}
			if t.Claimable(t.ClaimRole) && !canBeClaimed(t, members, nil, p.mayTake) {
				p.Unclaimable = append(p.Unclaimable, t)
			}
		case t.Status == muster.NeedsAttention && mine:
			p.NeedsAttention = append(p.NeedsAttention, t)
		case t.Landed != nil && mine:
			p.Landed++
		}
	}
}

func isHeldOutside(t muster.Task, members map[muster.Name]*muster.Member) bool {
	return t.Claimed() && t.Owner != "" && t.Owner != muster.Lead && members[t.Owner] == nil
}

// hasWakingMail reports whether mail waits that will wake an idle member. A decided shutdown request wakes nobody.
func (o *Overview) hasWakingMail(ctx context.Context, name muster.Name) (bool, error) {
	msgs, err := o.Post.Waking(ctx, name, 0)
	for _, msg := range msgs {
		if msg.Type != muster.MailShutdown || !isDecided(ctx, o.Requests, msg.RequestID) {
			return true, err
		}
	}
	return false, err
}

func (o *Overview) watch(ctx context.Context) <-chan struct{} {
	all := make(chan struct{}, 1)
	for _, c := range []<-chan struct{}{
		o.Post.Watch(ctx, muster.Lead), o.Board.Watch(ctx), o.Roster.Watch(ctx), o.Requests.Watch(ctx),
	} {
		go func() {
			for range c { // it is closed when ctx ends
				select {
				case all <- struct{}{}:
				default: // a hint waits already
				}
			}
		}()
	}
	return all
}

// hasConversation reports whether the user is in a conversation with the lead, here or in another process.
func (o *Overview) hasConversation(ctx context.Context) bool {
	if isOpen(o.Talk) {
		return true
	}
	held, err := o.Store.Leases().Held(ctx, TalkLease)
	return err == nil && held
}

// stuckReason says why nothing can move the open tasks, or "" when something can.
func stuckReason(p TeamProgress, members []muster.Member, pending []muster.Request) string {
	forOthers := func(r muster.Request) bool { return r.To != muster.Lead }
	if len(p.Working) > 0 || slices.ContainsFunc(pending, forOthers) {
		return "" // a member at work may do anything next, and a request of others may still be answered
	}
	owners := byName(members)
	busy := map[muster.Name]bool{} // a member with a task claims no other
	for _, t := range p.Open {
		busy[t.Owner] = true
	}
	var why []string
	for _, u := range p.Unreadable {
		why = append(why, unreadableReason(u))
	}
	for _, t := range p.Open {
		reason := ""
		switch {
		case t.Owner != "":
			if reason = stuckOwner(t, owners[t.Owner], p.Patient); reason != "" && t.Returned != "" {
				reason += ", and did not land: " + t.Returned
			}
		case t.Claimed(): // another program has written it so
			reason = fmt.Sprintf("task #%d is %s and nobody's", t.ID, strings.ReplaceAll(string(t.Status), "_", " "))
		case len(t.BlockedBy) > 0:
			ids := strings.ReplaceAll(strings.Trim(fmt.Sprint(t.BlockedBy), "[]"), " ", ", #")
			reason = fmt.Sprintf("task #%d waits for #%s", t.ID, ids)
		case !canBeClaimed(t, members, busy, p.mayTake):
			reason = unclaimedReason(t)
		}
		if reason == "" {
			return ""
		}
		why = append(why, reason)
	}
	return strings.Join(why, "; ")
}

// stuckOwner says why the owner of a task will never move it, or "". owner is nil for one that is not in the roster.
func stuckOwner(t muster.Task, owner *muster.Member, patient bool) string {
	switch {
	case t.Owner == muster.Lead:
		return fmt.Sprintf("task #%d is held by the lead", t.ID)
	case owner == nil:
		return ""
	case owner.Status == muster.Shutdown:
		return fmt.Sprintf("task #%d is held by %s, who has shut down", t.ID, owner.Name)
	case responder(*owner) != "":
		return fmt.Sprintf("task #%d is held by %s, who waits for an answer of %s",
			t.ID, owner.Name, responder(*owner))
	case patient && isIdleWith(owner, t) && !slices.Contains(askedOf(*owner), muster.User):
		return fmt.Sprintf("task #%d is held by %s, who is idle", t.ID, owner.Name)
	}
	return ""
}

const claimGrace = 10 * time.Second // how long a claim may stand on the board before its owner's record shows it

// isIdleWith reports whether the owner of a task is idle. One that has just claimed it is about to say that it works,
// and one that has lost sight of its claim, in an error perhaps, never will.
func isIdleWith(owner *muster.Member, t muster.Task) bool {
	return owner.Status == muster.Idle &&
		(owner.Task == t.ID || time.Since(muster.Time(t.ClaimedAt)).Abs() >= claimGrace)
}

// responder returns the member whose answer an idle member waits for, "" for nobody, or for the user.
func responder(m muster.Member) muster.Name {
	asked := askedOf(m)
	switch {
	case len(asked) == 0 || slices.Contains(asked, muster.User):
		return ""
	case slices.Contains(asked, muster.Lead):
		return muster.Lead
	}
	return asked[0]
}

func byName(members []muster.Member) map[muster.Name]*muster.Member {
	all := make(map[muster.Name]*muster.Member, len(members))
	for i := range members {
		all[members[i].Name] = &members[i]
	}
	return all
}

func unreadableReason(u muster.UnreadableTask) string {
	return fmt.Sprintf("task #%d cannot be read (%s)", u.ID, u.Why)
}

func unclaimedReason(t muster.Task) string {
	if t.ClaimRole != "" {
		return fmt.Sprintf("task #%d is for a %s and there is none", t.ID, t.ClaimRole)
	}
	return fmt.Sprintf("task #%d is ready and there is no teammate to take it", t.ID)
}

// mayWork reports whether an idle member must not be timed out yet: it may get an answer, the user's words, or work.
func (o *Overview) mayWork(ctx context.Context, me muster.Member, asked []muster.Name) (bool, error) {
	if o.hasConversation(ctx) {
		return true, nil
	}
	members, err := o.Roster.List(ctx)
	if err != nil {
		return false, err
	}
	owners := byName(members)
	for _, name := range asked { // the answer may still come
		if m := owners[name]; name == muster.User || name == muster.Lead || m != nil && m.Status != muster.Shutdown {
			return true, nil
		}
	}
	all, err := o.Board.List(ctx)
	if err != nil {
		return false, err
	}
	return mayGetWork(all, members, me, o.taking(members)), nil
}

// hasBlockedTask reports whether there is a task for the member, and each such task waits for others.
func (o *Overview) hasBlockedTask(ctx context.Context, me muster.Member) (bool, error) {
	members, errMembers := o.Roster.List(ctx)
	all, err := o.Board.List(ctx)
	mayTake, n := o.taking(members), 0
	for _, t := range all {
		if t.Status == muster.Pending && mayTake.allows(t, me.Role) {
			if n++; len(t.BlockedBy) == 0 {
				return false, errMembers
			}
		}
	}
	return n > 0, cmp.Or(errMembers, err)
}

// mayGetWork reports whether there is a task for the member: one that has become ready, or one that waits while another
// works or has only to claim a ready task. An idle owner moves nothing: two would wait for each other for ever.
func mayGetWork(all []muster.Task, members []muster.Member, me muster.Member, mayTake taking) bool {
	owners, resting := byName(members), map[muster.Name]bool{}
	waits, moves := false, slices.ContainsFunc(members, func(m muster.Member) bool {
		return m.Name != me.Name && m.Name != muster.Lead && m.Status == muster.Working
	})
	for _, t := range all {
		o := owners[t.Owner]
		waits = waits || t.Status == muster.Pending && mayTake.allows(t, me.Role)
		switch {
		case !t.Claimed():
		case t.Owner == me.Name || o != nil && isIdleWith(o, t):
			resting[t.Owner] = true
		default:
			moves = true
		}
	}
	isReady := func(t muster.Task) bool {
		return t.Status == muster.Pending && len(t.BlockedBy) == 0 && canBeClaimed(t, members, resting, mayTake)
	}
	return waits && (moves || slices.ContainsFunc(all, isReady))
}

// taking reports whether the members of a role may take a task by themselves. Nil: by the role that the task asks for.
type taking func(t muster.Task, role string) bool

func (f taking) allows(t muster.Task, role string) bool {
	if f == nil {
		return t.RoleMay(role)
	}
	return f(t, role)
}

// taking says which tasks the members of a role take by themselves. It is quick for the roles of these members.
func (o *Overview) taking(members []muster.Member) taking {
	onlyOwn := map[string]bool{}
	for _, m := range members {
		if _, isKnown := onlyOwn[m.Role]; !isKnown {
			onlyOwn[m.Role] = o.onlyOwnTasks(m.Role)
		}
	}
	return func(t muster.Task, role string) bool {
		if t.ClaimRole != "" || !t.RoleMay(role) {
			return t.RoleMay(role)
		}
		isOnlyOwn, isKnown := onlyOwn[role]
		return isKnown && !isOnlyOwn || !isKnown && !o.onlyOwnTasks(role)
	}
}

func (o *Overview) onlyOwnTasks(role string) bool {
	r, _ := roles.Named(o.Roles, role)
	return !r.Writes()
}

func canBeClaimed(
	t muster.Task, members []muster.Member, except map[muster.Name]bool, mayTake taking,
) bool {
	for i := range members {
		o := &members[i]
		if o.Name != muster.Lead && o.Status != muster.Shutdown && !except[o.Name] && mayTake.allows(t, o.Role) {
			return true
		}
	}
	return false
}
