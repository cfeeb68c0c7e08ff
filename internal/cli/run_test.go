package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/config"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/trust"
	"muster/journal"
	"muster/store/file"
	"muster/team"
)

// world is a repository and an App in it, whose team is what a test says.
type world struct {
	*testing.T
	dir      string
	out, err strings.Builder
	app      *App
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{T: t, dir: gittest.Repo(t, nil)}
	state := t.TempDir()
	w.app = &App{Args: args, Env: []string{"XDG_CONFIG_HOME=" + t.TempDir(), "XDG_STATE_HOME=" + state, sandboxVariable + "=false"},
		Dir: w.dir, Stdin: strings.NewReader(""), Stdout: &w.out, Stderr: &w.err, Now: time.Now}
	// The tests make state with a store, beside the program.
	registry := trust.Open(func(name string) string { return map[string]string{"XDG_STATE_HOME": state}[name] })
	require.Value(registry.Mark(t.Context(), filepath.Join(w.dir, ".git"), w.dir))(t)
	return w
}

func (w *world) words(text string) string {
	w.Helper()
	dir := w.TempDir()
	gittest.Write(w.T, dir, map[string]string{"words.yaml": text})
	return filepath.Join(dir, "words.yaml")
}

func makeRepository(t *testing.T, dir string) {
	t.Helper()
	gittest.Git(t, "", "init", "-q", "-b", "main", dir)
	gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "start")
}

func (w *world) run(ctx context.Context, want int) {
	w.Helper()
	if got := w.app.Run(ctx); got != want {
		w.Fatalf("exit code %d, want %d\n%s%s", got, want, w.out.String(), w.err.String())
	}
}

func (w *world) muster(want int, args ...string) {
	w.Helper()
	w.out.Reset()
	w.err.Reset()
	w.app.Args = args
	w.run(w.Context(), want)
}

func at(kind string, member muster.Name, task muster.TaskID, fields ...any) muster.Event {
	e := muster.Event{Kind: kind, At: 1000, Member: member, Task: task, Fields: map[string]any{}}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i].(string)] = fields[i+1]
	}
	return e
}

func landedTask(id muster.TaskID, subject string, owner muster.Name, commit, receipt string) muster.Task {
	return muster.Task{ID: id, Subject: subject, Status: muster.Completed, Owner: owner, UpdatedAt: 1010,
		Landed: &muster.Landed{Commit: commit, Receipt: receipt, Check: "go test ./...", Seconds: 0.7}}
}

func emit(ctx context.Context, t testing.TB, s muster.Store, events ...muster.Event) {
	j := journal.New(s.Log())
	for _, e := range events {
		e.At = 0
		if err := j.Emit(ctx, e); err != nil {
			t.Error(err)
		}
	}
}

func TestRunHandsOverWhatWasAsked(t *testing.T) {
	w := newWorld(t, "run", "make", "it", "so", "--teammates", "2", "--check", "make", "--land", "next", "--fresh", "--max-turns", "7", "-C", ".")
	var got Job
	w.app.Start = func(_ context.Context, j Job) (team.Summary, error) {
		got = j
		return team.Summary{Run: muster.Run{StartedAt: 1}, Text: "The answer."}, nil
	}
	w.run(t.Context(), 0)
	real, _ := filepath.EvalSymlinks(w.dir)
	if got.Goal != "make it so" || got.Resume || got.How != (team.Start{Fresh: true}) || got.Workspace.Root() != real ||
		got.Settings.Teammates != 2 || got.Settings.Check != "make" || got.Settings.Land != "next" || got.Settings.Limits.Turns != 7 || got.Settings.Limits.MaxTokens != 0 {
		t.Errorf("%+v", got)
	}
	if w.out.String() != "The answer.\n" || w.err.String() != "no task was made, and nothing has landed\n" {
		t.Errorf("%q %q", w.out.String(), w.err.String())
	}
}

