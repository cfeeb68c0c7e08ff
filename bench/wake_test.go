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
	"muster/internal/board"
	"muster/internal/teammate"
	"muster/internal/testing/wait"
	"muster/journal"
)

// BenchmarkQueue is 10,000 idle members at the board, and one new task. They stand in the queue that teammates wait in,
// in this process: 10,000 that the real program spawns would each ask a model first.
func BenchmarkQueue(b *testing.B) {
	const n = 10_000
	ctx := b.Context()
	w := newWorld(b, 1)
	s, j := w.open()
	brd := board.New(s, j)
	q := teammate.NewQueue(brd)
	go q.Serve(ctx)
	woken := make(chan root.Name, n)
	for i := range n {
		name := root.Name(fmt.Sprintf("t%d", i))
		turn, _ := q.Enter("coder")
		go func() {
			select {
			case <-turn:
				woken <- name
			case <-ctx.Done():
			}
		}()
	}
	wait.Elapse(200 * time.Millisecond)
	var took samples
	total := 0
	for i := range rounds {
		start := time.Now()
		need(brd.Create(ctx, board.Draft{Subject: fmt.Sprintf("task %d", i), CreatedBy: root.User}))(b)
		<-woken
		took.took(start)
		wait.Elapse(50 * time.Millisecond)
		total += 1 + len(woken)
		for len(woken) > 0 {
			<-woken
		}
	}
	report(b, "10000", figure{what: "members of 10,000 that one new task wakes", unit: "members", ours: float64(total) / rounds, limit: 1})
	report(b, "wake", figure{what: "... from the task's creation until one is awake", unit: "ms", ours: took.median()})
}

// BenchmarkPickup is how long after `muster task add` has returned an idle teammate of another process starts on it.
func BenchmarkPickup(b *testing.B) {
	t := newWorld(b, 1).hire(1)
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

// last is the newest event of a kind for a task.
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
