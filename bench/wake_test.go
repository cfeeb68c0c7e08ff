//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	root "muster"
	"muster/internal/testing/wait"
	"muster/journal"
)

// BenchmarkPickup is how long after `muster task add` has returned an idle teammate of another process starts on it.
func BenchmarkPickup(b *testing.B) {
	t := newWorld(b, 1).hire()
	var added, claims, lanes, asks samples // ms after task add has returned; the first from its start
	for i := 2; i < 3*rounds+2; i++ {
		before := len(t.server.visits("t0"))
		idle := t.count(journal.MemberIdle)
		start := time.Now()
		t.muster("task", "add", fmt.Sprintf("task %d", i))
		back := time.Now()
		t.await("the teammate is idle again", func() bool { return t.count(journal.MemberIdle) > idle })
		claimed, ok := t.last(journal.TaskClaimed, i)
		laned, _ := t.last(journal.LaneCreated, i)
		visits := t.server.visits("t0")
		if !ok || len(visits) <= before {
			b.Fatalf("task %d was not begun", i)
		}
		added.add(ms(back.Sub(start)))
		claims.add(ms(root.Time(claimed.At).Sub(back)))
		lanes.add(ms(root.Time(laned.At).Sub(back)))
		asks.add(ms(visits[before].came.Sub(back)))
		wait.Elapse(100 * time.Millisecond)
	}
	report(b, "claim", figure{what: "from the return of `task add` until an idle teammate of another process has claimed it", unit: "ms", ours: claims.median(), limit: 50})
	report(b, "request", figure{what: "... and asks its model about it", unit: "ms", ours: asks.median(), limit: 50,
		beside: lanes.median(), is: "until the lane is made"})
	b.Logf("task add itself takes %.1f ms", added.median())
}

func (t *team) last(kind string, task int) (e root.Event, ok bool) {
	data, _ := os.ReadFile(filepath.Join(t.root, ".team", "events.jsonl"))
	for line := range bytes.Lines(data) {
		var x root.Event
		if json.Unmarshal(line, &x) == nil && x.Kind == kind && int(x.Task) == task {
			e, ok = x, true
		}
	}
	return e, ok
}
