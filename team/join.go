package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
// records stay as they are, and another process of the team goes on with them. Errors: NotFound where no run is under
// way.
func (t *Team) Join(ctx context.Context, w *Workers) (why Ending, err error) {
	// Where there is no run nothing is written, not even a host.
	if err := t.checkModel(); err != nil {
		return "", err
	}
	run, err := t.runUnderWay(ctx)
	if err != nil {
		return "", err
	}
	p, err := t.open(ctx, run)
	if err != nil {
		return "", err
	}
	prepare := func(ctx context.Context, _ muster.HostID) error {
		// Again, now that whoever puts the team aside sees this process: it may have begun, or be done, meanwhile.
		err := p.workspace.CheckNotArchiving(ctx)
		if err == nil {
			_, err = t.runUnderWay(ctx)
		}
		return err
	}
	err = p.host(ctx, "muster join", prepare, func(ctx context.Context, s *supervisor) (err error) {
		// Only now, when tools can be started here: another process would take over workers that this one leaves.
		if err := p.addWorkers(ctx, w, s.id); err != nil {
			return err
		}
		p.Log.Info("run joined", "team", p.config.Name, "host", s.id, "workers", len(w.Names))
		err = s.run(ctx, func(ctx, _ context.Context) error {
			why = s.waitForRunEnd(ctx)
			return context.Cause(ctx)
		}, func(context.Context) error { return nil })
		if watch, ok := p.Phases.(*phaseWatch); ok {
			watch.release()
		}
		p.Log.Info("run left", "team", p.config.Name, "host", s.id, "why", string(why), "cause", causeText(err))
		if why == RunOver && err == nil { // some may have never come to life: it was over as they were written
			err = p.finalizeMembers(context.WithoutCancel(ctx), "the run is over",
				func(m muster.Member) (bool, error) { return m.Host == s.id, nil })
		}
		return err
	})
	return why, err
}

func (t *Team) runUnderWay(ctx context.Context) (muster.Run, error) {
	run, err := t.services().Runs().Get(ctx)
	if err == nil && (run.StartedAt == 0 || run.EndedAt != 0) {
		err = muster.Errorf(muster.NotFound, "there is no run under way to join").
			WithHint(`start one: muster run "GOAL"`)
	}
	return run, err
}

func (p *runHost) addWorkers(ctx context.Context, w *Workers, host muster.HostID) error {
	const words = "You have joined the team to work on what is on its board. Claim what you can do; " +
		"when there is nothing, call idle."
	for n := 1; len(w.Names) < max(w.N, 1); n++ {
		m, err := p.Roster.Add(ctx, muster.Member{Name: muster.Name(fmt.Sprintf("worker-%d", n)),
			Role: cmp.Or(w.Role, "worker"), Host: host, StartedBy: muster.User, Status: muster.Working, Prompt: words})
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

// waitForRunEnd waits until the run is over, nobody lives here any more, or ctx ends.
func (s *supervisor) waitForRunEnd(ctx context.Context) Ending {
	changed := s.Store.Table(muster.TableTeam).Watch(ctx)
	members := s.Roster.Watch(ctx)
	for {
		if run, err := s.Run(ctx); err == nil && run.EndedAt != 0 {
			return RunOver
		}
		all, err := s.Roster.List(ctx)
		// A roster that cannot be read now is no reason to leave.
		if err == nil && !slices.ContainsFunc(all, func(m muster.Member) bool {
			return m.Host == s.id && m.Status != muster.Shutdown
		}) {
			return NoWork
		}
		select {
		case <-ctx.Done():
			return ""
		case <-changed:
		case <-members:
		case <-time.After(s.config.Limits.IdlePoll):
		}
	}
}
