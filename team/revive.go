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
	"muster/journal"
)

// A member that failed for a cause that may pass goes on so many times, after a second, two, four; one that then lived so
// long has them all again. Where the disk is full it goes on as soon as there is room, however long that takes.
const (
	maxRevivals = 3
	revived     = 5 * time.Minute
	roomAgain   = time.Minute // between two looks whether there is room: one may cost a request
)

// passing reports whether what failed was not the member: a file that could not be written, a git that was killed.
func passing(err error) bool {
	if errors.Is(err, durable.ErrEnded) { // nor does it pass
		return false
	}
	_, isGit := errors.AsType[*git.ExitError](err)
	return isGit || errors.Is(err, muster.ErrUnavailable)
}

// noRoom reports whether the disk is full: nothing here is at fault, and only the user can help.
func noRoom(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	e, isGit := errors.AsType[*git.ExitError](err)
	return isGit && strings.Contains(strings.ToLower(e.Stderr), syscall.ENOSPC.Error())
}

// lives is a member's life here. Where it fails for a cause that may pass, it begins again as after a crash: the member goes on
// with its conversation and its task. m is then the new one.
func (s *supervisor) lives(ctx context.Context, m **teammate.Member) (end teammate.End, err error) {
	name := (*m).Name()
	for tries, pause, full := 0, time.Second, false; ; {
		began := time.Now()
		if end, err = (*m).Live(ctx); time.Since(began) >= revived {
			tries, pause, full = 0, time.Second, false
		}
		for again := false; !again; {
			if err == nil || ctx.Err() != nil || !passing(err) {
				return end, err
			}
			waits := noRoom(err)
			if !waits {
				if tries++; tries > maxRevivals {
					return end, err
				}
			}
			s.team.log.Warn("member restarts", "member", name, "cause", causeText(err), "wait", pause)
			if !waits || !full { // a full disk is said once
				s.team.emit(ctx, muster.Event{Kind: journal.RunNote, Member: name, Fields: map[string]any{"text": passes(name, err)}})
			}
			full = full || waits
			if !wait(ctx, pause) {
				if errors.Is(context.Cause(ctx), muster.CauseShutdown) {
					return end, err // its life has ended: what it has goes back
				}
				return end, context.Cause(ctx)
			}
			pause = min(2*pause, roomAgain)
			var next *teammate.Member
			if next, err = s.again(ctx, name); err == nil {
				*m, again = next, true
			}
		}
	}
}

func passes(name muster.Name, err error) string {
	if noRoom(err) {
		return string(name) + " goes on when there is room: " + mailbox.Short(err.Error())
	}
	return string(name) + " goes on after an error: " + mailbox.Short(err.Error())
}

// again makes a member anew that lives here. Fenced when its life is over, or another process's.
func (s *supervisor) again(ctx context.Context, name muster.Name) (*teammate.Member, error) {
	record, err := s.team.rooms.Roster.TakeOver(ctx, name, s.host, s.host)
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
