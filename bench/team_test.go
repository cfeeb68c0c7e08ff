//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/testing/wait"
	"muster/journal"
)

// crew is a script in which the lead spawns so many teammates and waits. Each says a word and is idle; one that gets a
// task completes it without a change.
func crew(n int) string {
	var b strings.Builder
	b.WriteString("speakers:\n  lead:\n")
	const batch = 100 // in a reply, which may make 128 calls
	for i := range n {
		if i%batch == 0 {
			b.WriteString("    - do:\n")
		}
		fmt.Fprintf(&b, "        - spawn_teammate: {name: t%d, role: coder, prompt: Wait for tasks.}\n", i)
	}
	b.WriteString("    - do: [{wait: {for: landing}}]\n      until: The end of all days\n")
	b.WriteString("  coder:\n    - say: Ready.\n")
	b.WriteString("scenes:\n  - cue: '(?m)^Task #(?P<id>\\d+): '\n    who: [coder]\n    turns:\n" +
		"      - do: [{complete_task: {task_id: \"${number:id}\", summary: There was nothing to do.}}]\n      - say: Done.\n")
	return b.String()
}

// team is a run with idle teammates, in a process of its own.
type team struct {
	*world
	server *server
	cmd    *exec.Cmd
	log    *os.File

	read   int64                     // how much of the journal is in events
	events map[string]map[string]int // how many, by kind and member
}

func (w *world) hire(n int) *team {
	w.tb.Helper()
	t := &team{world: w, server: serve(w.tb, crew(n)), log: need(os.CreateTemp(w.tb.TempDir(), ""))(w.tb), events: map[string]map[string]int{}}
	// Somebody outside the team has a task in hand, or there was nothing for the lead to wait for.
	w.muster("task", "add", "an open end")
	w.muster("task", "claim", "1", "--as", "visitor")
	t.cmd = w.command(muster, "run", "--teammates", strconv.Itoa(n), "--max-turns", strconv.Itoa(100+n/50), "wait for tasks")
	t.cmd.Env = append(append(t.cmd.Env, t.server.env()...), "MUSTER_IDLE_TIMEOUT=0")
	t.cmd.Stdout, t.cmd.Stderr = t.log, t.log
	must(w.tb, t.cmd.Start())
	w.tb.Cleanup(t.stop)
	t.await("all are idle", func() bool { return t.count(journal.MemberIdle) >= n })
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

// count is how many events of a kind there are of teammates, whose names begin with t. Of the journal, which is long
// where there are thousands of members, it reads what is new.
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

// cpu is the time that the processor has spent on a process and its guard, in seconds.
func (t *team) cpu() (seconds float64) {
	for _, pid := range t.processes() {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		for _, f := range fields[11:15] { // its own and its dead children's, in ticks of 10 ms
			ticks, _ := strconv.ParseFloat(f, 64)
			seconds += ticks / 100
		}
	}
	return seconds
}

// BenchmarkTeammates is 1,000 idle teammates in one process, each after a turn of its own.
func BenchmarkTeammates(b *testing.B) {
	const n = 1_000
	one := newWorld(b, 1).hire(1)
	alone := one.rest(10)
	report(b, "request", figure{what: "first request of a teammate", unit: "KB", ours: float64(one.server.visits("t0")[0].bytes) / 1024, limit: 12})
	one.stop()

	t := newWorld(b, 1).hire(n)
	all := t.rest(10)
	report(b, "memory", figure{what: "1,000 idle teammates, with the guard process", unit: "MB", ours: all.memory, limit: 100, beside: alone.memory, is: "one"})
	report(b, "peak", figure{what: "... while they came, at most", unit: "MB", ours: all.peak, beside: alone.peak, is: "one"})
	report(b, "each", figure{what: "each further teammate", unit: "MB", ours: (all.memory - alone.memory) / (n - 1), limit: 1})
	report(b, "processes", figure{what: "processes of 1,000 idle teammates", unit: "processes", ours: all.processes, limit: alone.processes,
		beside: alone.processes, is: "one; a guard is one of them"})
	report(b, "idle", figure{what: "CPU of 1,000 idle teammates", unit: "ms a second", ours: all.cpu, limit: 10, beside: alone.cpu, is: "one"})
	asked := t.woken()
	t.muster("task", "add", "one more")
	t.await("the task is done", func() bool { return t.count(journal.TaskCompleted) > 0 })
	wait.Elapse(time.Second)
	woken := t.woken() - asked
	report(b, "wake", figure{what: "teammates of 1,000 that one new task wakes", unit: "members", ours: float64(woken), limit: 1})
}

// rested is what an idle team costs, all of its processes together.
type rested struct {
	memory, peak float64 // MB
	cpu          float64 // ms a second
	processes    float64
}

// rest looks at an idle team for some seconds, after five in which what its last turns left is collected.
func (t *team) rest(seconds int) (r rested) {
	wait.Elapse(5 * time.Second)
	before := t.cpu()
	wait.Elapse(time.Duration(seconds) * time.Second)
	r.cpu = 1000 * (t.cpu() - before) / float64(seconds)
	for i, pid := range t.processes() {
		if i == 0 {
			r.memory, r.peak = memory(pid, "VmRSS"), memory(pid, "VmHWM")
		} else {
			r.memory += private(pid)
			r.peak += private(pid)
		}
		r.processes++
	}
	return r
}

func (t *team) processes() []int {
	return append([]int{t.cmd.Process.Pid}, children(t.cmd.Process.Pid)...)
}

func (t *team) woken() (n int) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	for who, visits := range t.server.asked {
		if who != "lead" && len(visits) > 1 {
			n++
		}
	}
	return n
}