func TestEveryEventIsToldOnceAndInOrder(t *testing.T) {
	w := newWorld(t, "run", "x")
	// An event of an earlier run is not told again.
	s := require.Value(file.Open(w.dir))(t)
	emit(t.Context(), t, s, at(journal.RunStarted, "lead", 0, "goal", "of before"))
	s.Close()
	w.app.Start = func(ctx context.Context, j Job) (team.Summary, error) {
		for i := range 50 {
			emit(ctx, t, j.Workspace.Store(), at(journal.TaskCreated, "user", muster.TaskID(i+1), "subject", "subject"))
		}
		return team.Summary{Code: 3, Text: "the budget is spent", Run: muster.Run{Target: "muster/x", StartedAt: 1}, Tasks: []muster.Task{{ID: 1, Subject: "subject", Status: muster.Pending}}}, nil
	}
	w.run(t.Context(), 3)
	told := strings.Split(strings.TrimSpace(w.err.String()), "\n")
	if len(told) != 50 {
		t.Fatalf("%d lines:\n%s", len(told), w.err.String())
	}
	for i, l := range told {
		if _, n, _ := strings.Cut(l, "adds   "); n != strings.TrimSpace(n) || !strings.HasPrefix(n, strings.Split(n, " ")[0]+" subject") || n != itoa(i+1)+" subject" {
			t.Fatalf("line %d: %q", i+1, l)
		}
	}
	if !strings.HasPrefix(w.out.String(), "0 of 1 task landed on muster/x; 1 is left: the budget is spent\n") {
		t.Error(w.out.String())
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestEventsAsJSON(t *testing.T) {
	w := newWorld(t, "run", "x", "--json")
	w.app.Start = func(ctx context.Context, j Job) (team.Summary, error) {
		emit(ctx, t, j.Workspace.Store(), at(journal.RunStarted, "lead", 0, "goal", "<x>"), at(journal.TurnStarted, "lead", 0, "turn", 1))
		return team.Summary{Run: muster.Run{StartedAt: 1}, Text: "answer"}, nil
	}
	w.run(t.Context(), 0)
	lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	if len(lines) != 2 || w.err.String() != "" {
		t.Fatalf("%q %q", w.out.String(), w.err.String())
	}
	var e struct{ Event, Goal string }
	if err := json.Unmarshal([]byte(lines[0]), &e); err != nil || e.Event != journal.RunStarted || e.Goal != "<x>" || !strings.Contains(lines[0], "<x>") {
		t.Errorf("%v %s", err, lines[0])
	}
}

func TestInterruptKeepsTheState(t *testing.T) {
	w := newWorld(t, "run", "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.app.Start = func(ctx context.Context, j Job) (team.Summary, error) {
		emit(ctx, t, j.Workspace.Store(), at(journal.RunStarted, "lead", 0, "goal", "x"))
		cancel(muster.CauseUser)
		<-ctx.Done()
		emit(context.WithoutCancel(ctx), t, j.Workspace.Store(), at(journal.RunNote, "", 0, "text", "last words"))
		return team.Summary{Code: 1}, context.Cause(ctx)
	}
	w.run(ctx, 130)
	if !strings.Contains(w.err.String(), "last words") || !strings.HasSuffix(w.err.String(), "muster: interrupted; the state is kept\n        muster resume\n") {
		t.Error(w.err.String())
	}
}

func TestDemoMakesKeepsAndRemovesItsRepository(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t, "demo")
		dir := filepath.Join(t.TempDir(), "kept")
		if keep {
			w.app.Args = append(w.app.Args, "--keep", dir)
		}
		state := t.TempDir()
		w.app.Env = append(w.app.Env, "XDG_STATE_HOME="+state)
		var made, worked string
		w.app.Demo = func(_ context.Context, dir string, _ bool) (Job, error) {
			made = dir
			makeRepository(t, dir)
			return Job{Goal: "the demo's", Settings: config.Settings{Run: config.Run{Check: "true"}}}, nil
		}
		w.app.Start = func(ctx context.Context, j Job) (team.Summary, error) {
			worked = j.Workspace.Root()
			if j.Goal != "the demo's" || j.Settings.Check != "true" {
				t.Errorf("%+v", j)
			}
			emit(ctx, t, j.Workspace.Store(), at(journal.RunStarted, "lead", 0, "goal", j.Goal))
			return team.Summary{Run: muster.Run{Target: "muster/demo", Check: "true", StartedAt: 1}, Tasks: []muster.Task{landedTask(1, "a", "bob", "abcdef012", "ok")}}, nil
		}
		w.run(t.Context(), 0)
		if made != worked || keep && made != dir {
			t.Errorf("made in %s, worked in %s", made, worked)
		}
		remembered, _ := filepath.Glob(filepath.Join(state, "muster", "repositories", "*"))
		if keep != (len(remembered) == 1) {
			t.Errorf("kept: %v, remembered: %v", keep, remembered)
		}
		_, err := os.Stat(filepath.Join(made, ".team"))
		if keep != (err == nil) {
			t.Errorf("kept: %v, %v", keep, err)
		}
		if keep != strings.Contains(w.out.String(), "muster -C "+made+" merge") || keep == strings.Contains(w.out.String(), "this repository goes with the demo") {
			t.Error(w.out.String())
		}
		if !strings.HasPrefix(w.err.String(), "muster demo: ") || !strings.Contains(w.err.String(), "goal   the demo's") {
			t.Error(w.err.String())
		}
		if _, err := os.Stat(filepath.Join(w.dir, ".team")); err == nil {
			t.Error("the user's own repository was touched")
		}
		if keep { // a second one does not go over it
			w.muster(1, "demo", "--keep", dir)
			if !strings.Contains(w.err.String(), "is not empty") {
				t.Error(w.err.String())
			}
		}
	}
}

