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

func (r *teamRun) addWorkers(ctx context.Context, w *Workers, host muster.HostID) error {
	const words = "You have joined the team to work on what is on its board. Claim what you can do; " +
		"when there is nothing, call idle."
	for n := 1; len(w.Names) < max(w.N, 1); n++ {
		m, err := r.site.roster.Add(ctx, muster.Member{Name: muster.Name(fmt.Sprintf("worker-%d", n)),
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

func checkUnderWay(run muster.Run) error {
	if run.StartedAt != 0 && run.EndedAt == 0 {
		return nil
	}
	return muster.Errorf(muster.NotFound, "there is no run under way to join").WithHint(`start one: muster run "GOAL"`)
}

func (r *teamRun) join(ctx context.Context, w *Workers) (why Ending, err error) {
	prepare := func(ctx context.Context, _ muster.HostID) error {
		// Again, now that whoever puts the team aside sees this process: it may have begun, or be done, meanwhile.
		if err := r.site.workspace.CheckNotArchiving(ctx); err != nil {
			return err
		}
		run, err := r.site.runs.Get(ctx)
		return cmp.Or(err, checkUnderWay(run))
	}
	err = r.host.serve(ctx, "muster join", prepare, func(ctx context.Context, s *supervisor) (err error) {
		// Only now, when tools can be started here: another process would take over workers that this one leaves.
		if err := r.addWorkers(ctx, w, s.id); err != nil {
			return err
		}
		log, name := r.site.log, r.site.config.Name
		log.Info("run joined", "team", name, "host", s.id, "workers", len(w.Names))
		err = s.run(ctx, func(ctx, _ context.Context) error {
			why = r.waitForEnd(ctx, s.id)
			return context.Cause(ctx)
		}, func(context.Context) error { return nil })
		log.Info("run left", "team", name, "host", s.id, "why", string(why), "cause", causeText(err))
		if why == RunOver && err == nil { // some may have never come to life: it was over as they were written
			err = r.finalizer.members(context.WithoutCancel(ctx), "the run is over",
				func(m muster.Member) (bool, error) { return m.Host == s.id, nil })
		}
		return err
	})
	return why, err
}

// waitForEnd waits until the run is over, nobody lives here any more, or ctx ends.
func (r *teamRun) waitForEnd(ctx context.Context, id muster.HostID) Ending {
	changed := r.site.workspace.Store().Table(muster.TableTeam).Watch(ctx)
	members := r.site.roster.Watch(ctx)
	for {
		if run, err := r.site.runs.Get(ctx); err == nil && run.EndedAt != 0 {
			return RunOver
		}
		all, err := r.site.roster.List(ctx)
		// A roster that cannot be read now is no reason to leave.
		if err == nil && !slices.ContainsFunc(all, func(m muster.Member) bool {
			return m.Host == id && m.Status != muster.Shutdown
		}) {
			return NoWork
		}
		select {
		case <-ctx.Done():
			return ""
		case <-changed:
		case <-members:
		case <-time.After(r.site.config.Limits.IdlePoll):
		}
	}
}
