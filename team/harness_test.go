package team_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muster"
	"muster/internal/proc"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/store/file"
	"muster/team"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	for k, v := range map[string]string{"GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@localhost",
		"GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@localhost", "GIT_CONFIG_GLOBAL": os.DevNull} {
		os.Setenv(k, v)
	}
	state, err := os.MkdirTemp("", "muster-team-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", state)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(state)
		os.Exit(code)
	}))
}

// world is a repository with a team's state, as a test sees it.
type world struct {
	t    *testing.T
	root string
}

// newWorld makes a git repository with one commit.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir()}
	w.write("README", "a test\n")
	w.git("init", "-q", "-b", "main")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "start")
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", w.root}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// open opens the team with a script for its model.
func (w *world) open(words string, change func(*team.Config)) (*team.Team, *file.Store) {
	w.t.Helper()
	s, err := script.Parse([]byte(words))
	if err != nil {
		w.t.Fatal(err)
	}
	store, err := file.Open(w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { store.Close() })
	c := team.Config{Dir: w.root, Store: store, Name: "demo", Teammates: 4,
		Model: func(string) (llm.Model, error) { return s.Model(), nil }}
	if change != nil {
		change(&c)
	}
	t, err := team.Open(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return t, store
}

// run runs a goal to its end; it must end with the exit code.
func (w *world) run(words string, code int, change func(*team.Config)) team.Summary {
	w.t.Helper()
	t, _ := w.open(words, change)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	sum, err := t.Run(ctx, "the goal", team.Start{})
	if err != nil || sum.Code != code {
		w.t.Fatalf("the run ended with code %d, %v (%s)\n%s", sum.Code, err, sum.Text, w.tail())
	}
	return sum
}

// events are all events in order.
func (w *world) events() (all []muster.Event) {
	w.t.Helper()
	for _, line := range w.lines(".team/events.jsonl") {
		var e muster.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatalf("event %s: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

func (w *world) lines(path string) []string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, path))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// index is the place of the first event that fits, or a failure.
func (w *world) index(what string, fits func(muster.Event) bool) int {
	w.t.Helper()
	for i, e := range w.events() {
		if fits(e) {
			return i
		}
	}
	w.t.Fatalf("no event: %s\n%s", what, w.tail())
	return -1
}

func claimed(id muster.TaskID) func(muster.Event) bool {
	return func(e muster.Event) bool { return e.Kind == journal.TaskClaimed && e.Task == id }
}

func completed(id muster.TaskID) func(muster.Event) bool {
	return func(e muster.Event) bool { return e.Kind == journal.TaskCompleted && e.Task == id }
}

// before compares when the records changed: the journal tells of a step after it, so two neighbours may be told the other
// way round.
func (w *world) before(what string, first, second int) {
	w.t.Helper()
	if all := w.events(); all[first].At > all[second].At {
		w.t.Errorf("%s: event %d is not before event %d\n%s", what, first, second, w.tail())
	}
}

func (w *world) task(id muster.TaskID) (t muster.Task) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, ".tasks", "task_"+itoa(int(id))+".json"))
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// said is the whole conversation of a member, as text. Mail stands in it once, as its reader has it.
func (w *world) said(name string) string {
	var b strings.Builder
	for _, line := range w.lines(".transcripts/" + name + "/log.jsonl") {
		text, _, _ := strings.Cut(line, `,"delivered":[`)
		b.WriteString(text + "\n")
	}
	return b.String()
}

func (w *world) tail() string {
	all := w.lines(".team/events.jsonl")
	return strings.Join(all[max(0, len(all)-60):], "\n")
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
