package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// What a model is told of its tools depends on who it is, and stays the same while the member works.
func TestTheToolsOfAMember(t *testing.T) {
	for name, c := range map[muster.Name]struct{ has, lacks, system string }{
		muster.Lead: {"spawn_teammate", "submit_plan", "lead"}, "alice": {"submit_plan", "spawn_teammate", "Your role is coder."},
	} {
		live(t, name, func(l *life) {
			l.change(muster.Lead, func(m *muster.Member) { m.Status = muster.Working })
			l.start(calls("read_inbox", nil), says("Done."))
			if len(l.asked) < 2 {
				l.Fatalf("%s was asked %d times: %v", name, len(l.asked), l.err)
			}
			var names []string
			for _, s := range l.asked[0].Tools {
				names = append(names, s.Name)
			}
			if !slices.Contains(names, c.has) || slices.Contains(names, c.lacks) ||
				!strings.Contains(strings.Join(l.asked[0].System, ""), c.system) {
				l.Errorf("%s has %v, and reads %q", name, names, l.asked[0].System)
			}
			if &l.asked[0].Tools[0] != &l.asked[1].Tools[0] {
				l.Error("the tools are made again for each turn")
			}
			if l.asked[0].CacheKey != string(name)+"@demo" || !strings.HasPrefix(l.asked[0].CacheGroup, "demo/") {
				l.Errorf("the cache keys are %s and %s", l.asked[0].CacheKey, l.asked[0].CacheGroup)
			}
		})
	}
	live(t, "alice", func(l *life) {
		p := l.toolbox.get()
		for name, want := range map[string]toolEffects{
			"read_inbox": {polls: true}, "idle": {polls: true}, "no_tool": {}, "read_file": {}, "todo": {}, "task_get": {},
			"bash": {files: true}, "write_file": {files: true}, "subagent": {files: true},
			"send_message": {records: true}, "task_create": {records: true}, "complete_task": {records: true},
		} {
			if got := p.effects[name]; got != want {
				l.Errorf("%s has the effects %+v", name, got)
			}
		}
		if l.toolbox.recoverer("submit_plan") == nil || l.toolbox.recoverer("bash") != nil || l.toolbox.recoverer("x") != nil {
			l.Error("records tell the outcome of submit_plan only")
		}
	})
}

// The journal tells of each call what it is and how it ended, and of each turn what it cost; also of a subagent's.
func TestTheJournalTellsOfCallsAndTurns(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.change("alice", func(m *muster.Member) { m.Turns = 5 })
		l.restart("alice")
		slow := func(next turn) turn {
			return func(r llm.Request) (llm.Reply, error) {
				time.Sleep(1500 * time.Millisecond)
				return next(r)
			}
		}
		l.start(calls("subagent", map[string]any{"kind": "explore", "prompt": "find it\nand more"}),
			calls("glob", map[string]any{"pattern": "*.go"}), says("I found it."),
			slow(calls("claim_task", map[string]any{"task_id": 9})), slow(says("Done.")))
		time.Sleep(5 * time.Second)
		l.send(muster.MailMessage, muster.Lead, "alice", "more")
		synctest.Wait()
		for _, c := range []struct {
			kind   string
			fields []string
			want   string
		}{
			{journal.ToolStarted, []string{"tool", "text", "subagent"}, "subagent,find it,<nil>; glob,*.go,true; claim_task,9,<nil>"},
			{journal.ToolEnded, []string{"tool", "error", "seconds"}, "glob,<nil>,0; subagent,<nil>,0; claim_task,there is no task 9,0"},
			{journal.TurnStarted, []string{"turn", "turns"}, "1,6; 2,7; 3,8; 1,9"},
			{journal.TurnEnded, []string{"turn", "subagent", "seconds", "input", "model"},
				"1,<nil>,0,0,; <nil>,true,<nil>,0,; <nil>,true,<nil>,7,test; 2,<nil>,1.5,0,; 3,<nil>,1.5,7,test; 1,<nil>,0,7,test"},
		} {
			var all []string
			for _, e := range l.events(c.kind) {
				var values []string
				for _, name := range c.fields {
					values = append(values, fmt.Sprint(e.Fields[name]))
				}
				all = append(all, strings.Join(values, ","))
			}
			if got := strings.Join(all, "; "); got != c.want {
				l.Errorf("%s: %s; want %s", c.kind, got, c.want)
			}
		}
		if l.TurnCount() != 9 || l.events(journal.ToolStarted)[0].Member != "alice" {
			l.Errorf("she has had %d turns", l.TurnCount())
		}
	})
}

