package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/collision"
	"muster/internal/hooks"
	"muster/internal/instructions"
	"muster/internal/paths"
	"muster/internal/tool/code"
	"muster/internal/worktree"
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
			l.config.MaxTokens = 9
			l.restart(name)
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
			if l.asked[0].MaxTokens != 9 || l.asked[0].CacheKey != string(name)+"@demo" ||
				!strings.HasPrefix(l.asked[0].CacheGroup, "demo/") {
				l.Errorf("the cache keys are %s and %s", l.asked[0].CacheKey, l.asked[0].CacheGroup)
			}
		})
	}
	live(t, "alice", func(l *life) {
		p := l.toolbox.get(l.Context())
		for name, want := range map[string]toolEffects{
			"read_inbox": {polls: true}, "idle": {polls: true}, "no_tool": {}, "read_file": {}, "todo": {}, "task_get": {},
			"bash": {files: true}, "write_file": {files: true}, "subagent": {files: true},
			"send_message": {records: true}, "task_create": {records: true}, "complete_task": {records: true},
		} {
			if got := p.effects[name]; got != want {
				l.Errorf("%s has the effects %+v", name, got)
			}
		}
		l.hooks.runner = hooks.NewRunner([]hooks.Hook{{Event: hooks.PreToolUse, Matcher: "mcp__files__write"}}, "", nil)
		if l.hooks.around(recorded("call_tool", true, nil), nil) == nil {
			l.Error("which tool a call_tool calls is known with the call, and there is no hook around it")
		}
		if l.toolbox.recoverer(l.Context(), "submit_plan") == nil || l.toolbox.recoverer(l.Context(), "bash") != nil || l.toolbox.recoverer(l.Context(), "x") != nil {
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
				"1,<nil>,0,0,; 1,true,0,0,; 2,true,0,7,test; 2,<nil>,1.5,0,; 3,<nil>,1.5,7,test; 1,<nil>,0,7,test"},
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
			l.start(calls("subagent", map[string]any{"kind": "work", "prompt": "write it"}),
				calls("write_file", map[string]any{"path": "a.txt", "content": "a"}), says("Written."), says("Done."))
			if n := strings.Count(l.heard(), "needs an approved plan before subagent may run"); (n == 1) != isRequired {
				l.Errorf("required %v, she hears %s", isRequired, l.heard())
			}
			if _, err := os.Stat(l.rows.dir + "/a.txt"); (err != nil) != isRequired {
				l.Errorf("required %v, the file: %v", isRequired, err)
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
			files, err := os.ReadDir(l.toolbox.files.options.Outputs)
			if err != nil || len(files) != 1 {
				l.Fatalf("%v, %v", files, err)
			}
			path := l.toolbox.files.options.Outputs + "/" + files[0].Name()
			if data, err := os.ReadFile(path); err != nil || string(data) != long || !strings.Contains(l.heard(), path) {
				l.Errorf("the file has %d bytes: %v", len(data), err)
			}
		})
	}
}

