//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	root "muster"
	"muster/journal"
)

// history writes what a team that worked on so many tasks leaves: ten events a task, a lead and two teammates, some mail.
func (w *world) history(tasks int) {
	w.tb.Helper()
	s, _ := w.open()
	defer s.Close()
	ctx := w.tb.Context()
	at := root.UnixTime(time.Now().Add(-time.Hour))
	run := root.Run{Team: "bench", Goal: "many tasks", Target: "muster/bench", Model: "stand-in", Cap: 2, StartedAt: at, EndedAt: at + 3000}
	need(s.Table(root.TableTeam).Put(ctx, "run", need(root.Encode(run))(w.tb), root.None))(w.tb)
	for _, name := range []root.Name{root.Lead, "alice", "bob"} {
		m := root.Member{Name: name, Role: "coder", Status: root.Shutdown}
		need(s.Table(root.TableMembers).Put(ctx, string(name), need(root.Encode(m))(w.tb), root.None))(w.tb)
		for i := range 20 {
			must(w.tb, s.Inbox().Put(ctx, name, root.Message{ID: root.MessageID(fmt.Sprintf("%s-%d", name, i)), From: root.User, Type: root.MailMessage, Content: "some words", At: at}))
		}
	}
	lines := [][]byte{need(root.MarshalLine(root.Event{Kind: journal.RunStarted, At: at, Member: root.Lead, Fields: map[string]any{"goal": run.Goal, "target": run.Target}}))(w.tb)}
	for i := 1; i <= tasks; i++ { // the tool's and turn's events are the most, as in a real run
		for n, kind := range []string{journal.TaskCreated, journal.TaskClaimed, journal.TurnStarted, journal.TurnEnded, journal.ToolStarted,
			journal.ToolEnded, journal.TurnStarted, journal.TurnEnded, journal.TaskLanding, journal.TaskReleased} {
			e := root.Event{Kind: kind, At: at + float64(i) + float64(n)/10, Member: "alice", Task: root.TaskID(i), Fields: map[string]any{
				"subject": fmt.Sprintf("task number %d", i), "turn": 1, "input": 4000, "output": 200, "cache_read": 3000, "tool": "bash", "text": "go test ./...", "seconds": 1.5}}
			lines = append(lines, need(root.MarshalLine(e))(w.tb))
		}
	}
	need(s.Log().Append(ctx, root.StreamEvents, root.Anywhere, lines...))(w.tb)
}

// BenchmarkPrint is each command that prints state, on a board of 1,000 tasks with 10,000 events.
func BenchmarkPrint(b *testing.B) {
	const tasks, times = 1_000, 15
	w := newWorld(b, 1)
	w.board(tasks)
	w.history(tasks)
	commands := []string{"version", "status", "status --json", "task list", "task list --json", "task show 500", "team list", "mail list", "requests",
		"requests --all", "worktree list", "config", "archive list", "log --task 500", "log"}
	took := map[string]*samples{}
	for range times {
		for _, c := range commands { // by turns, so that what else the machine does is everybody's
			if took[c] == nil {
				took[c] = new(samples)
				w.muster(strings.Fields(c)...) // not counted: it brings the files into memory
			}
			start := time.Now()
			w.muster(strings.Fields(c)...)
			took[c].took(start)
		}
	}
	for _, c := range commands[1:] {
		what, limit := "`muster "+c+"`, 1,000 tasks", 20.0
		if strings.HasPrefix(c, "log") {
			what, limit = what+" with 10,000 events", 100
		}
		report(b, strings.ReplaceAll(c, " ", "-"), figure{what: what, unit: "ms", ours: took[c].median(), limit: limit,
			beside: took["version"].median(), is: "`muster version`"})
	}
}