// Where a plan is required, neither the member nor a subagent of it changes anything before one is approved.
func TestAPlanIsRequiredOfSubagentsToo(t *testing.T) {
	for _, isRequired := range []bool{true, false} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{RequirePlan: isRequired})
			l.start(calls("write_file", map[string]any{"path": "a.txt", "content": "a"}),
				calls("subagent", map[string]any{"kind": "work", "prompt": "write it"}), says("Written."), says("Done."))
			n := strings.Count(l.heard(), "may run: read what you need")
			if _, err := os.Stat(l.rows.dir + "/a.txt"); (n == 2) != isRequired || n%2 != 0 || (err != nil) != isRequired {
				l.Errorf("required %v, she hears %s; the file: %v", isRequired, l.heard(), err)
			}
		})
	}
}

// The whole of an output that is too long for a model is in a file of the team; where it cannot be kept it is said to be
// lost.
func TestALongOutputIsKept(t *testing.T) {
	for _, isKept := range []bool{true, false} {
		live(t, "alice", func(l *life) {
			long := strings.Repeat("0123456789", tool.MaxOutput/10) + "!"
			l.config.Extra = []llm.Tool{tool.Func("shout", "", func(context.Context, struct{}) (string, error) { return long, nil })}
			if !isKept {
				l.config.Home = "/dev/null"
			}
			l.restart("alice")
			if l.start(calls("shout", nil), says("Done.")); strings.Contains(l.heard(), "could not be kept") == isKept {
				l.Errorf("she hears %.300s", l.heard())
			}
			if !isKept {
				return
			}
			files, err := os.ReadDir(l.outputs())
			if err != nil || len(files) != 1 {
				l.Fatalf("%v, %v", files, err)
			}
			path := l.outputs() + "/" + files[0].Name()
			if data, err := os.ReadFile(path); err != nil || string(data) != long || !strings.Contains(l.heard(), path) {
				l.Errorf("the file has %d bytes: %v", len(data), err)
			}
		})
	}
}

// worktree_run returns what the command has printed and its exit code, also where it was killed at its time limit.
func TestExecInLane(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		exec := func(command string) (string, int, error) {
			return l.toolbox.execInLane(l.Context(), l.rows.dir, command, time.Second)
		}
		if text, exit, err := exec("echo"); strings.TrimSpace(text) != "the output" || exit != 0 || err != nil {
			l.Errorf("%q, %d, %v", text, exit, err)
		}
		if text, exit, err := exec("sleep"); !strings.Contains(text, "the output") || !strings.Contains(text, "[killed after 1s]") ||
			exit != 137 || err != nil {
			l.Errorf("killed: %q, %d, %v", text, exit, err)
		}
		l.commands.err = errTest
		if _, _, err := exec("echo"); !errors.Is(err, errTest) {
			l.Errorf("not started: %v", err)
		}
		l.commands.err = nil
		ctx, stop := context.WithCancelCause(l.Context())
		stop(errTest)
		if text, _, err := l.toolbox.execInLane(ctx, l.rows.dir, "sleep", time.Second); !errors.Is(err, errTest) ||
			strings.Contains(text, "killed") {
			l.Errorf("stopped: %q, %v", text, err)
		}
	})
}

