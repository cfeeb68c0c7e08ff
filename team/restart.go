package team

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/mailbox"
	"muster/internal/teammate"
)

// A member restarts up to maxRestarts times after transient failures, with a pause of one, two and four seconds before
// it. healthyTime without a failure resets a member's count. While the disk is full there is no limit, and the longest pause
// is maxPause: each try may cost a request.
const (
	maxRestarts = 3
	healthyTime = 5 * time.Minute
	maxPause    = time.Minute
)

// isTransient reports whether a retry is worthwhile, because something outside failed: a file could not be written, or
// git was killed.
func isTransient(err error) bool {
	if errors.Is(err, durable.ErrEnded) { // this process can write nothing any more
		return false
	}
	_, isGit := errors.AsType[*git.ExitError](err)
	return isGit || errors.Is(err, muster.ErrUnavailable)
}

// isDiskFull reports whether the disk is full, which only the user can change.
func isDiskFull(err error) bool {
	// Git writes files of its own, and tells of a full disk in words only.
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	e, isGit := errors.AsType[*git.ExitError](err)
	return isGit && strings.Contains(strings.ToLower(e.Stderr), syscall.ENOSPC.Error())
}

// runWithRestarts calls run until it succeeds, fails for a lasting cause, or has failed too often. what is the subject
// of the notes that tell the user each failure, but a full disk only once. member is who runs; "" is nobody. A member
// that is shut down during a pause ends with its own error, so that its claims are released.
func (p *runHost) runWithRestarts(ctx context.Context, what string, member muster.Name, run func() error) error {
	tries, pause, isFullReported := 0, time.Second, false
	for {
		began := time.Now()
		err := run()
		// What failed after so long is a new failure, and not the same one again.
		if member != "" && time.Since(began) >= healthyTime {
			tries, pause, isFullReported = 0, time.Second, false
		}
		if err == nil || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		isFull, when := isDiskFull(err), "when there is room"
		if !isFull {
			when = "after an error"
			if tries++; tries > maxRestarts {
				return err
			}
		}
		p.Log.Warn("restart", "what", what, "cause", causeText(err), "wait", pause)
		if !isFull || !isFullReported {
			p.note(ctx, member, what+" goes on "+when+": "+mailbox.Short(err.Error()))
		}
		isFullReported = isFullReported || isFull
		if !wait(ctx, pause) {
			// Whoever is shut down while it waits has claims that nobody else gives back: its caller tells that by
			// the error.
			if errors.Is(context.Cause(ctx), muster.CauseShutdown) {
				return err
			}
			return context.Cause(ctx)
		}
		pause = min(2*pause, maxPause)
	}
}

// live runs the member of a record until its life is over, and returns it as it was last. After a transient failure it
// goes on with its conversation and its task, as after a crash. The error is Fenced when it is another process's then.
func (s *supervisor) live(ctx context.Context, record muster.Member) (m *teammate.Member, end teammate.End, err error) {
	name := record.Name
	s.Log.Info("member started", "member", name, "host", s.id)
	defer func() { s.Log.Info("member stopped", "member", name, "cause", causeText(err)) }()
	err = s.runWithRestarts(ctx, string(name), name, func() (err error) {
		if m != nil { // it failed, and its record may have changed since
			record, err = s.Roster.TakeOver(ctx, name, s.id, s.id)
			if errors.Is(err, muster.ErrStale) || err == nil && record.Status == muster.Shutdown {
				err = muster.Errorf(muster.Fenced, "%s lives here no more", name)
			}
		}
		if err == nil {
			m, err = s.member(record)
		}
		if err == nil {
			end, err = m.Live(ctx)
		}
		return err
	})
	return m, end, err
}

// wait waits for d; false: ctx has ended before.
func wait(ctx context.Context, d time.Duration) bool { return clock.Sleep(ctx, d) == nil }
