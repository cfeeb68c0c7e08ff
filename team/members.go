package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/workspace"
)

// Members is the roster: the lead and the teammates.
type Members struct{ t *Team }

// Members returns the roster.
func (t *Team) Members() Members { return Members{t} }

// Member is a member's record, and whether a living process runs the member.
type Member struct {
	muster.Member
	IsAlive bool
}

// List returns all members: the lead first, then the others in the order in which they joined.
func (s Members) List(ctx context.Context) (all []Member, err error) {
	r := s.t.services().Roster(ctx)
	// The records are read before the hosts, so a host that ends in between is seen as gone. The hosts are read
	// once and not for each member.
	members, errMembers := r.List(ctx)
	hosts, errHosts := r.Hosts(ctx)
	if err := cmp.Or(errMembers, errHosts); err != nil {
		return nil, err
	}
	isAlive := map[muster.HostID]bool{}
	for _, h := range hosts {
		isAlive[h.ID()] = true
	}
	for _, m := range members {
		at := len(all) // The roster has the order. Only the lead may be elsewhere than in front.
		if m.Name == muster.Lead {
			at = 0
		}
		all = slices.Insert(all, at, Member{Member: m, IsAlive: isAlive[m.Host]})
	}
	return all, nil
}

// Get returns a member's record. The error is NotFound, with similar names, when there is none.
func (s Members) Get(ctx context.Context, name muster.Name) (muster.Member, error) {
	return s.t.services().Roster(ctx).Get(ctx, name)
}

// HasProcess reports whether any process of the team lives. It starts the members that Spawn adds.
func (s Members) HasProcess(ctx context.Context) (bool, error) {
	hosts, err := s.t.services().Roster(ctx).Hosts(ctx)
	return len(hosts) > 0, err
}

// IsLeadAlive reports whether a living process runs a lead that has not shut down.
func (s Members) IsLeadAlive(ctx context.Context) (bool, error) {
	r := s.t.services().Roster(ctx)
	lead, err := r.Get(ctx, muster.Lead)
	if errors.Is(err, muster.ErrNotFound) {
		return false, nil
	}
	// A record that cannot be read is an error and not a no: a second lead must not be started beside a living one.
	if err != nil || lead.Status == muster.Shutdown {
		return false, err
	}
	return r.Alive(ctx, lead.Host)
}

// MemberDraft is what a new teammate is. Name and Role are needed.
type MemberDraft struct {
	Name        muster.Name
	Role        string
	Prompt      string // what it should know; tasks come from the board
	Model       string // "" is the team's model
	RequirePlan bool   // it asks for approval of a plan before each task
}

// Spawn adds a teammate, or starts one again that has shut down. A living process of the team starts it. Where none
// lives, the next run does.
func (s Members) Spawn(ctx context.Context, d MemberDraft) (muster.Member, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Member{}, err
	}
	// The record is all that is written. The supervisor of a living process sees it and starts the member.
	return w.Roster(ctx).Add(ctx, muster.Member{Name: d.Name, Role: d.Role, Prompt: d.Prompt, Model: d.Model,
		RequirePlan: d.RequirePlan, StartedBy: muster.User, Status: muster.Working})
}

// StopResult is what became of a member that was asked to stop. muster team stop --json prints it.
type StopResult struct {
	Name      muster.Name `json:"name"`
	IsStopped bool        `json:"stopped"`
	// Why says why the member has not stopped, or how it ended otherwise than by its own answer.
	Why string `json:"reason,omitempty"`
}

// stopGrace is how long after its request a member may take to end: it is interrupted, then killed.
const stopGrace = 15 * time.Second

// Stop asks members to shut down and waits until it is decided for each: for its answer and its end. A member may
// refuse unless force is set. When no process runs a member, its record is ended here and its tasks go back to the
// board. Without names all members are stopped: the teammates at the same time, and then the lead, who has nobody left
// to wait for. The lead is the last in the result, and members that have shut down already are left out.
func (s Members) Stop(ctx context.Context, force bool, names ...muster.Name) ([]StopResult, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names { // a name that nobody has is an error, with names that are like it
		if _, err := w.Roster(ctx).Get(ctx, name); err != nil {
			return nil, err
		}
	}
	// The list says in which order the members are stopped and printed.
	members, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m Member) bool {
		return m.Status == muster.Shutdown || len(names) > 0 && !slices.Contains(names, m.Name)
	})
	slices.Reverse(members) // the lead is the first of them
	ends, errs := make([]StopResult, len(members)), make([]error, len(members))
	var teammates sync.WaitGroup
	for i, m := range members {
		if m.Name == muster.Lead {
			teammates.Wait()
		}
		teammates.Go(func() { ends[i], errs[i] = stop(ctx, w, m.Member, force) })
	}
	// Each goroutine writes its own elements, and Wait makes them visible here.
	teammates.Wait()
	return ends, errors.Join(errs...)
}

