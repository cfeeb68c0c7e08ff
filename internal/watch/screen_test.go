package watch

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/face"
	"muster/internal/testing/rawnames"
	"muster/internal/testing/require"
	"muster/internal/treediff"
	"muster/internal/view"
	"muster/team"
)

var update = flag.Bool("update", false, "write what is drawn into testdata")

func TestMain(m *testing.M) {
	time.Local = time.UTC // the pictures have times of day
	os.Exit(m.Run())
}

// fake is a team that says what a test wants, and notes what it was asked to do.
type fake struct {
	said     []team.Said
	diff     string
	comments []team.Comment // on lines of it
	answer   muster.Request // what the request was decided to be before; none: the answer of the test is the first
	did      []string
	err      error // of what is done to the whole team

	untaken int // commits
}

func (f *fake) Said(_ context.Context, name muster.Name, after muster.Pos) (all []team.Said, err error) {
	for _, s := range f.said {
		if s.Pos > after && name == "alice" {
			all = append(all, s)
		}
	}
	return all, nil
}

func (f *fake) Diff(context.Context, muster.TaskID) (team.Diff, error) {
	return team.Diff{Diff: f.patch(), Comments: f.comments}, nil
}

func (f *fake) patch() treediff.Diff {
	return treediff.Diff{Text: f.diff, Files: []treediff.FileChange{{File: "count.go"}}}
}

func (f *fake) Comment(_ context.Context, id muster.TaskID, at place, text string) (muster.Name, error) {
	f.did = append(f.did, fmt.Sprintf("comment %d %s:%d %q", id, at.file, at.line, text))
	if text == "refused" {
		return "", muster.Errorf(muster.Invalid, "count.go has no line %d any more", at.line)
	}
	for row, l := range f.patch().Lines() {
		if l.File == at.file && l.New == at.line {
			f.comments = append(f.comments, team.Comment{File: at.file, Line: at.line, Text: text, To: "alice", Row: row})
		}
	}
	return "alice", nil
}

func (f *fake) Request(_ context.Context, id muster.RequestID) (muster.Request, error) {
	r := plan
	r.ID, r.Status, r.ResolvedBy, r.ResolvedAt = id, muster.RequestApproved, muster.User, 5000
	return r, nil
}

func (f *fake) Answer(_ context.Context, id muster.RequestID, yes bool, scope muster.RequestScope, text string) (muster.Request, bool, error) {
	f.did = append(f.did, strings.TrimRight(fmt.Sprintf("answer %s %v %q %s", id, yes, text, scope), " "))
	if f.answer.ID != "" {
		return f.answer, false, nil
	}
	r := plan
	r.Scope = scope
	if r.Status = muster.RequestRejected; yes {
		r.Status = muster.RequestApproved
	}
	return r, true, nil
}

func (f *fake) Send(_ context.Context, to muster.Name, text string) error {
	f.did = append(f.did, fmt.Sprintf("mail %s %q", to, text))
	if to == "bob" {
		return muster.Errorf(muster.NotFound, "bob has stopped").WithHint("muster mail send lead TEXT")
	}
	return nil
}

func (f *fake) Retry(_ context.Context, id muster.TaskID) error {
	f.did = append(f.did, fmt.Sprintf("retry %d", id))
	return nil
}

func (f *fake) Mail(context.Context) ([]letter, error) {
	mine := muster.Message{From: "lead", Content: "Which port?\nSay it.", At: 4000}
	waits := muster.Message{From: "bob", Content: "The fuzzer has found nothing.", At: 4100}
	read := muster.Message{From: "alice", Content: "1 has landed.", At: 3000}
	return []letter{{mine, muster.User, true}, {waits, muster.Lead, true}, {read, muster.Lead, false}}, nil
}

func (f *fake) Take(context.Context) ([]muster.Message, error) {
	f.did = append(f.did, "take")
	return []muster.Message{{From: "lead", Content: "Which port?\nSay it.", At: 4000}}, nil
}

