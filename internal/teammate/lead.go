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
	"muster/internal/prompt"
	"muster/internal/text"
	"muster/internal/view"
	"muster/llm"
	"muster/tool"
)

const remindAfter = 10 * time.Minute // how long the lead may leave a request undecided before it is told again

// recheckAfter is how often a waiting lead looks without a hint, because some facts change with time alone. The store
// gives a hint within seconds for a change of which the system's file watcher does not tell.
const recheckAfter = time.Minute

const mailWaits = "There is mail for you."

// lead is what only the lead does: it sleeps until something needs it, and the end of its turn may be the end of the
// run. It is for the goroutine of Live, and for the wait tool, which runs in its place.
type lead struct {
	team   *Overview
	staff  *staff
	tasks  holder
	diary  *diary
	mail   leadMail
	status leadStatus
	phase  leadPhase

	toldStuck bool                 // that nothing can move, since it was woken last
	told      map[string]time.Time // of the last news of a request, or of a task by the key of its claim
	changed   <-chan struct{}      // receives at rest, when mail, the board, the roster or requests have changed
}

// What the lead uses of the other parts of the member.
type (
	leadMail interface {
		hasWakingMail(context.Context) (bool, error)
		landings(context.Context) ([]muster.Message, error)
	}
	leadStatus interface {
		setStatus(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error
		show(ctx context.Context, doing string)
	}
	leadPhase interface {
		noteChange()
		countWait(slept, mail bool) error
	}
)

// Wait is the lead's sleep as a tool: it returns when something needs the lead. Asked again in the same situation it
// answers the same.
func (l *lead) Wait(ctx context.Context, landings bool) (llm.Result, error) {
	if t, ok := l.tasks.CurrentTask(); ok {
		return llm.ErrorResult("Task #%d is yours: call complete_task or release_task before you call wait.", t.ID), nil
	}
	w, err := l.sleep(ctx, landings)
	if err != nil {
		return llm.Result{}, err
	}
	if err := l.phase.countWait(w.slept, w.mail); err != nil {
		return llm.Result{}, err
	}
	return tool.Text(w.text), nil
}

type wakeUp struct {
	wakeFacts
	text  string
	slept bool // false: something needed the lead at once
}

func (l *lead) sleep(ctx context.Context, landings bool) (w wakeUp, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := l.team.watch(ctx) // before the facts are read, so that no change is missed
	for {
		w.wakeFacts, err = l.wakeFacts(ctx, landings)
		if cause := context.Cause(ctx); cause != nil {
			return w, cause
		}
		if err == nil {
			var about []string
			w.text, about = wakeReason(w.wakeFacts)
			for _, key := range about {
				l.told[key] = time.Now()
			}
			l.noteHeldOutside(ctx, w.heldOutside)
		}
		if err != nil || w.text != "" {
			if w.slept {
				l.toldStuck = false
				l.phase.noteChange() // what has woken it is another's
				l.status.show(ctx, "")
			}
			return w, err
		}
		if !w.slept {
			w.slept = true
			if err := l.status.setStatus(ctx, muster.Idle, muster.IdleMessages, "waits for the team"); err != nil {
				return w, err
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(recheckAfter):
		}
	}
}

func (l *lead) noteHeldOutside(ctx context.Context, held []muster.Task) {
	for _, t := range held {
		key := "noted " + string(claimKey(t))
		if !l.told[key].IsZero() {
			continue
		}
		l.told[key] = time.Now()
		text := fmt.Sprintf("the team waits for task %d (%s), which %s holds from outside: muster task release %d",
			t.ID, t.Subject, t.Owner, t.ID)
		l.diary.dropped(ctx, "noting a task held from outside", l.diary.note(ctx, t.ID, text))
	}
}

type wakeFacts struct {
	mail        bool
	progress    TeamProgress
	landing     string           // the news of a landing, if the lead waits for one
	requests    []muster.Request // that wait for the lead, and of which it was not told lately
	unclaimable []muster.Task    // ready tasks that nobody may claim, and of which it was not told
	heldOutside []muster.Task    // tasks that the team waits for and an outsider holds, of which it was not told
}

func (l *lead) wakeFacts(ctx context.Context, landings bool) (f wakeFacts, err error) {
	if f.mail, err = l.mail.hasWakingMail(ctx); err != nil || f.mail {
		return f, err
	}
	if f.progress, err = l.progress(ctx); err != nil {
		return f, err
	}
	if landings {
		news, err := l.mail.landings(ctx)
		if err != nil {
			return f, err
		}
		if len(news) > 0 {
			f.landing = news[0].Content
		}
	}
	f.requests = slices.DeleteFunc(slices.Clone(f.progress.Requests),
		func(r muster.Request) bool { return time.Since(l.told[string(r.ID)]) < remindAfter })
	f.unclaimable = slices.DeleteFunc(slices.Clone(f.progress.Unclaimable),
		func(t muster.Task) bool { return !l.told[string(claimKey(t))].IsZero() })
	if len(f.progress.Working) == 0 {
		f.heldOutside = slices.DeleteFunc(slices.Clone(f.progress.HeldOutside),
			func(t muster.Task) bool { return !l.told[string(claimKey(t))].IsZero() })
	}
	return f, nil
}

// wakeReason returns what wakes the lead, "" for nothing, and the keys of what it is told by that, so that it is not
// woken for the same again. The user may also decide a request; so the lead is told of it when it would sleep, and then
// now and again.
func wakeReason(f wakeFacts) (text string, about []string) {
	switch {
	case f.mail:
		return mailWaits, nil
	case f.progress.Done():
		return allDoneText(f.progress), nil
	case f.landing != "":
		return f.landing, nil
	case f.progress.Stuck != "":
		return "Nothing can wake you: " + f.progress.Stuck + ".", nil
	case len(f.requests) > 0:
		r := f.requests[0]
		return fmt.Sprintf("Request %s of %s (%s) waits for your decision. Call review_plan, or call wait "+
			"again to leave it to the user.", r.ID, r.From, view.Question(r)), []string{string(r.ID)}
	case len(f.unclaimable) > 0:
		var reasons []string
		for _, t := range f.unclaimable {
			reasons = append(reasons, unclaimedReason(t)+" ("+prompt.TaskLine(t)+")")
			about = append(about, string(claimKey(t)))
		}
		return "No teammate can claim the tasks that are ready: " + strings.Join(reasons, "; ") + ".", about
	case len(f.heldOutside) > 0:
		t := f.heldOutside[0]
		text = fmt.Sprintf("The team waits for task #%d (%s), which %s holds from outside the team. Call wait again "+
			"to leave it to them, or take it back with task_update (task_id %d, status pending).",
			t.ID, t.Subject, t.Owner, t.ID)
		return text, []string{string(claimKey(t))}
	}
	return "", nil
}

func allDoneText(p TeamProgress) string {
	text := fmt.Sprintf("All done: %s landed, nothing is open.", text.Count(p.Landed, "task"))
	for _, t := range p.NeedsAttention {
		text += fmt.Sprintf(" Task #%d (%s) needs attention: %s.", t.ID, t.Subject, t.Result)
	}
	return text
}

// await shows what the lead waits for, hands the prompt to the user, and waits for mail or a change of the team, the
// end of the conversation, or the time to look again. done says that the run would end here.
func (l *lead) await(
	ctx context.Context, what string, done bool, closed <-chan struct{}, again <-chan time.Time,
) error {
	if err := l.status.setStatus(ctx, muster.Idle, muster.IdleMessages, what); err != nil {
		return err
	}
	l.handOver(done)
	select {
	case <-ctx.Done():
	case <-l.changed:
	case <-closed:
	case <-again:
	}
	return context.Cause(ctx)
}

func (l *lead) beginRest(ctx context.Context)                      { l.changed = l.team.watch(ctx) }
func (l *lead) progress(ctx context.Context) (TeamProgress, error) { return l.staff.progress(ctx) }

func (l *lead) handOver(done bool) {
	if isOpen(l.team.Talk) {
		l.team.Talk.Rest(done)
	}
}

// staff spawns the lead's teammates. In a run with a playbook it also asks those to leave who are in the way.
type staff struct {
	team       *Overview
	checkModel func(name string) error // refuses the name of a model that no member can have; nil refuses none
	spawned    func()                  // called after each spawn; or nil
	diary      *diary
}

const anyRole = "coder" // the role of the teammates that are spawned for tasks of no role

func (s *staff) Spawn(ctx context.Context, m muster.Member) (muster.Member, error) {
	// The supervisor would refuse the model too, but only after the record was written.
	if s.checkModel != nil && m.Model != "" {
		if err := s.checkModel(m.Model); err != nil {
			return muster.Member{}, err
		}
	}
	run, runErr := s.team.Run(ctx)
	// Two spawns at the same time could both see room for one, but the lead's calls that write run one by one.
	n, err := s.team.Roster.Teammates(ctx)
	if err = cmp.Or(runErr, err); err != nil {
		return muster.Member{}, err
	}
	if n >= run.Cap {
		return muster.Member{}, muster.Errorf(muster.Invalid, "%d teammates live and %d is the most this run may have "+
			"(--teammates): call wait, or request_shutdown for one of them first", n, run.Cap)
	}
	m.StartedBy, m.Status = s.diary.name, muster.Working
	m, err = s.team.Roster.Add(ctx, m)
	if err == nil && s.spawned != nil {
		s.spawned()
	}
	return m, err
}

// progress is Overview.Progress, but in a run with a playbook it first spawns the teammates that the ready tasks want.
// A task that waits until a teammate has left is not reported as one without a taker.
func (s *staff) progress(ctx context.Context) (p TeamProgress, err error) {
	run, err := s.team.Run(ctx)
	if err != nil {
		return p, err
	}
	isStaffed := run.Playbook != nil && run.Cap > 0
	for again := isStaffed; ; {
		if again {
			_, err = s.fill(ctx, run)
		}
		if err == nil {
			p, err = s.team.Progress(ctx)
		}
		if err != nil || !isStaffed || p.Stuck == "" && len(p.Unclaimable) == 0 {
			return p, err
		}
		// Somebody may have left between the two. Whoever is spawned now changes the progress.
		f, err := s.fill(ctx, run)
		if err != nil || len(f.spawn)+len(f.leave) == 0 {
			if f.isFull {
				p.Unclaimable = nil
			}
			return p, err
		}
		again = false
	}
}

type staffing struct {
	spawn  []string      // the roles of teammates to spawn
	leave  []muster.Name // idle teammates whose place is wanted for a role that nobody has
	isFull bool          // there is no room for another teammate
}

func (s *staff) fill(ctx context.Context, run muster.Run) (f staffing, err error) {
	members, errMembers := s.team.Roster.List(ctx)
	tasks, errTasks := s.team.Board.List(ctx)
	pending, err := s.team.Requests.Pending(ctx)
	if err = cmp.Or(errMembers, errTasks, err); err != nil {
		return f, err
	}
	f = newStaffing(run.Cap, tasks, members, s.team.taking(members))
	f.leave = slices.DeleteFunc(f.leave, func(name muster.Name) bool {
		return slices.ContainsFunc(pending, func(r muster.Request) bool {
			return r.Kind == muster.AskShutdown && r.To == name
		})
	})
	for i, role := range f.spawn {
		m, err := s.spawnFor(ctx, run, role, members)
		if err != nil { // the lead is told of a task that nobody may take
			s.diary.dropped(ctx, "spawning a teammate for a playbook", err)
			f.spawn = f.spawn[:i]
			break
		}
		members = append(members, m)
	}
	for _, name := range f.leave {
		if _, err := s.team.Requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.System, To: name,
			Reason: "a teammate of another role is needed"}); err != nil {
			return f, err
		}
	}
	return f, nil
}