func stop(ctx context.Context, w *workspace.Workspace, m muster.Member, force bool) (StopResult, error) {
	end := StopResult{Name: m.Name}
	if alive, err := w.Roster(ctx).Alive(ctx, m.Host); err != nil {
		return end, err
	} else if !alive {
		return endDead(ctx, w, m)
	}
	// A living process owns the record, so it is asked to end the member and nothing is written here. The request is
	// durable: a process that wakes late answers it all the same.
	requests := w.Requests(ctx)
	r, err := requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.User, To: m.Name, Force: force,
		Reason: "stopped by user"})
	if err == nil {
		r, err = requests.Await(ctx, r.ID)
	}
	switch {
	case err != nil:
		return end, err
	case r.Status == muster.RequestRejected:
		end.Why = r.Response
		return end, nil
	case r.Status == muster.RequestExpired:
		end.Why = "no answer in time"
	}
	return awaitEnd(ctx, w, end)
}

// awaitEnd waits until a member that is to shut down has done so, its process has died, or stopGrace is over.
func awaitEnd(ctx context.Context, w *workspace.Workspace, end StopResult) (StopResult, error) {
	roster := w.Roster(ctx)
	// The watch begins before the first read, so that a change between the two is not missed. It is a hint only: each
	// round reads the record.
	changed := roster.Watch(ctx)
	limit := time.After(stopGrace)
	for {
		now, err := roster.Get(ctx, end.Name)
		if err != nil || now.Status == muster.Shutdown {
			end.IsStopped = err == nil
			return end, err
		}
		switch alive, err := roster.Alive(ctx, now.Host); {
		case err != nil:
			return end, err
		case !alive && end.Name == muster.Lead: // its record stays as it is, for Resume
			end.IsStopped = true
			return end, nil
		case !alive:
			return endDead(ctx, w, now)
		}
		select {
		case <-changed:
		case <-time.After(time.Second / 10): // its process may have died, which changes no record
		case <-limit:
			end.Why = fmt.Sprintf("still %s %.0f s after it was to stop", now.Status, stopGrace.Seconds())
			return end, nil
		case <-ctx.Done():
			return end, context.Cause(ctx)
		}
	}
}

func endDead(ctx context.Context, w *workspace.Workspace, m muster.Member) (StopResult, error) {
	end := StopResult{Name: m.Name, Why: "its process had ended"}
	// The host is compared in the update itself: a process that takes the member over meanwhile keeps it, and is told
	// of by an error.
	isTaken := false // by another process, since its record was read
	_, err := w.Roster(ctx).Update(ctx, m.Name, func(now *muster.Member) {
		if isTaken = now.Host != m.Host; !isTaken {
			now.Status, now.Host, now.IdleReason, now.Doing, now.Task = muster.Shutdown, "", "", "", 0
		}
	})
	if err == nil && isTaken {
		err = muster.Errorf(muster.Stale, "%s has just been taken over by another process", m.Name).
			WithHint("muster team stop %s", m.Name)
	}
	if err != nil {
		return end, err
	}
	end.IsStopped = true
	if m.Host == "" { // it never lived, so claims in its name are somebody else's
		return end, nil
	}
	// The record goes first. A crash in between leaves claims of a member that has shut down, and the next run releases
	// those.
	all, err := w.Board().List(ctx)
	if err != nil {
		return end, err
	}
	for _, t := range all {
		if t.Owner != m.Name || !t.Open() {
			continue
		}
		// Fenced: somebody else has it by now.
		_, err := w.RevokeTask(ctx, t, muster.User, "its owner was stopped")
		if err != nil && !errors.Is(err, muster.ErrFenced) {
			return end, err
		}
	}
	return end, nil
}

// haltWait is how long Halt waits for the end of the team's process, after its lead has stopped.
const haltWait = 20 * time.Second

// Halt stops the team at work as an interruption of its process does: at once, with its state kept, so that the run can
// be resumed. It returns when no process runs the team any more, with what became of the lead. The error is NotFound
// where no team is at work, and Invalid where its process has not ended in time; the stop is then still asked for.
func Halt(ctx context.Context, t *Team) ([]StopResult, error) {
	switch isRunning, err := t.IsRunning(ctx); {
	case err != nil:
		return nil, err
	case !isRunning:
		return nil, muster.Errorf(muster.NotFound, "no team is at work here").WithHint("see: muster status")
	}
	// The process of the lead ends when the lead does, and its teammates keep their records for the resume.
	ends, err := t.Members().Stop(ctx, true, muster.Lead)
	if err != nil {
		return ends, err
	}
	return ends, t.awaitHalt(ctx)
}

// awaitHalt waits until no process runs the team. The end of a process changes no record, so it is looked for.
func (t *Team) awaitHalt(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, haltWait, muster.Errorf(muster.Invalid,
		"the team's process has not ended in %.0f s", haltWait.Seconds()).WithHint("see what it does: muster log -f"))
	defer cancel()
	for {
		isRunning, err := t.IsRunning(ctx)
		if err != nil || !isRunning {
			return err
		}
		select {
		case <-time.After(time.Second / 20):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
