package board

import (
	"context"
	"slices"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// The limits of what a task keeps for an arbiter.
const (
	maxMet      = 8       // landed commits; the newest count
	maxWhyBytes = 4 << 10 // of why the last landing came back
)

// addMet returns the commits that a task has met, with some more, each once and the newest last.
func addMet(met, more []string) []string {
	for _, commit := range more {
		met = append(slices.DeleteFunc(slices.Clone(met), func(c string) bool { return c == commit }), commit)
	}
	return met[max(0, len(met)-maxMet):]
}

// arbiterWords returns what an arbiter reads of the last landing that came back.
func (d Details) arbiterWords(why string) string {
	return text.CutBytes(why+"\n"+d.Text, maxWhyBytes)
}

// EndArbiter records that the arbiter of a task has ended its work, for the holder of the fence. problem says why it
// could not do it; "": it could. Called again it changes nothing: a caller that crashed after the first time goes on
// with the landing.
//
// The record is written before the work lands, so that no crash lets a second arbiter begin.
func EndArbiter(
	ctx context.Context, b *Board, id muster.TaskID, fence int, role, model, problem string,
) (muster.Task, error) {
	t, _, changed, err := b.step(ctx, id, func(t *muster.Task) error {
		if err := owned(*t, fence); err != nil {
			return err
		}
		if !t.IsArbiterDue() {
			return errNoChange
		}
		ended := *t.Arbiter
		ended.EndedAt, ended.Role, ended.Model, ended.Problem = now(), role, model, problem
		t.Arbiter, t.UpdatedAt = &ended, ended.EndedAt
		return nil
	})
	if err != nil || !changed {
		return t, err
	}
	return t, b.emit(ctx, event(journal.ArbiterEnded, t, t.Owner,
		map[string]any{"role": role, "model": model, "text": problem}))
}
