//go:build unix

package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/journal"
	"muster/store/mem"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	os.Exit(m.Run())
}

// world is a runner with its directory and its journal.
type world struct {
	*Runner
	dir     string
	journal *journal.Journal
}

// newWorld makes a runner of hooks, whose commands may name the test's directory as $CLAUDE_PROJECT_DIR.
func newWorld(t *testing.T, all ...Hook) world {
	t.Helper()
	for i := range all {
		if all[i].compile(); all[i].Timeout == 0 {
			all[i].Timeout = time.Minute
		}
	}
	l := require.Value(proc.New(t.Context()))(t)
	t.Cleanup(func() { _ = l.Close() })
	w := world{dir: t.TempDir(), journal: journal.New(mem.New().Log())}
	w.Runner = NewRunner(all, w.dir, redact.New("sesame-open-4711"))
	w.Start(l, l, w.journal)
	return w
}

// run runs the hooks of an event, and returns the events of the journal.
func (w world) run(t *testing.T, event Event, fields map[string]any, names ...string) (Outcome, []muster.Event) {
	t.Helper()
	o, err := w.Run(t.Context(), Moment{Event: event, Names: names, Fields: fields, Member: "ann", Team: "crew", Task: 7,
		Env: proc.Environment(os.Environ(), nil)})
	require.NoError(t, err)
	var events []muster.Event
	for e, err := range w.journal.Read(t.Context(), 0) {
		require.NoError(t, err)
		events = append(events, e.Event)
	}
	return o, events
}

// Hooks run one after another, each with the input as those before want it, until one blocks.
func TestHooksRunInOrder(t *testing.T) {
	w := newWorld(t,
		Hook{Event: PreToolUse, Matcher: "Read", Command: "touch never"},
		Hook{Event: PreToolUse, Command: `cat > one; echo '{"hookSpecificOutput":{"updatedInput":{"command":"ls"},` +
			`"additionalContext":"changed"}}'`},
		Hook{Event: PreToolUse, Matcher: "Bash", Command: "cat > two; pwd >&2; exit 2"},
		Hook{Event: PreToolUse, Command: "touch never"})
	o, events := w.run(t, PreToolUse, map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "rm x"}},
		"Bash", "bash")
	if !o.Blocked || o.Reason != w.dir || len(o.Context) != 1 || o.Input["command"] != "ls" {
		t.Errorf("the outcome is %+v", o)
	}
	for file, command := range map[string]string{"one": "rm x", "two": "ls"} {
		data, err := os.ReadFile(filepath.Join(w.dir, file))
		var in struct {
			Event   Event  `json:"hook_event_name"`
			Cwd     string `json:"cwd"`
			Session string `json:"session_id"`
			Task    string `json:"task_id"`
			Name    string `json:"tool_name"`
			Input   struct {
				Command string `json:"command"`
			} `json:"tool_input"`
		}
		if err := errors.Join(err, json.Unmarshal(data, &in)); err != nil || in.Event != PreToolUse || in.Cwd != w.dir ||
			in.Session != "ann@crew" || in.Task != "7" || in.Name != "Bash" || in.Input.Command != command {
			t.Errorf("the hook %s has read %s, %v", file, data, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "never")); err == nil {
		t.Error("a hook of another tool, or one after a block, has run")
	}
	if len(events) != 2 || events[0].Text("outcome") != "changed" || events[1].Text("outcome") != "blocked" ||
		events[1].Kind != journal.HookRan || events[1].Member != "ann" || events[1].Task != 7 ||
		events[1].Number("exit") != 2 || events[1].Text("hook") != "PreToolUse" {
		t.Errorf("the journal has %+v", events)
	}
}

// A hook gets no key of the environment, and a secret that it prints reaches nobody.
func TestHooksHaveNoSecrets(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sesame-open-4711")
	t.Setenv("MY_TOKEN", "another-secret-12345")
	w := newWorld(t, Hook{Event: SessionStart, Command: `echo "key=$ANTHROPIC_API_KEY$MY_TOKEN sesame-open-4711"`},
		Hook{Event: SessionStart, Command: "echo sesame-open-4711 >&2; exit 2"})
	o, events := w.run(t, SessionStart, nil)
	text, err := json.Marshal(events)
	if o.Context[0] != "key= [secret]" || o.Reason != "[secret]" || err != nil {
		t.Errorf("the outcome is %+v, %v", o, err)
	}
	if strings.Contains(string(text), `"text":"sesame`) {
		t.Errorf("the journal has %s", text)
	}
}