// The second Ctrl-C must kill: the first one gives the signals back.
func TestExitCodes(t *testing.T) {
	var out strings.Builder
	a := &App{Stderr: &out}
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(muster.CauseUser)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		code int
		says string
	}{
		{t.Context(), nil, 0, ""},
		{t.Context(), exitStatus(3), 3, ""},
		{t.Context(), errors.New("broken\npipe"), 1, "muster: broken\n        pipe\n"},
		{t.Context(), &usageError{"muster task", "what?"}, 2, "muster: what?\n        muster task --help\n"},
		{t.Context(), muster.Errorf(muster.Invalid, "outer: %w", muster.Errorf(muster.Held, "inner").WithHint("do this\nor that")), 1, "muster: outer: inner\n        do this\n        or that\n"},
		{t.Context(), errors.Join(muster.Errorf(muster.Held, "one").WithHint("first"), errors.New("two")), 1, "muster: one\n        two\n        first\n"},
		{stopped, context.Canceled, 130, ""},
	} {
		out.Reset()
		if code := a.exit(c.ctx, c.err); code != c.code || out.String() != c.says {
			t.Errorf("%v: %d %q", c.err, code, out.String())
		}
	}
}

func TestAStoppedTeamGoesOnAsItWas(t *testing.T) {
	run := muster.Run{Team: "crew", Target: "muster/crew", Model: "script/old.yaml", Cap: 2, Check: "make", Setup: "npm ci", StartedAt: 1000}
	for _, c := range []struct {
		args string
		open bool // a task
		want config.Settings
		says string // the error
	}{
		{args: "resume", want: config.Settings{Team: "crew", Model: "script/old.yaml", Run: config.Run{Teammates: 2, Check: "make", Setup: "npm ci"}}},
		{args: "resume --teammates 3 --model script/new.yaml --check true --setup x --max-turns 9",
			want: config.Settings{Team: "crew", Model: "script/new.yaml", Run: config.Run{Teammates: 3, Check: "true", Setup: "x", Limits: config.Limits{Turns: 9}}}},
		{args: "run --add more", open: true, want: config.Settings{Team: "crew", Model: "script/old.yaml", Run: config.Run{Teammates: 2, Check: "make", Setup: "npm ci"}}},
		{args: "run --add more --team crew --land muster/crew --teammates 0", open: true,
			want: config.Settings{Team: "crew", Model: "script/old.yaml", Run: config.Run{Teammates: 0, Check: "make", Setup: "npm ci"}}},
		{args: "run --add more --team other", open: true, says: "the team that stopped keeps its name, crew: leave --team out"},
		{args: "run --add more --land main", open: true, says: "the team that stopped keeps its branch, muster/crew: leave --land out"},
		{args: "resume --team crew", says: "unknown flag: --team"},
		// With no open task a run of its own begins.
		{args: "run --add more --team other", want: config.Settings{Team: "other", Run: config.Run{Teammates: 4, Check: "of the file"}}},
	} {
		w := newWorld(t)
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, "muster.yaml"), []byte("check: of the file\n"), 0o600))
		w.muster(0, "trust", "--yes")
		w.app.Args = strings.Fields(c.args)
		s := require.Value(file.Open(w.dir))(t)
		data, _ := json.Marshal(run)
		require.Value(s.Table(muster.TableTeam).Put(t.Context(), "run", data, muster.None))(t)
		if c.open {
			require.Value(board.New(s, journal.New(s.Log())).Create(t.Context(), board.Draft{Subject: "open", CreatedBy: muster.User}))(t)
		}
		s.Close()
		var got config.Settings
		w.app.Start = func(_ context.Context, j Job) (team.Summary, error) {
			got = j.Settings
			return team.Summary{Run: run}, nil
		}
		if c.says != "" {
			w.run(t.Context(), exitUsage)
			if !strings.Contains(w.err.String(), c.says) {
				t.Errorf("%s: %s", c.args, w.err.String())
			}
			continue
		}
		w.run(t.Context(), 0)
		if got := (config.Settings{Team: got.Team, Model: got.Model, Run: config.Run{Teammates: got.Teammates, Check: got.Check, Setup: got.Setup,
			Limits: config.Limits{Turns: got.Limits.Turns}}}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.args, got, c.want)
		}
	}
}

func TestAnInterruptedDemoSaysWhatIsLeft(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t, "demo")
		want := "muster: interrupted; the demo's repository is gone\n"
		if keep {
			dir := filepath.Join(t.TempDir(), "kept")
			w.app.Args = append(w.app.Args, "--keep", dir)
			want = "muster: interrupted; the state is kept\n        muster -C " + dir + " resume\n"
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		w.app.Demo = func(_ context.Context, dir string, _ bool) (Job, error) {
			makeRepository(t, dir)
			return Job{Goal: "the demo's"}, nil
		}
		w.app.Start = func(ctx context.Context, j Job) (team.Summary, error) {
			cancel(muster.CauseUser)
			return team.Summary{Code: 1}, context.Cause(ctx)
		}
		w.run(ctx, 130)
		if !strings.HasSuffix(w.err.String(), want) || strings.Count(w.err.String(), "resume") != strings.Count(want, "resume") {
			t.Error(w.err.String())
		}
	}
}
