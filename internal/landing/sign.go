package landing

import (
	"context"
	"errors"

	"muster"
	"muster/internal/git"
)

// signer signs what lands. The drainer is the only one that calls it.
type signer struct {
	repo    *git.Repo
	records *records
	options *Options

	isTold   bool // people know that a signature could not be had
	hasStuck bool // the program that signs has not ended
}

// isOn reports whether what lands is to be signed.
func (x *signer) isOn() bool {
	switch x.options.Sign {
	case SignAlways:
		return !x.hasStuck
	case SignNever:
		return false
	}
	return git.Signs(x.repo) && !x.hasStuck
}

// sign makes the commits up to a position anew, the lowest first, each with the user's signature on the one before.
// Only what lands is signed: a stack is made anew many times, and a key may ask for a touch each time. top is what the
// message of the top says.
//
// A signature that cannot be had keeps nothing from landing: the commits stay as they are then, and people are told
// why, once.
func (s *stack) sign(ctx context.Context, at int, top muster.Landed) (commit string, err error) {
	if !s.queue.signer.isOn() {
		return top.Commit, nil
	}
	signed, below := make([]string, at), s.tip
	for i, e := range s.entries[:at] {
		landed := s.expected()
		if i == at-1 {
			landed = top
		}
		parents, message := s.queue.commitOf(e.job, below, landed)
		if signed[i], err = git.SignedCommit(ctx, s.queue.repo, e.tree, parents, message); err != nil {
			if ctx.Err() != nil {
				return "", err
			}
			return top.Commit, s.queue.signer.tell(ctx, err)
		}
		below = signed[i]
	}
	for i, commit := range signed {
		s.entries[i].commit = commit
	}
	return below, nil
}

// tell tells people that commits land without a signature, when that is so for the first time.
func (x *signer) tell(ctx context.Context, cause error) error {
	x.options.Log.WarnContext(ctx, "commits cannot be signed", "err", cause)
	x.hasStuck = x.hasStuck || errors.Is(cause, context.DeadlineExceeded) // each landing would wait for it
	if x.isTold {
		return nil
	}
	x.isTold = true
	return x.records.note(ctx, "commits land unsigned, because they cannot be signed: "+muster.PlainText(cause))
}