// Hooks that mean harm, or are broken, stop nobody and cost little.
func TestHostileHooks(t *testing.T) {
	for name, c := range map[string]struct{ command, problem string }{
		"prints without end":      {"yes", "it printed more than 1 MB"},
		"prints errors, no end":   {"yes >&2", "it printed more than 1 MB"},
		"hangs":                   {"sleep 600", "it did not end within 1s"},
		"forks and exits":         {"sleep 600 & sleep 600 >/dev/null 2>&1 & exit 0", ""},
		"reads nothing":           {"exec 0<&-; exit 0", ""},
		"prints broken JSON":      {"echo '{\"decision\": \"block\"'", "what it printed is no JSON that muster can read: "},
		"fails":                   {"echo why >&2; exit 1", "exit 1: why"},
		"kills itself":            {"kill -9 $$", "exit 137"},
		"prints what is no text":  {`printf '\377\033[2J'`, ""},
		"prints terminal escapes": {`printf '\033]0;x\007' >&2; exit 3`, "exit 3: ]0;x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 5 * time.Minute
			if name == "hangs" {
				timeout = time.Second
			}
			w := newWorld(t, Hook{Event: PreToolUse, Command: c.command, Timeout: timeout},
				Hook{Event: PreToolUse, Command: "true"})
			long := strings.Repeat("x", 3<<20)
			o, events := w.run(t, PreToolUse, map[string]any{"tool_input": map[string]any{"content": long}}, "Write")
			if o.Blocked || o.Context != nil || o.Input != nil || len(events) != 2 {
				t.Fatalf("the outcome is %+v, and the journal has %+v", o, events)
			}
			if got := events[0].Text("text"); !strings.HasPrefix(got, c.problem) || got != "" && c.problem == "" {
				t.Errorf("the problem is %q, want %q", got, c.problem)
			}
		})
	}
}

// A guard that cannot start because of a mistake refuses, and says what is wrong. Other hooks, and guards that may break,
// let the work go on.
func TestBrokenHooks(t *testing.T) {
	script := filepath.Join(t.TempDir(), "guard")
	require.NoError(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	for name, c := range map[string]struct {
		hook   Hook
		reason string
	}{
		"no program":       {Hook{Command: "no-such-program-here"}, "exit 127: "},
		"no script":        {Hook{Command: "./no-such.sh"}, "exit 127: "},
		"not executable":   {Hook{Command: "/etc/passwd"}, "exit 126: "},
		"no interpreter":   {Hook{Command: script}, "exit 12"},
		"no program, args": {Hook{Command: "no-such-program-here", Args: []string{"x"}}, "exit 127: "},
		"no directory":     {Hook{Command: "true", Cwd: "no-such-dir"}, "exit 126: "},
		"a script of node": {Hook{Command: "echo \"Error: Cannot find module '/x/guard.js'\" >&2; exit 1"}, "exit 1: Error: Cannot find"},
		"a module of python": {Hook{Command: "echo 'ModuleNotFoundError: No module named x' >&2; exit 1"},
			"exit 1: ModuleNotFoundError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hook.Event = PreToolUse
			mayBreak, other := c.hook, c.hook
			mayBreak.MayBreak, other.Event = true, PostToolUse
			w := newWorld(t, c.hook)
			o, events := w.run(t, PreToolUse, nil, "Write")
			if !o.Blocked || !strings.HasPrefix(o.Reason, "the hook cannot start ("+c.reason) ||
				!strings.HasSuffix(o.Reason, "): mend it, or set broken_hooks: pass in your own config.yaml") ||
				events[0].Text("outcome") != "blocked" || events[0].Text("text") != o.Reason {
				t.Errorf("the outcome is %+v, and the journal has %+v", o, events)
			}
			for _, h := range []Hook{mayBreak, other} {
				o, events := newWorld(t, h).run(t, h.Event, nil, "Write")
				if o.Blocked || events[0].Text("outcome") != "failed" || !strings.HasPrefix(events[0].Text("text"), c.reason) {
					t.Errorf("%+v: the outcome is %+v, and the journal has %+v", h, o, events)
				}
			}
		})
	}
}

