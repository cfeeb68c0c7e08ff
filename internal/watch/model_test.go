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
	"muster/internal/view"
	"muster/loop"
	"muster/team"
)

var update = flag.Bool("update", false, "write what is drawn into testdata")

func TestMain(m *testing.M) {
	time.Local = time.UTC // the pictures have times of day
	os.Exit(m.Run())
}

// fake is a team that says what a test wants, and notes what it was asked to do.
type fake struct {
	said   []team.Said
	diff   string
	answer muster.Request // what the request was decided to be before; none: the answer of the test is the first
	did    []string
}

func (f *fake) Said(_ context.Context, name muster.Name, after muster.Pos) (all []team.Said, err error) {
	for _, s := range f.said {
		if s.Pos > after && name == "alice" {
			all = append(all, s)
		}
	}
	return all, nil
}
func (f *fake) Diff(context.Context, muster.TaskID) (string, error) { return f.diff, nil }
func (f *fake) Request(_ context.Context, id muster.RequestID) (muster.Request, error) {
	r := plan
	r.ID, r.Status, r.ResolvedBy, r.ResolvedAt = id, muster.RequestApproved, muster.User, 5000
	return r, nil
}

func (f *fake) Answer(_ context.Context, id muster.RequestID, yes bool, text string) (muster.Request, bool, error) {
	f.did = append(f.did, fmt.Sprintf("answer %s %v %q", id, yes, text))
	if f.answer.ID != "" {
		return f.answer, false, nil
	}
	r := plan
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

func (f *fake) Mail(_ context.Context, take bool) ([]muster.Message, error) {
	f.did = append(f.did, fmt.Sprintf("mail, take %v", take))
	return []muster.Message{{From: "lead", Content: "Which port?\nSay it.", At: 4000}}, nil
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

func open(t *testing.T, width, height int) *screen {
	t.Helper()
	s := &screen{t, newModel(false, muster.Time(5000)), &fake{}}
	s.m.ask = func(f func(context.Context, teamAPI) tea.Msg) tea.Cmd {
		return func() tea.Msg { return f(t.Context(), s.team) }
	}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	s.send(changedMsg{overview: overview()})
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
	if next := cmd(); next != nil {
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
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			s.Fatal(err)
		}
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

func TestPictures(t *testing.T) {
	for _, size := range []struct{ width, height int }{{30, 20}, {80, 24}, {200, 30}} {
		picture := func(s *screen, name string) { s.golden(fmt.Sprintf("%s-%d", name, size.width)) }
		s := open(t, size.width, size.height)
		s.team.said, s.team.diff = said, diff
		picture(s, "opens") // on the plan that waits
		s.keys("enter")
		picture(s, "plan")
		s.keys("r", "too much at once")
		picture(s, "reject")
		s.keys("esc", "esc", "tab", "down", "enter")
		picture(s, "conversation")
		s.keys("esc", "tab", "G", "up", "up", "up", "up", "d", "enter", "pgup")
		s.keys("esc", "home", "down", "down", "enter", "end")
		picture(s, "diff")
		s.keys("esc", "g")
		picture(s, "tree")
		s.keys("?")
		picture(s, "keys")
	}
}

func TestAPlanIsApprovedWithOneKey(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("a")
	s.did(`answer 7f2c91aa true ""`)
	s.has("plan for 4 of carol is approved")
	o := overview()
	o.Requests = nil
	s.send(changedMsg{overview: o})
	s.has("PLAN approved for 4 reader", "approved by user at", "undo: git revert")
	s.keys("a", "A", "r") // it is decided, and no other request takes its place under the key
	s.did(`answer 7f2c91aa true ""`)
}

func TestAPlanIsAnsweredWithWords(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("r", "enter")
	s.has("not rejected: say why")
	s.keys("r", "the old readr", "backspace", "backspace", "der stays", "enter")
	s.has("plan for 4 of carol is rejected")
	s.keys("A", "go ahead", "enter")
	s.did(`answer 7f2c91aa false "the old reader stays"`, `answer 7f2c91aa true "go ahead"`)
	s.keys("A", "never mind", "esc")
	s.did(`answer 7f2c91aa false "the old reader stays"`, `answer 7f2c91aa true "go ahead"`)
}

// Of two faces the first decides, and the second says so.
func TestTheFirstDecisionStands(t *testing.T) {
	s := open(t, 80, 24)
	s.team.answer = plan
	s.team.answer.Status, s.team.answer.ResolvedBy, s.team.answer.ResolvedAt = muster.RequestRejected, muster.Lead, 4990
	s.keys("a")
	s.has("plan for 4 of carol was rejected before, by lead at 01:23: that stands")
}

func TestMailGoesToWhoIsShown(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("m")
	s.has("mail to carol:")
	s.keys("why?", "enter", "tab", "down", "m", "hello", "enter")
	s.has("mail sent to alice")
	s.keys("down", "m", "hello", "enter")
	s.has("bob has stopped: muster mail send lead TEXT")
	s.keys("down", "m", "enter")
	s.did(`mail carol "why?"`, `mail alice "hello"`, `mail bob "hello"`)
}

func TestAConversationIsFollowedUntilSomebodyReads(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "down")
	s.send(changedMsg{overview: overview()})
	more := func(pos muster.Pos, text string) {
		s.team.said = append(s.team.said, team.Said{Pos: pos, Kind: team.SaidByIt, Text: text})
		s.send(changedMsg{overview: overview()})
	}
	for i := range 20 {
		more(muster.Pos(i+1), fmt.Sprintf("reply %d", i+1))
	}
	s.has("reply 20", "follows")
	s.keys("enter", "up")
	more(30, "the newest")
	s.hasNot("the newest")
	s.has("G follows")
	s.keys("G")
	more(31, "newer still")
	s.has("the newest", "newer still", "follows")
}

// Words are seen while they stream in, and once only when the transcript has them.
func TestWordsAreSeenWhileTheyStreamIn(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "down")
	w := words{}.follow(loop.TextDelta{Text: "I look at the "}).follow(loop.TextDelta{Text: "tests first,"})
	s.send(wordsMsg{"alice": w, "bob": words{}.follow(loop.TextDelta{Text: "not mine"})})
	s.has("I look at the tests first,")
	s.hasNot("not mine")
	w = w.follow(loop.TextDelta{Text: " because"}).follow(loop.TurnEnded{})
	s.team.said = said[:3]
	s.send(wordsMsg{"alice": w})
	if got := strings.Count(s.picture(), "I look at"); got != 1 {
		t.Errorf("it is there %d times:\n%s", got, s.picture())
	}
	for i := range 20 {
		w = w.follow(loop.ToolProgress{Text: fmt.Sprintf("test %d passed", i+1)})
	}
	s.send(wordsMsg{"alice": w})
	s.has("test 20 passed", "test 13 passed", "> bash go test")
	s.hasNot("test 12 passed")
	s.team.said = said[:4]
	s.send(wordsMsg{"alice": w.follow(loop.TextDelta{Text: "Next."})})
	s.hasNot("test 20 passed")
	s.has("FAIL: TestCountEmpty", "Next.")
	s.send(wordsMsg{"alice": w.follow(loop.ReplyDiscarded{})})
	s.hasNot("Next.")
}

func TestTheBoardIsFilteredWhileTyping(t *testing.T) {
	s := open(t, 80, 24)
	s.has("1 finished")
	s.keys("/", "al")
	s.has(`BOARD 2 of 7 with "al"`, "tokenizer", "counter")
	s.hasNot("fuzzing ") // those that need somebody are in the list above too
	s.keys("enter", "g")
	s.has(`TREE 2 of 7 with "al"`) // the filter stays
	s.keys("/", "zzz")
	s.has(`TREE 0 of 7`)
	s.keys("esc")
	s.has("TREE 7", "1 finished")
	s.keys("space")
	s.has("1 landed   tokenizer")
}

// What is selected stays selected when the board changes around it.
func TestARefreshMovesNothing(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "tab", "down", "down") // 2 counter
	s.has("TASK 2 counter")
	o := overview()
	o.Tasks[5].Status = muster.NeedsAttention
	o.Tasks[3].Status = muster.Completed
	s.send(changedMsg{overview: o})
	s.has("TASK 2 counter", ">  2 working  counter")
}

