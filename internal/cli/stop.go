package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
)

// stopGrace is how long after its request a member may take to end: it is interrupted, then killed. When it is
// over, the command says that the member goes on, and leaves it alone.
const stopGrace = 15 * time.Second

// stop returns muster team stop. It exits with 1 when a member goes on, however that is printed. Members that have
// shut down already are left out.
func (t teamCommands) stop() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "stop [NAME]", Short: "stop a teammate, or the whole team", Args: namedArgs("[NAME]"),
		Long: "An idle member stops at once. A working one is asked, and may refuse with a reason; who does not\n" +
			"answer in 30 s is stopped. Tasks go back to the board, lanes are kept. Without NAME all are\n" +
			"stopped, the lead last."}
	c.Flags().BoolVar(&force, "force", false, "do not ask")
	c.RunE = t.changing(func(c *cobra.Command, w *workspace.Workspace, args []string) error {
		ctx := c.Context()
		if len(args) == 1 { // a name that nobody has is an error, and names that are like it are its hint
			if _, err := w.Roster(ctx).Get(ctx, muster.Name(args[0])); err != nil {
				return err
			}
		}
		members, err := listMembers(ctx, w)
		if err != nil {
			return err
		}
		// With a name the check above has found the member, so an empty list means that it has shut down already.
		members = slices.DeleteFunc(members, func(m view.Member) bool {
			return m.Status == muster.Shutdown || len(args) == 1 && string(m.Name) != args[0]
		})
		ends, err := stopper{w, force}.stopAll(ctx, members)
		if err != nil {
			return err
		}
		err = t.print(ends, func(w io.Writer, _ view.Paint, _ int) error { return writeStopped(w, ends) })
		if err != nil {
			return err
		}
		// The result is printed before, so the user sees who goes on and why.
		if slices.ContainsFunc(ends, func(e stopped) bool { return !e.Stopped }) {
			return exitStatus(exitError)
		}
		return nil
	})
	return c
}

// stopped is what became of one member. It is what --json prints for each.
type stopped struct {
	Name    muster.Name `json:"name"`
	Stopped bool        `json:"stopped"`
	Why     string      `json:"reason,omitempty"`
}

// writeStopped prints what became of each member. The reason is that of the member, or why the command gave up
// waiting for it.
func writeStopped(w io.Writer, ends []stopped) error {
	if len(ends) == 0 {
		_, err := fmt.Fprintln(w, "nobody is there to stop")
		return err
	}
	t := view.Table{Titles: []string{"", "", ""}, Wide: -1}
	for _, e := range ends {
		state := "goes on"
		if e.Stopped {
			state = "stopped"
		}
		t.Row(view.Text(string(e.Name)), view.Text(state), view.Text(view.OneLine(e.Why)))
	}
	return t.Write(w, false, 0)
}

// stopper stops members. With force the request says that the member has no choice.
type stopper struct {
	w     *workspace.Workspace
	force bool
}

// stopAll stops the teammates side by side, and then the lead, who has nobody left to wait for. It waits until it
// is decided for each. The lead is the first of the members, and the last in the result. An error about one member
// does not keep the others from being stopped.
func (s stopper) stopAll(ctx context.Context, members []view.Member) ([]stopped, error) {
	// listMembers has the lead first, so the loop meets it last.
	slices.Reverse(members)
	ends, errs := make([]stopped, len(members)), make([]error, len(members))
	var teammates sync.WaitGroup
	for i, m := range members {
		if m.Name == muster.Lead {
			teammates.Wait()
		}
		if !m.Alive {
			ends[i], errs[i] = s.endDead(ctx, m.Member)
			continue
		}
		// Each goroutine writes only its own element of both slices, so they need no lock.
		teammates.Go(func() { ends[i], errs[i] = s.stop(ctx, m.Name) })
	}
	teammates.Wait()
	return ends, errors.Join(errs...)
}

// stop asks one member that is alive to shut down, and waits for its answer and its end. A member that does not
// answer is stopped when the request expires.
func (s stopper) stop(ctx context.Context, name muster.Name) (stopped, error) {
	end := stopped{Name: name}
	// The watch begins before the request is sent, so that no change after it is missed.
	requests, changed := s.w.Requests(ctx), s.w.Roster(ctx).Watch(ctx)
	r, err := requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.User, To: name, Force: s.force,
		Reason: "stopped by user"})
	if err == nil {
		r, err = requests.Await(ctx, r.ID)
	}
	switch {
	case err != nil:
		return end, err
	// A refusal is an answer and no error: the member goes on.
	case r.Status == muster.RequestRejected:
		end.Why = r.Response
		return end, nil
	case r.Status == muster.RequestExpired:
		end.Why = "no answer in time"
	}
	// The record and the process are both looked at: a process that dies writes no record, so no watch reports it.
	limit := time.After(stopGrace)
	for {
		now, err := s.w.Roster(ctx).Get(ctx, name)
		if err != nil || now.Status == muster.Shutdown {
			end.Stopped = err == nil
			return end, err
		}
		switch alive, err := s.w.Roster(ctx).Alive(ctx, now.Host); {
		case err != nil:
			return end, err
		case !alive && name == muster.Lead: // its record stays as it is, for resume
			end.Stopped = true
			return end, nil
		case !alive:
			return s.endDead(ctx, now)
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // its process may have died
		case <-limit:
			end.Why = fmt.Sprintf("still %s %s after it was to stop", now.Status, view.Duration(stopGrace))
			return end, nil
		case <-ctx.Done():
			return end, context.Cause(ctx)
		}
	}
}

// endDead ends a member that no process hosts: its record says so, and its tasks go back to the board.
func (s stopper) endDead(ctx context.Context, m muster.Member) (stopped, error) {
	end := stopped{Name: m.Name, Why: "its process had ended"}
	// The record is changed only while it names the same dead host. Another process may have taken the member over
	// since the record was read; then it is alive.
	isTaken := false
	_, err := s.w.Roster(ctx).Update(ctx, m.Name, func(now *muster.Member) {
		if isTaken = now.Host != m.Host; !isTaken {
			now.Status, now.Host, now.IdleReason, now.Doing, now.Task = muster.Shutdown, "", "", "", 0
		}
	})
	// The hint is to stop it again: the member is alive now and can be asked.
	if err == nil && isTaken {
		err = muster.Errorf(muster.Stale, "%s has just been taken over by another process", m.Name).
			WithHint("muster team stop %s", m.Name)
	}
	if err != nil {
		return end, err
	}
	end.Stopped = true
	if m.Host == "" { // it never lived: its claims are those of somebody else in the same name
		return end, nil
	}
	// The board is read after the record was changed, so no claim that the member made before is missed.
	all, err := s.w.Board().List(ctx)
	if err != nil {
		return end, err
	}
	for _, t := range all {
		if t.Owner != m.Name || !t.Open() {
			continue
		}
		// After the record, so that the member is known to be gone when its tasks become free.
		if _, err := s.w.RevokeTask(ctx, t.ID, muster.User, "its owner was stopped"); err != nil {
			return end, err
		}
	}
	return end, nil
}