// A hook runs with its arguments, variables and directory, and with bash where it does not say sh.
func TestFieldsOfHooks(t *testing.T) {
	for want, h := range map[string]Hook{
		"a b|$HOME|ROOT/x":  {Command: "printf", Args: []string{"%s|%s|%s", "a b", "$HOME", "${CLAUDE_PROJECT_DIR}/x"}},
		"1 ROOT":            {Command: `echo "$A $B"`, Env: map[string]string{"A": "1", "B": "$CLAUDE_PROJECT_DIR"}},
		"sub ROOT":          {Command: `echo "$(basename "$PWD") $CLAUDE_PROJECT_DIR"`, Cwd: "sub"},
		"sub":               {Command: "basename", Args: []string{"ROOT/sub"}, Cwd: "${CLAUDE_PROJECT_DIR}/sub"},
		"bash":              {Command: `[[ -n $BASH_VERSION ]] && echo bash`, Shell: "bash"},
		"sh":                {Command: "echo sh", Shell: "sh"},
		"for go test":       {Command: "echo for go test", If: "Bash(go test *)"},
		"for the directory": {Command: "echo for the directory", If: "Write(src/**)"},
	} {
		h.Event = UserPromptSubmit
		w := newWorld(t, h, Hook{Event: UserPromptSubmit, Command: "echo never", If: "Bash(git *)"})
		require.NoError(t, os.Mkdir(filepath.Join(w.dir, "sub"), 0o700))
		names, in := []string{"Bash", "bash"}, map[string]any{"command": "cd x && go test ./..."}
		if h.If == "Write(src/**)" {
			names, in = []string{"Write", "write_file"}, map[string]any{"file_path": filepath.Join(w.dir, "src/a.go")}
		}
		o, events := w.run(t, UserPromptSubmit, map[string]any{"tool_input": in}, names...)
		if want = strings.ReplaceAll(want, "ROOT", w.dir); len(o.Context) != 1 || o.Context[0] != want {
			t.Errorf("%+v: the outcome is %+v, %+v; want %q", h, o, events, want)
		}
	}
}

// Nothing waits for an async hook, which decides nothing, and End ends it.
func TestAsyncHooks(t *testing.T) {
	w := newWorld(t, Hook{Event: PreToolUse, Async: true, Command: "touch begun; sleep 600; touch never"},
		Hook{Event: PreToolUse, Async: true, Command: "echo no >&2; exit 2"})
	if o, _ := w.run(t, PreToolUse, nil, "Bash"); o.Blocked {
		t.Errorf("the outcome is %+v", o)
	}
	wait.For(t, "the hook runs", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "begun"))
		return err == nil
	})
	w.Settle(t.Context(), t.TempDir()) // it runs elsewhere
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Settle(ctx, w.dir)
	if len(w.async) != 0 {
		t.Error("the hook runs on where all is to stay as it is")
	}
	w.run(t, PreToolUse, nil, "Bash")
	w.End()
	if _, err := os.Stat(filepath.Join(w.dir, "never")); err == nil {
		t.Error("End has waited for the end of the hook")
	}
}

// The end of the member ends its hook, and is the error.
func TestTheEndOfAMemberEndsItsHook(t *testing.T) {
	w := newWorld(t, Hook{Event: Stop, Command: "echo $$ > pid; touch begun; sleep 600"})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.Run(ctx, Moment{Event: Stop, Env: os.Environ()})
		done <- err
	}()
	wait.For(t, "the hook runs", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "begun"))
		return err == nil
	})
	cancel(muster.CauseShutdown)
	if err := <-done; !errors.Is(err, muster.CauseShutdown) {
		t.Errorf("the error is %v", err)
	}
}

// Without hooks there is nothing to run.
func TestNoHooks(t *testing.T) {
	r := NewRunner([]Hook{{Event: Stop, Command: "touch never", Problem: "not trusted"}}, t.TempDir(), nil)
	r.Start(nil, nil, nil)
	if o, err := r.Run(t.Context(), Moment{Event: Stop}); r.Has(Stop) || o.Blocked || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if n := testing.AllocsPerRun(100, func() { r.Has(PreToolUse, "Bash") }); n != 0 {
		t.Errorf("to ask for hooks makes %v allocations", n)
	}
}

// A hook that the repository brings is started as the commands of members are, and the user's own as the user's.
func TestWhoStartsHooks(t *testing.T) {
	w := newWorld(t, Hook{Event: Stop, Command: "touch own"}, Hook{Event: Stop, Command: "touch foreign", needsTrust: true})
	foreign := &countingLauncher{Launcher: w.launcher}
	w.Start(w.launcher, foreign, w.journal)
	w.run(t, Stop, nil)
	if foreign.started != "touch foreign" {
		t.Errorf("started as a member's command: %q", foreign.started)
	}
}

type countingLauncher struct {
	proc.Launcher
	started string
}

func (l *countingLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	l.started += s.Argv[len(s.Argv)-1]
	return l.Launcher.Start(ctx, s)
}
