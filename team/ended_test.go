package team_test

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

// A process that dies when the run's record says that it has ended, and the journal does not yet, leaves an end that
// nobody was told. Resume gives that run's summary, without a word from a model, and does so once.
func TestResumeTellsAnEndThatNobodyWasTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words, check string
		code         int
		text         string
	}{
		"all has landed": {oneTask + writes, "", 0, "Done."},
		"a red target":   {oneTask + writes, "false", 3, "Done."},
		"an answer":      {"speakers: {lead: [{say: The answer.}]}", "", 0, "The answer."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				var dead atomic.Bool
				first := h.start(c.words, func(o *team.Config) {
					o.Check = c.check
					o.Store = deaf(refusing(o.Store, muster.TableTeam, func(data []byte) error {
						dead.Store(bytes.Contains(data, []byte(`"ended_at"`)))
						return nil
					}), dead.Load)
				}).ends(c.code, time.Hour)
				if first.Text != c.text || h.count(is(journal.RunEnded, "")) != 0 {
					t.Fatalf("the run was to end untold with %q\n%s", c.text, h.tail())
				}
				turns := h.turns(muster.Lead)
				sum := h.resume("speakers: {lead: [{say: Nobody asked.}]}", nil).ends(c.code, time.Minute)
				same := slices.EqualFunc(sum.Tasks, first.Tasks, func(a, b muster.Task) bool {
					return a.ID == b.ID && a.Status == b.Status
				})
				if !same || sum.Text != first.Text || sum.Red != first.Red || sum.Verified != first.Verified ||
					sum.Run.EndedAt != first.Run.EndedAt {
					t.Errorf("got  %+v\nwant %+v", sum, first)
				}
				if n := h.turns(muster.Lead); n != turns {
					t.Errorf("the lead was asked again: %d turns, then %d", turns, n)
				}
				err := h.resume("speakers: {lead: [{say: Nobody asked.}]}", nil).fails()
				if !errors.Is(err, muster.ErrNotFound) || h.count(is(journal.RunEnded, "")) != 1 {
					t.Errorf("a second resume: %v\n%s", err, h.tail())
				}
			})
		})
	}
}
