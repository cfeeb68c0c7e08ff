package team_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

// overtaken is a process's store in which another process writes the run's record once, right before this process
// writes there that the base is red.
type overtaken struct {
	muster.Store
	act *func()
}

func (s overtaken) Table(name string) muster.Table {
	if name != muster.TableTeam {
		return s.Store.Table(name)
	}
	return overtakenTable{s.Store.Table(name), s.act}
}

type overtakenTable struct {
	muster.Table
	act *func()
}

func (t overtakenTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	var run muster.Run
	if act := *t.act; key == "run" && act != nil && jsonInto(data, &run) == nil && run.BaseCheck == "red" {
		*t.act = nil
		act()
	}
	return t.Table.Put(ctx, key, data, at)
}

// A check on the base never turns a base red that is known to be green. It may have begun before a landing of another
// process turned the target green, and red would allow every later landing to break it again.
func TestABaseCheckNeverTurnsGreenToRed(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		const key = "run"
		runs := h.other.store.Table(muster.TableTeam)
		turnGreen := func() {
			doc, err := runs.Get(h.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			var run muster.Run
			err = jsonInto(doc.Data, &run)
			run.BaseCheck = "ok"
			if data, e := muster.Encode(run); err != nil || e != nil {
				t.Error(err, e)
			} else if _, err := runs.Put(h.Context(), key, data, doc.Rev); err != nil {
				t.Error(err)
			}
		}
		h.start(strings.TrimSpace(`
speakers:
  lead:
    - wait: 1m
      do: [{read_file: {path: README}}]
    - say: Done.
`), func(c *team.Config) { c.Check, c.Store = "exit 1", overtaken{c.Store, &turnGreen} }).ends(0, time.Hour)
		if n := h.count(func(e muster.Event) bool { return e.Kind == journal.CheckBase }); n != 1 || turnGreen != nil {
			t.Fatalf("the base was checked %d times; the record was to become red: %v", n, turnGreen == nil)
		}
		doc, err := runs.Get(h.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var run muster.Run
		if err := jsonInto(doc.Data, &run); err != nil || run.BaseCheck != "ok" {
			t.Errorf("the base is known as %q, %v", run.BaseCheck, err)
		}
	})
}