func TestGist(t *testing.T) {
	for input, want := range map[string]string{
		`{"path":"a.go","content":"x"}`: "a.go", `{"command":"make\nall","path":"b"}`: "make", `{"content":"x"}`: "",
		`{"command":"","path":"c"}`: "c", `{"command":null,"to":"bob"}`: "bob", `{"task_id":7}`: "7", `[`: "",
	} {
		if got := Gist(llm.Call{Input: json.RawMessage(input)}); got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}

// A member without a task reads a checkout of the target's tip, which is made again when something has landed, and
// writes nothing there; one with a task works in its lane.
func TestWhereToolsRun(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		w := &workdir{self: l.self}
		expect := func(what, dir string, isWritable bool) {
			t.Helper()
			d, err := w.Workdir(ctx)
			if err != nil || d.Dir != l.rows.dir+dir || d.Writable != isWritable || (d.Why == "") != isWritable ||
				d.ReadOnly[0] != l.Home.Outputs() {
				l.Errorf("%s: %+v, %v", what, d, err)
			}
		}
		expect("at first", "/base-1", false)
		expect("again", "/base-1", false)
		l.landings.target = "next"
		expect("after a landing", "/next-2", false)
		expect("and again", "/next-2", false)
		fails := func(what string, err error) {
			t.Helper()
			if _, got := w.Workdir(ctx); !errors.Is(got, err) {
				l.Errorf("%s: %v", what, got)
			}
		}
		l.landings.targetErr = errTest
		fails("without a target", errTest)
		l.landings.targetErr, l.landings.target, l.rows.fail["workdir"] = nil, "last", errTest
		fails("without a checkout", errTest)
		delete(l.rows.fail, "workdir")
		expect("a checkout at last", "/last-4", false)
		task := l.claim()
		expect("with a task", "", true)
		l.rows.fail["workdir"] = errTest
		fails("without its lane", errTest)
		delete(l.rows.fail, "workdir")
		l.revoke(task, false)
		fails("with a lost task", muster.ErrFenced)
	})
}

// A new teammate is recorded as started by the lead, and the supervisor is told; more than the run may have are refused.
func TestSpawn(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		spawned := 0
		l.run.Cap = 2
		spawn := func(name muster.Name) error {
			m, err := l.caller().Spawn(l.Context(), muster.Member{Name: name, Role: "coder"})
			if err == nil && m.Name != name {
				l.Errorf("%s is %+v", name, m)
			}
			return err
		}
		l.must(spawn("bob")) // nobody is told where nobody listens
		if m := l.record("bob"); m.StartedBy != muster.Lead || m.Status != muster.Working {
			l.Errorf("bob is %+v", m)
		}
		l.Spawned = func() { spawned++ }
		if err := spawn("carol"); !errors.Is(err, muster.ErrInvalid) || spawned != 0 {
			l.Errorf("one too many: %v", err)
		}
		l.run.Cap = 3
		if err := spawn("bob"); !errors.Is(err, muster.ErrHeld) || spawned != 0 {
			l.Errorf("bob is there already: %v", err)
		}
		l.must(spawn("carol"))
		if spawned != 1 {
			l.Errorf("told %d times", spawned)
		}
		l.runErr = errTest
		if err := spawn("dave"); !errors.Is(err, errTest) {
			l.Errorf("without a run: %v", err)
		}
	})
}

// A model answers a shutdown request; the first decision stands, and a granted one ends the life after the round.
func TestAnsweringAShutdown(t *testing.T) {
	for _, grants := range []bool{true, false} {
		live(t, "alice", func(l *life) {
			const id = "0000beef"
			l.start(calls("respond_shutdown", map[string]any{"request_id": id, "approve": grants, "reason": "well"}, func() {
				l.ask(id, muster.AskShutdown, muster.User, "alice")
			}))
			if l.hasEnded() != grants || l.err != nil || grants && (l.end.Text != "shut down as asked" || len(l.asked) != 1) {
				l.Errorf("granted %v: it ended with %+v, %v after %d turns; it hears %s", grants, l.end, l.err, len(l.asked), l.heard())
			}
		})
	}
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.ask("0000beef", muster.AskShutdown, muster.User, "alice")
		l.ask("0000cafe", muster.AskPermission, muster.User, "alice")
		if err := l.caller().Leave(ctx, "0000cafe", true, ""); !errors.Is(err, muster.ErrInvalid) {
			l.Errorf("no shutdown: %v", err)
		}
		if err := l.caller().Leave(ctx, "0000dead", true, ""); !errors.Is(err, muster.ErrNotFound) {
			l.Errorf("no request: %v", err)
		}
		l.decide("0000beef", "alice", false, "no")
		if err := l.caller().Leave(ctx, "0000beef", true, ""); err != nil || l.phase.get().leaves {
			l.Errorf("it was refused before: %v", err)
		}
	})
	failEachOp(t, "alice", func(l *life) {
		l.ask("0000beef", muster.AskShutdown, muster.User, "alice")
	}, func(l *life) error {
		err := l.caller().Leave(l.Context(), "0000beef", true, "")
		if err != nil && l.phase.get().leaves {
			l.Error("it leaves though the answer was not written")
		}
		return err
	}, muster.StreamEvents)
}
