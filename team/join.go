package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
)

// Workers are the teammates with whom a process joins a team.
type Workers struct {
	N     int           // how many, named worker-1, worker-2, ...; 0: one
	Role  string        // of each; "": worker
	Names []muster.Name // set by Join: who they are
}

// Ending is why a process that had joined left a team.
type Ending string

// The reasons why a process leaves a team.
const (
	RunOver Ending = "the run is over"
	NoWork  Ending = "its members have shut down"
)

// Join adds a process with workers to a team whose run is under way, and returns when the run is over or nobody lives
// in this process any more. The process also takes over teammates of processes that die. When ctx ends its members'
// records cancelIfRepoMoves as they are, and another process of the team goes on with them. Errors: NotFound where no
// run is under way.
func (t *Team) Join(ctx context.Context, w *Workers) (Ending, error) {
	if err := t.openServices(ctx); err != nil {
		return "", err
	}
	run, err := t.runUnderWay(ctx)
	if err != nil {
		return "", err
	}
	if err := t.takeOverRun(ctx, run); err != nil {
		return "", err
	}
	ctx, leave := t.cancelIfRepoMoves(ctx)
	defer leave()
	host, err := t.deps.Roster.Join(ctx, "muster join")
	if err != nil {
		return "", err
	}
	defer func() { t.logDropped(ctx, "releasing the lease", host.Release()) }()
	// Again, now that whoever puts the team aside sees this process: it may have begun, or be done, meanwhile.
	if err := t.services().CheckNotArchiving(ctx); err != nil {
		return "", err
	}
	if _, err := t.runUnderWay(ctx); err != nil {
		return "", err
	}
	launcher, err := t.launch(context.WithoutCancel(ctx))
	if err != nil {
		return "", err
	}
	defer func() { t.logDropped(context.WithoutCancel(ctx), "closing the launcher", launcher.Close()) }()
	if g, ok := launcher.(interface{ PID() int }); ok {
		if err := host.SetGuard(ctx, g.PID()); err != nil {
			return "", err
		}
	}
	t.setLauncher(launcher)
	if err := t.addWorkers(ctx, w, host.ID()); err != nil {
		return "", err
	}
	t.log.Info("run joined", "team", t.config.Name, "host", host.ID(), "workers", len(w.Names))
	why, err := newSupervisor(t, host.ID()).join(ctx)
	t.log.Info("run left", "team", t.config.Name, "host", host.ID(), "why", string(why), "cause", causeText(err))
	if why == RunOver && err == nil {
		err = t.leaveTeam(context.WithoutCancel(ctx), host.ID())
	}
	return why, err
}

// runUnderWay is the run that can be joined.
func (t *Team) runUnderWay(ctx context.Context) (muster.Run, error) {
	run, err := t.runs().Get(ctx)
	if err == nil && (run.StartedAt == 0 || run.EndedAt != 0) {
		err = muster.Errorf(muster.NotFound, "there is no run under way to join").
			WithHint(`start one: muster run "GOAL"`)
	}
	return run, err
}

// leaveTeam shuts down the members of this process that never came to life: the run was over as they were written.
func (t *Team) leaveTeam(ctx context.Context, host muster.HostID) error {
	all, err := t.deps.Roster.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Host == host && m.Status != muster.Shutdown {
			if err := t.finalizeMember(ctx, m.Name, host, "the run is over", muster.Message{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// addWorkers writes the records of the workers, whom this process hosts.
func (t *Team) addWorkers(ctx context.Context, w *Workers, host muster.HostID) error {
	role := w.Role
	if role == "" {
		role = "worker"
	}
	const words = "You have joined the team to work on what is on its board. Claim what you can do; " +
		"when there is nothing, call idle."
	for n := 1; len(w.Names) < max(w.N, 1); n++ {
		m, err := t.deps.Roster.Add(ctx, muster.Member{Name: muster.Name(fmt.Sprintf("worker-%d", n)), Role: role,
			Host: host, StartedBy: muster.User, Status: muster.Working, Prompt: words})
		if errors.Is(err, muster.ErrHeld) {
			continue
		}
		if err != nil {
			return err
		}
		w.Names = append(w.Names, m.Name)
	}
	return nil
}

// join hosts members until the run is over or none is left.
func (s *supervisor) join(ctx context.Context) (Ending, error) {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	defer s.serving.Wait()
	house, closeHouse := context.WithCancel(ctx)
	defer closeHouse()
	for _, serve := range []func(context.Context){s.team.deps.Queue.Serve, s.team.deps.Roster.Projector, s.repairLoop,
		func(house context.Context) { s.serve(house, ctx) }} {
		s.serving.Go(func() { serve(house) })
	}
	why := s.waitForRunEnd(ctx)
	s.close()
	err := context.Cause(ctx)
	select {
	case err = <-s.fatal:
	default:
	}
	if err == nil {
		s.each(func(_ muster.Name, l *runningMember) { l.cancel(muster.CauseShutdown) })
	} else {
		s.stop(err) // records stay as they are: another process goes on with them
	}
	s.wait()
	return why, err
}

// waitForRunEnd waits until the run is over, nobody lives here any more, or ctx ends.
func (s *supervisor) waitForRunEnd(ctx context.Context) Ending {
	changed := s.team.config.Store.Table(muster.TableTeam).Watch(ctx)
	members := s.team.deps.Roster.Watch(ctx)
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	for {
		if run, err := s.team.runs().Get(ctx); err == nil && run.EndedAt != 0 {
			return RunOver
		}
		if s.hasNoMember(ctx) {
			return NoWork
		}
		select {
		case <-ctx.Done():
			return ""
		case <-changed:
		case <-members:
		case <-tick.C:
		}
	}
}

// hasNoMember reports whether no member of this process is left.
func (s *supervisor) hasNoMember(ctx context.Context) bool {
	all, err := s.team.deps.Roster.List(ctx)
	if err != nil {
		return false
	}
	for _, m := range all {
		if m.Host == s.host && m.Status != muster.Shutdown {
			return false
		}
	}
	return true
}