func (f *fake) Halt(context.Context) error {
	f.did = append(f.did, "halt")
	return f.err
}

func (f *fake) Begin(_ context.Context, goal string) error {
	f.did = append(f.did, fmt.Sprintf("begin %q", goal))
	return f.err
}

func (f *fake) Merge(context.Context) (string, error) {
	f.did, f.untaken = append(f.did, "merge"), 0
	return "2 commits of muster/words came to main\n  1 tokenizer", f.err
}

func (f *fake) Untaken(context.Context) (team.Untaken, error) {
	return team.Untaken{Branch: "main", Target: "muster/words", Commits: f.untaken}, nil
}

func (f *fake) Window(_ context.Context, name muster.Name) (view.Window, error) {
	return view.Window{Member: name, Model: "script/words", Tokens: 44_000, Window: 200_000}, nil
}

var plan = muster.Request{ID: "7f2c91aa", Kind: muster.AskPlan, From: "carol", To: muster.Lead, Status: muster.RequestPending,
	TaskID: 4, CreatedAt: 4800, Plan: "Rewrite the reader \x1b[2Jin place.\n\n1. Read into one buffer, so that nothing is " +
		"copied twice on the way.\n2. Keep the old reader until all callers have gone.\n\nundo: git revert"}

// overview is a team of five with seven tasks.
func overview() view.Overview {
	o := face.Empty()
	o.Team, o.Alive, o.Now, o.Lived = "words", true, muster.Time(5000), 12*time.Minute
	o.Run = muster.Run{Team: "words", Goal: "make the word counter pass its tests", StartedAt: 4280, Check: "go test ./..."}
	member := func(name, role string, s muster.MemberStatus, why muster.IdleReason, doing string, task muster.TaskID) {
		o.Members = append(o.Members, view.Member{Alive: name != "dora", Member: muster.Member{Name: muster.Name(name), Role: role,
			Status: s, IdleReason: why, Doing: doing, Task: task, Since: 4955, Turns: 7, Model: "script/words"}})
	}
	member("lead", "lead", muster.Idle, muster.IdleMessages, "", 0)
	member("alice", "coder", muster.Working, "", "", 2)
	member("bob", "tester", muster.Idle, muster.IdleTasks, "", 0)
	member("carol", "coder", muster.Working, "", "waits for plan 7f2c91aa", 4)
	member("dora", "writer", muster.Working, "", "", 5)
	ids := func(n ...muster.TaskID) []muster.TaskID { return n }
	o.Tasks = []muster.Task{
		{ID: 1, Subject: "tokenizer", Status: muster.Completed, Owner: "alice", Landed: &muster.Landed{Commit: "9c01d3e"}},
		{ID: 2, Subject: "counter", Status: muster.InProgress, Owner: "alice", DependsOn: ids(1), Worktree: "task-2-counter",
			Description: "Count words.\nThe empty text has none.", UpdatedAt: 4900},
		{ID: 3, Subject: "command line", Status: muster.Pending, DependsOn: ids(2), BlockedBy: ids(2)},
		{ID: 4, Subject: "reader", Status: muster.InProgress, Owner: "carol", RequirePlan: true, Description: "Read big files."},
		{ID: 5, Subject: "docs", Status: muster.Landing, Owner: "dora"},
		{ID: 6, Subject: "報告書を書く (the report)", Status: muster.Pending},
		{ID: 7, Subject: "fuzzing", Status: muster.NeedsAttention, Result: "three attempts have failed"},
	}
	for _, t := range o.Tasks {
		o.Board[view.BoardLabel(t)]++
	}
	o.Requests, o.Needy, o.Mail = []muster.Request{plan}, o.Tasks[6:], 2
	return o
}

// screen is a model that is typed into.
type screen struct {
	*testing.T
	m    *model
	team *fake
}

func open(t *testing.T, width, height int) *screen { return openWith(t, width, height, overview()) }

