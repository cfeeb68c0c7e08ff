//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/testing/wait"
	"muster/journal"
)

// crew is a script in which the lead spawns a teammate and waits. It says a word and is idle; when it gets a task, it
// completes it without a change.
const crew = `speakers:
  lead:
    - do: [{spawn_teammate: {name: t0, role: coder, prompt: Wait for tasks.}}]
    - do: [{wait: {for: landing}}]
      until: The end of all days
  coder:
    - say: Ready.
scenes:
  - cue: '(?m)^Task #(?P<id>\d+): '
    who: [coder]
    turns:
      - do: [{complete_task: {task_id: "${number:id}", summary: There was nothing to do.}}]
      - say: Done.
`

// team is a run with an idle teammate, in a process of its own.
type team struct {
	*world
	server *server
	cmd    *exec.Cmd
	log    *os.File

	read   int64                     // how much of the journal is in events
	events map[string]map[string]int // how many, by kind and member
}

func (w *world) hire() *team {
	w.tb.Helper()
	t := &team{world: w, server: serve(w.tb, crew), log: need(os.CreateTemp(w.tb.TempDir(), ""))(w.tb), events: map[string]map[string]int{}}
	// Somebody outside the team has a task in hand, or there was nothing for the lead to wait for.
	w.muster("task", "add", "an open end")
	w.muster("task", "claim", "1", "--as", "visitor")
	t.cmd = w.command(muster, "run", "--teammates", "1", "wait for tasks")
	t.cmd.Env = append(append(t.cmd.Env, t.server.env()...), "MUSTER_IDLE_TIMEOUT=0")
	t.cmd.Stdout, t.cmd.Stderr = t.log, t.log
	must(w.tb, t.cmd.Start())
	w.tb.Cleanup(t.stop)
	t.await("it is idle", func() bool { return t.count(journal.MemberIdle) > 0 })
	return t
}

func (t *team) stop() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	_ = t.cmd.Wait()
	t.log.Close()
}

func (t *team) await(what string, is func() bool) {
	t.tb.Helper()
	if _, ok := wait.Poll(10*time.Minute, is); !ok {
		text, _ := os.ReadFile(t.log.Name())
		t.tb.Fatalf("it never came that %s\n%s", what, text[max(0, len(text)-2000):])
	}
}

// count is how many events of a kind there are of teammates, whose names begin with t. It reads what is new.
func (t *team) count(kind string) (n int) {
	if f, err := os.Open(filepath.Join(t.root, ".team", "events.jsonl")); err == nil {
		data, _ := io.ReadAll(io.NewSectionReader(f, t.read, math.MaxInt64-t.read))
		f.Close()
		data = data[:bytes.LastIndexByte(data, '\n')+1]
		t.read += int64(len(data))
		for line := range bytes.Lines(data) {
			var e struct{ Event, Member string }
			if json.Unmarshal(line, &e) != nil {
				continue
			}
			if t.events[e.Event] == nil {
				t.events[e.Event] = map[string]int{}
			}
			t.events[e.Event][e.Member]++
		}
	}
	for name, times := range t.events[kind] {
		if strings.HasPrefix(name, "t") {
			n += times
		}
	}
	return n
}

// BenchmarkTeammates is what a teammate's model is asked first.
func BenchmarkTeammates(b *testing.B) {
	t := newWorld(b, 1).hire()
	report(b, "request", figure{what: "first request of a teammate", unit: "KB", ours: float64(t.server.visits("t0")[0].bytes) / 1024, limit: 12})
}
