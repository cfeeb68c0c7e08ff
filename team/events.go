package team

import (
	"context"
	"iter"

	"muster"
	"muster/journal"
)

// Events yields what happens in the team, in one order, from the first event after the place: 0 is the beginning of all
// runs that the store has seen. At the end it waits for more; it ends, without an error, when ctx does. The package
// journal lists the kinds and their fields.
//
// The Pos of an entry is all that a reader keeps: it may be stored, and Events goes on from there, in this process or
// in another. A slow reader is only late. An error whose code is Corrupt concerns the one entry it comes with, whose
// Pos is good, and the sequence goes on; any other ends it.
//
// It may be called at any time, from any goroutine, any number of times, also while Run runs in another.
func (t *Team) Events(ctx context.Context, after muster.Pos) iter.Seq2[journal.Entry, error] {
	return t.Journal().Follow(ctx, after)
}