func openWith(t *testing.T, width, height int, o view.Overview) *screen {
	t.Helper()
	s := &screen{t, newModel(view.Paint{}, muster.Time(5000)), &fake{untaken: 2}}
	s.m.ask = func(f func(context.Context, teamAPI) tea.Msg) tea.Cmd {
		return func() tea.Msg { return f(t.Context(), s.team) }
	}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	s.send(changedMsg{overview: o})
	return s
}

// send applies a message, and all that follows from it.
func (s *screen) send(msg tea.Msg) {
	s.Helper()
	_, cmd := s.m.Update(msg)
	s.picture() // draws, as bubbletea does
	if cmd == nil {
		return
	}
	switch next := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range next {
			if c != nil {
				s.send(c())
			}
		}
	default:
		s.send(next)
	}
}

// keys types keys by name, and everything else letter by letter.
func (s *screen) keys(all ...string) {
	s.Helper()
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "down": tea.KeyDown, "up": tea.KeyUp,
		"end": tea.KeyEnd, "home": tea.KeyHome, "pgup": tea.KeyPgUp, "space": tea.KeySpace, "backspace": tea.KeyBackspace}
	for _, k := range all {
		if code, ok := named[k]; ok {
			s.send(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range k {
			s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// switcher opens the switcher.
func (s *screen) switcher() {
	s.Helper()
	s.send(tea.KeyPressMsg{Code: 'k', Mod: tea.ModCtrl})
}

// picture is what is on the screen, which it fits.
func (s *screen) picture() string {
	s.Helper()
	lines := strings.Split(s.m.View().Content, "\n")
	if len(lines) != s.m.height {
		s.Errorf("%d lines on a screen of %d:\n%s", len(lines), s.m.height, strings.Join(lines, "\n"))
	}
	for i, l := range lines {
		if w := ansi.StringWidthWc(l); w > s.m.width {
			s.Errorf("a line is %d wide on a screen of %d:\n%s", w, s.m.width, l)
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// golden compares the screen with a file.
func (s *screen) golden(name string) {
	s.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := s.picture()
	for _, raw := range rawnames.Find(got) {
		s.Errorf("%s: %s", name, raw)
	}
	if *update {
		require.NoError(s, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		s.Errorf("%s (go test -update writes it): %v\n%s\nwant\n%s", name, err, got, want)
	}
}

func (s *screen) has(want ...string) {
	s.Helper()
	for _, w := range want {
		if got := s.picture(); !strings.Contains(got, w) {
			s.Errorf("there is no %q in\n%s", w, got)
		}
	}
}

func (s *screen) hasNot(text string) {
	s.Helper()
	if got := s.picture(); strings.Contains(got, text) {
		s.Errorf("there is %q in\n%s", text, got)
	}
}

func (s *screen) did(want ...string) {
	s.Helper()
	if got := strings.Join(s.team.did, "\n"); got != strings.Join(want, "\n") {
		s.Errorf("it did\n%s\nand not\n%s", got, strings.Join(want, "\n"))
	}
}

var said = []team.Said{
	{Pos: 1, At: 4900, Kind: team.SaidToIt, Text: "Task #2: counter\n\nCount words."},
	{Pos: 2, At: 4901, Kind: team.SaidByIt, Text: "I look at the tests first, because they say what an empty text is, and then write it."},
	{Pos: 2, At: 4901, Kind: team.SaidCall, Tool: "bash", Text: "go test ./..."},
	{Pos: 3, At: 4903, Kind: team.SaidResult, Text: "--- FAIL: TestCountEmpty\n" + strings.Repeat("    count_test.go:12: got 1\n", 20) + "FAIL", IsError: true},
	{Pos: 4, At: 4904, Kind: team.SaidByIt, Text: "It counts the text without words as one word."},
}

const diff = "diff --git a/count.go b/count.go\n--- a/count.go\n+++ b/count.go\n@@ -1,3 +1,3 @@\n func Count() {\n-\treturn 1\n+\treturn 0\n }\n"
