package team

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/mailbox"
	"muster/internal/teammate"
)

// A member restarts up to maxRestarts times after transient failures, with a pause of one, two and four seconds before
// it. healthyTime without a failure resets the count. While the disk is full there is no limit, and the longest pause
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

// restarts says for what runWithRestarts runs something.
type restarts struct {
	what    string        // the subject of the note that tells the user
	member  muster.Name   // the member that it is; "" when it is none
	healthy time.Duration // a run that lasted as long resets the count; 0: none does
}

// runWithRestarts calls run until it succeeds, fails for a lasting cause, or has failed too often. The user is told
// each failure, but a full disk only once. A member that is shut down during a pause ends with its own error, so that
// its claims are released.
func (p *runHost) runWithRestarts(ctx context.Context, r restarts, run func() error) error {
	tries, pause, isFullReported := 0, time.Second, false
	for {
		began := time.Now()
		err := run()
		// What failed after so long is a new failure, and not the same one again.
		if r.healthy > 0 && time.Since(began) >= r.healthy {
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
		p.Log.Warn("restart", "what", r.what, "cause", causeText(err), "wait", pause)
		if !isFull || !isFullReported {
			p.note(ctx, r.member, r.what+" goes on "+when+": "+mailbox.Short(err.Error()))
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

// live runs a member until its life is over. After a transient failure it goes on with its conversation and its task,
// as after a crash; *m is then the new value.
func (s *supervisor) live(ctx context.Context, m **teammate.Member) (end teammate.End, err error) {
	name, isFirst := (*m).Name(), true
	s.Log.Info("member started", "member", name, "host", s.id)
	defer func() { s.Log.Info("member stopped", "member", name, "cause", causeText(err)) }()
	r := restarts{what: string(name), member: name, healthy: healthyTime}
	err = s.runWithRestarts(ctx, r, func() (err error) {
		if !isFirst {
			next, err := s.reopenMember(ctx, name)
			if err != nil {
				return err
			}
			*m = next
		}
		isFirst = false
		end, err = (*m).Live(ctx)
		return err
	})
	return end, err
}

// reopenMember makes a member of this process anew. The error is Fenced when its life is over, or when it is another
// process's now.
func (s *supervisor) reopenMember(ctx context.Context, name muster.Name) (*teammate.Member, error) {
	record, err := s.Roster.TakeOver(ctx, name, s.id, s.id)
	switch {
	case errors.Is(err, muster.ErrStale), err == nil && record.Status == muster.Shutdown:
		return nil, muster.Errorf(muster.Fenced, "%s lives here no more", name)
	case err != nil:
		return nil, err
	}
	return s.member(record)
}

// wait waits for d; false: ctx has ended before.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