func TestWhatWasGivenUpIsTriedAgain(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("down")
	s.has("TASK 7 fuzzing", "three attempts have failed")
	s.keys("t", "down")
	s.has("MAIL for you", "Which port?")
	s.keys("x")
	s.did("retry 7", "mail, take false", "mail, take true")
	s.has("Which port?")
}

func TestTheMouseSelectsAndScrolls(t *testing.T) {
	s := open(t, 80, 12)
	s.send(tea.MouseClickMsg{X: 5, Y: 2})
	s.has("PLAN for 4 reader")
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelDown})
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelDown})
	s.hasNot("Rewrite the reader")
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelUp})
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelUp})
	s.has("Rewrite the reader")
	s.send(tea.MouseClickMsg{X: 5, Y: 5})
	s.has("> lead", "nothing was said yet")
	if s.keys("M"); s.m.View().MouseMode != tea.MouseModeNone {
		t.Error("the terminal has not got its mouse back")
	}
}

func TestNoTeamYet(t *testing.T) {
	s := &screen{t, newModel(false, muster.Time(5000)), &fake{}}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 10})
	s.has("no team has worked here yet", "muster run")
	s.keys("a", "m", "d", "enter", "down", "g", "/", "esc", "tab", "?", "e", "c", "esc") // none of them needs a team
	s.has("no team has worked here yet")
}

