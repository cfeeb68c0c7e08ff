package landing

import (
	"context"
	"errors"

	"muster"
	"muster/internal/git"
	"muster/journal"
)

// isSigned reports whether what lands is to be signed.
func (l *Lander) isSigned() bool {
	switch l.options.Sign {
	case SignAlways:
		return true
	case SignNever:
		return false
	}
	return git.Signs(l.repo)
}

// sign makes the commits up to a position anew, the lowest first, each with the user's signature on the one before.
// Only what lands is signed: a stack is made anew many times, and a key may ask for a touch each time. top is what the
// message of the top says.
//
// A signature that cannot be had keeps nothing from landing: the commits stay as they are then, and people are told
// why, once.
func (s *stack) sign(ctx context.Context, at int, top muster.Landed) (commit string, err error) {
	commit = top.Commit
	if !s.isSigned() || s.cannotSign.Load() {
		return commit, nil
	}
	withSignature := func(ctx context.Context, tree string, parents []string, message string) (string, error) {
		return git.SignedCommit(ctx, s.repo, tree, parents, message)
	}
	signed, below := make([]string, at), s.tip
	for i, e := range s.entries[:at] {
		landed := s.expected()
		if i == at-1 {
			landed = top
		}
		if signed[i], err = e.commitBy(ctx, withSignature, e.tree, below, landed); err != nil {
			if ctx.Err() != nil {
				return "", err
			}
			return commit, tellUnsigned(ctx, s.Lander, err)
		}
		below = signed[i]
	}
	for i, commit := range signed {
		s.entries[i].commit = commit
	}
	return below, nil
}

// tellUnsigned tells people that commits land without a signature, when that is so for the first time.
func tellUnsigned(ctx context.Context, l *Lander, cause error) error {
	l.options.Log.WarnContext(ctx, "commits cannot be signed", "err", cause)
	if errors.Is(cause, context.DeadlineExceeded) {
		l.cannotSign.Store(true) // each landing would wait for it
	}
	if l.isUnsigned.Swap(true) {
		return nil
	}
	return l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{
		"text": "commits land unsigned, because they cannot be signed: " + muster.PlainText(cause)}})
}