// worktree_run returns what the command has printed and its exit code, also where it was killed at its time limit.
func TestExecInLane(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		exec := func(command string) (string, int, error) {
			return l.toolbox.files.execInLane(l.Context(), l.rows.dir, command, time.Second)
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
		if text, _, err := l.toolbox.files.execInLane(ctx, l.rows.dir, "sleep", time.Second); !errors.Is(err, errTest) ||
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
		w := l.toolbox.newWorkdir()
		expect := func(what, dir string, isWritable bool) {
			t.Helper()
			d, err := w.Workdir(ctx)
			if err != nil || d.Dir != l.rows.dir+dir || d.Writable != isWritable || (d.Why == "") != isWritable ||
				d.ReadOnly[0] != l.config.Home.Outputs() {
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

// A round in which a tool or a job in the background may have written has the lane looked at. Each look fails here.
func TestWhenCollisionsAreLookedFor(t *testing.T) {
	live(t, "alice", func(l *life) {
		var log strings.Builder
		for _, name := range []string{"TMPDIR", "TMP"} {
			t.Setenv(name, filepath.Join(l.rows.dir, "none"))
		}
		l.claims.collisions = collision.New(collision.Options{Board: l.config.Board, Lanes: &worktree.Lanes{},
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		l.open()
		l.claim()
		go l.claims.collisions.Serve(l.Context())
		none, writes := func() {}, func() { l.phase.change(func(c *counters) { c.wrote = true }) }
		for i, act := range []func(){none, writes, none, l.startJob, l.jobs.Stop} {
			act()
			(*session)(l.Member).collisions(l.Context())
			time.Sleep(time.Second)
			synctest.Wait()
			if n, want := strings.Count(log.String(), "looking for collisions"), []int{0, 1, 1, 2, 2}[i]; n != want {
				l.Errorf("after step %d: %d looks, want %d: %s", i, n, want, &log)
			}
		}
	})
}

// A new teammate is recorded as started by the lead, and the supervisor is told; more than the run may have are refused.
func TestSpawn(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		spawned := 0
		l.run.Cap = 2
		spawn := func(name muster.Name) error {
			m, err := l.toolbox.caller.Spawn(l.Context(), muster.Member{Name: name, Role: "coder"})
			if err == nil && m.Name != name {
				l.Errorf("%s is %+v", name, m)
			}
			return err
		}
		l.must(spawn("bob")) // nobody is told where nobody listens
		if m := l.record("bob"); m.StartedBy != muster.Lead || m.Status != muster.Working {
			l.Errorf("bob is %+v", m)
		}
		l.lead.staff.spawned = func() { spawned++ }
		if err := spawn("carol"); !errors.Is(err, muster.ErrInvalid) || spawned != 0 {
			l.Errorf("one too many: %v", err)
		}
		l.run.Cap = 3
		if err := spawn("bob"); !errors.Is(err, muster.ErrHeld) || spawned != 0 {
			l.Errorf("bob is there already: %v", err)
		}
		l.must(spawn("carol"))
		l.lead.staff.checkModel = func(string) error { return errTest }
		_, err := l.toolbox.caller.Spawn(l.Context(), muster.Member{Name: "eve", Model: "none"})
		if l.wants("a model that nobody has", err, errTest); spawned != 1 {
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
		if err := l.toolbox.caller.Leave(ctx, "0000cafe", true, ""); !errors.Is(err, muster.ErrInvalid) {
			l.Errorf("no shutdown: %v", err)
		}
		if err := l.toolbox.caller.Leave(ctx, "0000dead", true, ""); !errors.Is(err, muster.ErrNotFound) {
			l.Errorf("no request: %v", err)
		}
		l.decide("0000beef", "alice", false, "no")
		if err := l.toolbox.caller.Leave(ctx, "0000beef", true, ""); err != nil || l.phase.get().leaves {
			l.Errorf("it was refused before: %v", err)
		}
	})
	failEachOp(t, "alice", func(l *life) {
		l.ask("0000beef", muster.AskShutdown, muster.User, "alice")
	}, func(l *life) error {
		err := l.toolbox.caller.Leave(l.Context(), "0000beef", true, "")
		if err != nil && l.phase.get().leaves {
			l.Error("it leaves though the answer was not written")
		}
		return err
	}, muster.StreamEvents)
}

// Only models that were trained on apply_patch read of it.
func TestWhoKnowsPatches(t *testing.T) {
	for model, want := range map[string]bool{"openai/gpt-5.1": true, "gpt-5-codex": true, "openrouter/openai/GPT-5": true, "openai/gpt-4.1": false,
		"openai/gpt-oss-120b": true, "bedrock/openai.gpt-oss-120b-1:0": true, "openai.gpt-oss-20b-1:0": true,
		"azure/gpt-35-turbo": false, "gpt-40": false, "gpt-41-mini": false, "gpt-4o": false, "azure/gpt-51": true,
		"anthropic/claude-opus-4-5": false, "deepseek/deepseek-chat": false, "script/gpt-x.yaml/other": false, "": false} {
		if got := knowsPatches(model); got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
}

// A member without a task is told after a command that may write what it has changed where nothing lands, once as long as that
// stays the same, also after it was taken back, and once more when it stops. In a lane nobody is told.
func TestAMemberIsToldWhereNothingLands(t *testing.T) {
	const told, reminded = "[Changes in this directory do not land", "where nothing lands. If it should land"
	bash := func(command string, then ...func()) turn {
		return calls("bash", map[string]any{"command": command}, then...)
	}
	for name, c := range map[string]struct {
		who             muster.Name
		scratch         []string
		task            bool
		told, reminders int
		asked           int
	}{
		"the lead":               {muster.Lead, strings.Fields("a.txt b c d e f g h i"), false, 2, 1, 7},
		"a teammate":             {"alice", []string{"a.txt"}, false, 2, 1, 7},
		"nothing is changed":     {"alice", nil, false, 0, 0, 6},
		"a teammate with a task": {"alice", []string{"a.txt"}, true, 0, 0, 7},
	} {
		live(t, c.who, func(l *life) {
			if c.task {
				l.create(board.Draft{})
			}
			l.rows.scratch = c.scratch
			l.start(bash("echo seen"), bash("echo one > a.txt"), bash("echo two > b"),
				bash("echo clean > c", func() { l.rows.scratch = nil }),
				bash("echo again > d", func() { l.rows.scratch = c.scratch }), says("So."), says("So I said."), says("And again."))
			heard := l.heard()
			if n := strings.Count(heard, told); n != c.told || strings.Contains(heard, "h and 1 more where") != (len(c.scratch) > 8) {
				t.Errorf("%s: told %d times: %s", name, n, heard)
			}
			if n := strings.Count(heard, reminded); n != c.reminders || len(l.asked) != c.asked {
				t.Errorf("%s: reminded %d times, asked %d times", name, n, len(l.asked))
			}
		})
	}
}

// checkout is a directory in which a member without a task reads, with instructions in it.
type checkout struct {
	*testing.T
	*nestedInstructions
	dir  string
	told []string // people
}

func newCheckout(t *testing.T, files map[string]string) *checkout {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(paths.Dir(root).Scratch(), "alice")
	c := &checkout{T: t, dir: scratch}
	c.nestedInstructions = newNested(&guarded[code.Workdir]{value: code.Workdir{Dir: scratch}}, &instructions.Files{Root: root}, nil,
		func(_ context.Context, line string) { c.told = append(c.told, line) })
	for name, text := range files {
		c.write(name, text)
	}
	return c
}

func (c *checkout) write(name, text string) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

func (c *checkout) call(name string, input map[string]any, fails bool) string {
	c.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		c.Fatal(err)
	}
	r, err := c.around(c.Context(), llm.Call{Name: name, Input: data}, func(context.Context, llm.Call) (llm.Result, error) {
		r := tool.Text("done.")
		r.IsError = fails
		return r, nil
	})
	if err != nil {
		c.Fatal(err)
	}
	return textOf(llm.Message{Parts: r.Parts})
}

// The instructions of a directory reach the model with the first call that touches it, once for each text, from the
// outermost directory to the innermost.
func TestNestedInstructions(t *testing.T) {
	c := newCheckout(t, map[string]string{"AGENTS.md": "root", // which the first message has
		"a/AGENTS.md": "of a", "a/b/CLAUDE.md": "of b", "other/AGENTS.md": "of other"})
	for i := range 8 {
		c.write("big/"+strings.Repeat("x/", i)+"AGENTS.md", strings.Repeat("many ", 4000))
	}
	read := func(path string) string { return c.call("read_file", map[string]any{"path": path}, false) }
	if got := c.call("read_file", map[string]any{"path": "a/b/x.go"}, true); got != "done." {
		t.Errorf("a call that failed: %q", got)
	}
	for _, x := range []struct{ path, want string }{
		{"main.go", ""}, {"../../secret/x", ""}, {"/etc/passwd", ""},
		{"a/b/x.go", "\n<instructions file=\"a/AGENTS.md\">\nof a\n</instructions>\n<instructions file=\"a/b/CLAUDE.md\">\nof b\n</instructions>"},
		{"a/b/y.go", ""},
		{filepath.Join(c.dir, "other/x"), "\n<instructions file=\"other/AGENTS.md\">\nof other\n</instructions>"},
	} {
		if got := read(x.path); got != "done."+x.want {
			t.Errorf("%s: %q, want %q", x.path, got, x.want)
		}
	}
	c.write("a/AGENTS.md", "changed")
	if got := read("a/z"); !strings.Contains(got, "\nchanged\n") {
		t.Errorf("after a change the model reads %q", got)
	}
	got := read("big/x/x/x/x/x/x/x/f")
	if len(got) > maxNestedTotal+4000 || !strings.Contains(got, "not shown") || !strings.Contains(got, "[cut: ") {
		t.Errorf("%d bytes of instructions were added", len(got))
	}
	c.reset()
	if got := read("a/b"); !strings.Contains(got, "of b") {
		t.Errorf("a fresh conversation reads %q", got)
	}
}

// Where commands start in a directory, relative names begin there, and what the first message has is not told again.
func TestNestedInstructionsBelow(t *testing.T) {
	c := newCheckout(t, map[string]string{"web/AGENTS.md": "of web", "web/src/AGENTS.md": "of src", "api/AGENTS.md": "of api"})
	c.files.Directory = "web"
	c.last.value.Sub = "web"
	if err := os.MkdirAll(filepath.Join(c.files.Root, "web"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.files.Root, "web/AGENTS.md"), []byte("of web"), 0o600); err != nil {
		t.Fatal(err)
	}
	const ofSrc = "\n<instructions file=\"web/src/AGENTS.md\">\nof src\n</instructions>"
	const ofAPI = "\n<instructions file=\"api/AGENTS.md\">\nof api\n</instructions>"
	if got := c.call("read_file", map[string]any{"path": "src/x"}, false); got != "done."+ofSrc {
		t.Errorf("%q", got)
	}
	if got := c.call("bash", map[string]any{"command": "cd ../api && ls"}, false); got != "done."+ofAPI {
		t.Errorf("%q", got)
	}
}

// A rule for some paths reaches the model with the first call that names one of them, and people read what is left out.
func TestRulesForSomePaths(t *testing.T) {
	c := newCheckout(t, map[string]string{"a/x.go": "x", "a/y.ts": "y", "a/AGENTS.md": "of a, @none.md"})
	rules := filepath.Join(c.files.Root, ".claude/rules")
	if err := os.MkdirAll(rules, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rules, "go.md"), []byte("---\npaths: '**/*.go'\n---\nof go"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string { return c.call("read_file", map[string]any{"path": path}, false) }
	const ofA = "\n<instructions file=\"a/AGENTS.md\">\nof a, @none.md\n</instructions>"
	const ofGo = "\n<instructions file=\".claude/rules/go.md\">\nof go\n</instructions>"
	for _, x := range []struct{ path, want string }{{"a/y.ts", ofA}, {"a/x.go", ofGo}, {"new.go", ""}} {
		if got := read(x.path); got != "done."+x.want {
			t.Errorf("%s: %q, want %q", x.path, got, x.want)
		}
	}
	c.reset()
	if got := read("a/new.go"); got != "done."+ofGo+ofA {
		t.Errorf("a fresh conversation reads %q", got)
	}
	if want := []string{"instructions: none.md, which a/AGENTS.md imports, is not read: there is no such file"}; !slices.Equal(c.told, want) {
		t.Errorf("people read %q", c.told)
	}
}

// A command and a patch touch the directories of the paths that they name.
func TestNestedInstructionsOfCommandsAndPatches(t *testing.T) {
	for _, x := range []struct{ tool, input, want string }{ // input is the command or the patch
		{"bash", "cat a/x.go", "a"},
		{"bash", "sed -i 's/x/y/' ./a/x.go && go vet", "a"},
		{"bash", "go test ./a/...", "a"},
		{"bash", "cd a && cat b/y.go", "a a/b"},
		{"bash", "cd a/b; ls", "a a/b"},
		{"bash", "grep -n x a/*.go", "a"},
		{"bash", "make -C=a", "a"},
		{"bash", "cat <a/x.go", "a"},
		{"bash", "cat DIR/a/b/y.go", "a a/b"},
		{"bash", "cat a/b/none", ""},
		{"bash", "cat link/y.go", ""},
		{"bash", "cat ../../../../../../../etc/passwd /etc/passwd ~/a", ""},
		{"bash", "ls", ""},
		{"bash", strings.Repeat("x ", maxCommandWords) + "a/x.go", ""},
		{"apply_patch", "*** Begin Patch\n*** Update File: a/x.go\n@@\n-a\n+b\n*** End Patch", "a"},
		{"apply_patch", "*** Begin Patch\n*** Update File: main.go\n*** Move to: a/b/z.go\n*** End Patch", "a a/b"},
		{"apply_patch", "--- a/a/b/y.go\n+++ b/a/b/y.go\n@@ -1 +1 @@\n-a\n+b\n", "a a/b"},
		{"apply_patch", "--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b\n", "a"}, // as the patch tool takes it, too
		{"apply_patch", "nothing", ""},
	} {
		c := newCheckout(t, map[string]string{"main.go": "m", "a/x.go": "x", "a/b/y.go": "y", "a/AGENTS.md": "of a",
			"a/b/AGENTS.md": "of b"})
		if err := os.Symlink(filepath.Join(c.dir, "a/b"), filepath.Join(c.dir, "link")); err != nil {
			t.Fatal(err)
		}
		field := map[string]string{"bash": "command", "apply_patch": "input"}[x.tool]
		for _, fails := range []bool{true, false} {
			want := "done."
			for _, d := range strings.Fields(x.want) {
				if !fails || x.tool == "bash" {
					want += fmt.Sprintf("\n<instructions file=%q>\nof %s\n</instructions>", d+"/AGENTS.md", filepath.Base(d))
				}
			}
			c.reset()
			input := map[string]any{field: strings.ReplaceAll(x.input, "DIR", c.dir), "timeout": 3}
			if got := c.call(x.tool, input, fails); got != want {
				t.Errorf("%s %q, failed: %v: %q, want %q", x.tool, x.input, fails, got, want)
			}
		}
	}
}

// The lead of a team is offered the tools for lanes when the goal speaks of worktrees, or when a person has made a lane
// without a task. A model that was trained on apply_patch has no other tool for edits beside it. All can be called.
func TestOfferedTools(t *testing.T) {
	for name, c := range map[string]struct {
		goal, model string
		lane        muster.Lane
		cap         int
		want        []string
	}{
		"a goal":              {goal: "Mend it.", cap: 4, want: []string{"edit_file", "write_file"}},
		"a goal of worktrees": {goal: "Look at my Worktrees.", cap: 4, want: []string{"edit_file", "write_file", "worktree_list"}},
		"no teammates":        {goal: "Look at my worktrees.", want: []string{"edit_file", "write_file"}},
		"a task's lane":       {lane: muster.Lane{Name: "task-1", TaskID: 1}, cap: 4, want: []string{"edit_file", "write_file"}},
		"the lead's own lane": {lane: muster.Lane{Name: ownLaneName}, cap: 4, want: []string{"edit_file", "write_file"}},
		"a person's lane":     {lane: muster.Lane{Name: "mine"}, cap: 4, want: []string{"edit_file", "write_file", "worktree_list"}},
		"patches":             {model: "openai/gpt-5.5", cap: 4, want: []string{"apply_patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, muster.Lead, func(l *life) {
				l.run.Goal, l.run.Cap = c.goal, c.cap
				if c.lane.Name != "" {
					l.rows.put(c.lane, worktree.Occupant{})
				}
				l.toolbox.models.own.Name = c.model
				l.toolbox.unload()
				p := l.toolbox.get(l.Context())
				var got []string
				for _, s := range p.specs {
					if slices.Contains([]string{"apply_patch", "edit_file", "write_file", "worktree_list"}, s.Name) {
						got = append(got, s.Name)
					}
				}
				slices.Sort(got)
				slices.Sort(c.want)
				if !slices.Equal(got, c.want) {
					t.Errorf("offered: %v, want %v", got, c.want)
				}
				for _, name := range []string{"edit_file", "worktree_list"} {
					if !slices.ContainsFunc(p.tools, func(t llm.Tool) bool { return t.Spec().Name == name }) {
						t.Errorf("%s cannot be called", name)
					}
				}
			})
		})
	}
}