// An error is in sight until the next reading succeeds, and what was read before stays.
func TestAnErrorHidesNothing(t *testing.T) {
	s := open(t, 80, 24)
	s.send(changedMsg{err: muster.Errorf(muster.Corrupt, "the board cannot be read").WithHint("muster doctor")})
	s.has("the board cannot be read: muster doctor", "NEEDS YOU 3", "MEMBERS 5")
	s.send(changedMsg{overview: overview()})
	s.hasNot("cannot be read")
}

// No text of a model steers the terminal, and no secret is seen.
func TestTextsAreMadeSafe(t *testing.T) {
	s := open(t, 80, 24)
	s.m.hide = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[hidden]") }
	s.team.said = []team.Said{{Pos: 1, Kind: team.SaidByIt, Text: "hunter2\x1b]0;title\a \u202egnirts\tend"}}
	o := overview()
	o.Tasks[1].Subject, o.Members[1].Doing = "a\x1b[2J\nb hunter2", "\x1b[31mred\r\nline"
	s.send(changedMsg{overview: o})
	s.keys("tab", "down")
	s.has("[hidden]]0;title gnirts    end")
	s.keys("tab", "down", "down")
	text := s.m.View().Content
	if strings.ContainsAny(text, "\x1b\a\r\t\u202e") || strings.Contains(text, "hunter2") {
		t.Errorf("the screen is\n%q", text)
	}
}

// With colour the same words stand in the same places.
func TestColoursTakeNoRoom(t *testing.T) {
	plain, coloured := open(t, 80, 24), open(t, 80, 24)
	coloured.m.paint = true
	coloured.team.said, plain.team.said = said, said
	for _, k := range []string{"tab", "down", "enter", "esc", "tab", "down", "down", "enter", "e", "c", "?"} {
		plain.keys(k)
		coloured.keys(k)
		if a, b := plain.picture(), ansi.Strip(coloured.picture()); strings.ReplaceAll(a, " ", "") != strings.ReplaceAll(b, " ", "") {
			t.Errorf("after %s:\n%s\n%s", k, a, b)
		}
	}
	if !strings.Contains(coloured.picture(), "\x1b[") {
		t.Error("there is no colour")
	}
}

// BenchmarkFrame draws a team of 30 members and 1,000 tasks after a key.
func BenchmarkFrame(b *testing.B) {
	m := newModel(true, muster.Time(5000))
	o := big()
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	m.ask = func(func(context.Context, teamAPI) tea.Msg) tea.Cmd { return nil }
	b.Run("key", func(b *testing.B) {
		m.apply(changedMsg{overview: o})
		for b.Loop() {
			m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			m.View()
		}
	})
	b.Run("overview", func(b *testing.B) {
		for b.Loop() {
			m.apply(changedMsg{overview: o})
			m.View()
		}
	})
	b.Run("tree", func(b *testing.B) {
		m.board.isTree = true
		for b.Loop() {
			m.apply(changedMsg{overview: o})
			m.View()
		}
	})
}

// big is an overview of 30 members and 1,000 tasks.
func big() view.Overview {
	o := overview()
	o.Tasks, o.Members = nil, nil
	for i := range 1000 {
		t := muster.Task{ID: muster.TaskID(i + 1), Subject: fmt.Sprintf("a subject of some length, number %d", i), Status: muster.Pending}
		if i > 0 {
			t.DependsOn, t.BlockedBy = []muster.TaskID{muster.TaskID(i)}, []muster.TaskID{muster.TaskID(i)}
		}
		o.Tasks = append(o.Tasks, t)
	}
	for i := range 30 {
		o.Members = append(o.Members, view.Member{Alive: true, Member: muster.Member{Name: muster.Name(fmt.Sprintf("member-%d", i)),
			Role: "coder", Status: muster.Working, Task: muster.TaskID(i + 1), Since: 4000}})
	}
	return o
}