// newStaffing returns what is lacking. Each ready task wants a teammate without a task, of its role if it has one. If
// there is none, one is spawned while there is room; otherwise an idle teammate leaves whom no ready task wants.
func newStaffing(most int, tasks []muster.Task, members []muster.Member, mayTake taking) (s staffing) {
	busy := map[muster.Name]bool{}
	var ready []muster.Task
	for _, t := range tasks {
		if t.Claimed() {
			busy[t.Owner] = true
		} else if t.Claimable(t.ClaimRole) {
			ready = append(ready, t)
		}
	}
	slices.SortStableFunc(ready, func(a, b muster.Task) int { return cmp.Compare(b.Priority, a.Priority) })
	var free []muster.Member
	living := 0
	for _, m := range members {
		if m.Name == muster.Lead || m.Status == muster.Shutdown {
			continue
		}
		if living++; !busy[m.Name] {
			free = append(free, m)
		}
	}
	// Tasks of a role choose first: those of none are for everybody.
	served := map[muster.TaskID]bool{}
	for _, hasRole := range []bool{true, false} {
		for _, t := range ready {
			i := slices.IndexFunc(free, func(m muster.Member) bool { return mayTake.allows(t, m.Role) })
			if hasRole == (t.ClaimRole != "") && i >= 0 {
				free, served[t.ID] = slices.Delete(free, i, i+1), true
			}
		}
	}
	for _, t := range ready {
		role := cmp.Or(t.ClaimRole, anyRole)
		isIdle := func(m muster.Member) bool { return m.Status == muster.Idle && len(askedOf(m)) == 0 }
		switch i := slices.IndexFunc(free, isIdle); {
		case served[t.ID] || !mayTake.allows(t, role): // nobody could take it: the lead is told
		case living+len(s.spawn) < most:
			s.spawn = append(s.spawn, role)
		case i >= 0 && !canBeClaimed(t, members, nil, mayTake):
			s.leave = append(s.leave, free[i].Name)
			free = slices.Delete(free, i, i+1)
		}
	}
	s.isFull = living+len(s.spawn) >= most
	return s
}

func (s *staff) spawnFor(
	ctx context.Context, run muster.Run, role string, members []muster.Member,
) (muster.Member, error) {
	base := string(muster.Slug(role, anyRole))
	base = base[:min(len(base), 24)]
	for n := 1; ; n++ {
		name := muster.Name(fmt.Sprintf("%s-%d", base, n))
		if slices.ContainsFunc(members, func(m muster.Member) bool {
			return m.Name == name && (m.Status != muster.Shutdown || m.Role != role)
		}) {
			continue
		}
		m, err := s.Spawn(ctx, muster.Member{Name: name, Role: role,
			Prompt: "The goal of the team: " + text.CutBytes(run.Goal, maxQuote)})
		if !errors.Is(err, muster.ErrHeld) || n > len(members)+maxHeldNames {
			return m, err
		}
	}
}

const maxHeldNames = 20
