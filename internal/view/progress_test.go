package view

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// play tells events, seconds apart as given, to a progress.
func play(p *Progress, events ...muster.Event) {
	for i, e := range events {
		e.At = 1000 + float64(i)/10
		p.Event(e)
	}
}

func progressTo(out io.Writer, width int, start time.Time,
	look func(muster.TaskID) (muster.Task, error)) *Progress {
	return NewProgress(Options{Print: func(s string) { _, _ = io.WriteString(out, s) },
		Screen: Screen{Width: width}, Start: start, Task: look})
}

func lookup(tasks ...muster.Task) func(muster.TaskID) (muster.Task, error) {
	return func(id muster.TaskID) (muster.Task, error) {
		for _, t := range tasks {
			if t.ID == id {
				return t, nil
			}
		}
		return muster.Task{}, muster.ErrNotFound
	}
}

func TestProgressIsALineAnEvent(t *testing.T) {
	var out strings.Builder
	p := progressTo(&out, 0, muster.Time(1000),
		lookup(muster.Task{ID: 1, Subject: "tokenizer"},
			muster.Task{ID: 2, Subject: "counter", DependsOn: []muster.TaskID{1}}))
	play(p,
		at(journal.RunStarted, "lead", 0, "goal", "make it pass"),
		at(journal.TurnStarted, "lead", 0, "turn", 1.0),
		at(journal.ToolStarted, "lead", 0, "tool", "task_create"),
		at(journal.TaskCreated, "lead", 1, "subject", "tokenizer"),
		at(journal.ToolEnded, "lead", 0, "tool", "task_create"),
		at(journal.TaskCreated, "lead", 2, "subject", "counter"),
		at(journal.MemberSpawned, "alice", 0, "role", "coder"),
		at(journal.TaskClaimed, "alice", 1, "subject", "tokenizer"),
		at(journal.MailSent, "lead", 0, "to", "alice", "type", "broadcast", "text", "hurry"),
		at(journal.MailSent, "lead", 0, "to", "bob", "type", "broadcast", "text", "hurry"),
		at(journal.TaskCompleted, "alice", 1, "commit", "3f2a91cdd", "receipt", "ok", "check", "go test ./...",
			"seconds", 0.7),
	)
	p.Tick(time.Unix(2000, 0))
	p.Close()
	want := `  0.0s lead     goal   make it pass
  0.5s lead     plan   2 tasks: 1 tokenizer, 2 counter (after 1)
  0.6s alice    joins  coder
  0.7s alice    takes  1 tokenizer
  0.8s lead     mails  to all: hurry
  1.0s landing  lands  1 tokenizer               3f2a91c  go test ./...  ok 0.7 s
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestALongPlanIsCut(t *testing.T) {
	var out strings.Builder
	p := progressTo(&out, 0, muster.Time(1000), lookup())
	for i := range 30 {
		p.Event(at(journal.TaskCreated, "lead", muster.TaskID(i+1), "subject", "a task with a name"))
	}
	p.Tick(muster.Time(1000).Add(planDelay))
	if got := out.String(); !strings.Contains(got, "30 tasks: 1 a task") || !strings.HasSuffix(got, ", ...\n") || len(got) > 170 {
		t.Errorf("%q", got)
	}
}

var movement = regexp.MustCompile(`^\x1b\[(\??\d*)([ABJKhl])\r?`)

// emulate is what a terminal shows after the bytes: the lines above the cursor, none of which is wrapped. What is drawn
// anew must stand between the brackets of synchronized output.
func emulate(t *testing.T, s string) []string {
	t.Helper()
	var screen []string
	at, isSynchronized := 0, false
	for s != "" {
		if m := movement.FindStringSubmatch(s); m != nil {
			n, _ := strconv.Atoi(m[1])
			switch m[2] {
			case "h", "l":
				if m[1] != "?2026" || isSynchronized == (m[2] == "h") {
					t.Fatalf("unexpected mode %q", m[0])
				}
				isSynchronized = m[2] == "h"
			case "A":
				at -= n
			case "B":
				at += n
			case "J":
				screen = screen[:at]
			}
			if at < 0 || at > len(screen) || !isSynchronized && m[2] != "l" {
				t.Fatalf("%q leads to line %d of %d", m[0], at, len(screen))
			}
			s = s[len(m[0]):]
			continue
		}
		line, rest, ok := strings.Cut(s, "\n")
		text, isCleared := strings.CutSuffix(line, "\x1b[K")
		if !ok || strings.Contains(text, "\x1b[") && !strings.Contains(text, "m") || !isCleared && at < len(screen) {
			t.Fatalf("unexpected bytes %q", s)
		}
		screen = append(screen[:at], append([]string{text}, screen[min(at+1, len(screen)):]...)...)
		at, s = at+1, rest
	}
	if isSynchronized || at != len(screen) {
		t.Fatalf("the cursor is left in line %d of %d", at, len(screen))
	}
	return screen
}

func TestLivingMembersStayBelow(t *testing.T) {
	var out strings.Builder
	start := muster.Time(1000)
	p := progressTo(&out, 80, start, lookup(muster.Task{ID: 2, Subject: "counter"}))
	play(p,
		at(journal.RunStarted, "lead", 0, "goal", "make it pass"),
		at(journal.ToolStarted, "lead", 0, "tool", "wait"),
		at(journal.MemberSpawned, "alice", 0, "role", "coder"),
		at(journal.TaskClaimed, "alice", 2, "subject", "counter"),
		at(journal.TurnStarted, "alice", 2, "turn", 7.0),
		at(journal.ToolStarted, "alice", 2, "tool", "bash", "text", "go test ./..."),
		at(journal.ToolStarted, "alice", 2, "tool", "grep", "text", "not its own call", "subagent", true),
		at(journal.ToolEnded, "alice", 2, "tool", "grep", "subagent", true),
	)
	now := start.Add(12*time.Second + 600*time.Millisecond)
	p.Tick(now)
	screen := emulate(t, out.String())
	want := []string{
		"  0.0s lead     goal   make it pass",
		"  0.2s alice    joins  coder",
		"  0.3s alice    takes  2 counter",
		"",
		"lead      waiting                      for the team  12 s",
		"alice     working  2 counter  turn 7   bash go test ./...  12 s",
	}
	if strings.Join(screen, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(screen, "\n"), strings.Join(want, "\n"))
	}

	before := out.Len()
	p.Tick(now.Add(RedrawInterval / 2)) // too early
	p.Tick(now.Add(200 * time.Millisecond))
	if out.Len() != before {
		t.Errorf("drawn again without a change: %q", out.String()[before:])
	}
	p.Tick(now.Add(time.Second))
	if again := out.String()[before:]; !strings.Contains(again, "13 s") || strings.Contains(again, "\x1b[J") || strings.Contains(again, "goal") {
		t.Errorf("the seconds do not tick, or more is drawn than has changed: %q", again)
	}
	play(p, at(journal.MemberShutdown, "alice", 0, "reason", "all is done"))
	p.Tick(now.Add(2 * time.Second))
	if screen := emulate(t, out.String()); len(screen) != 6 || !strings.HasPrefix(screen[5], "lead      waiting ") ||
		!strings.HasSuffix(screen[5], "  for the team  14 s") {
		t.Errorf("after alice has stopped:\n%s", strings.Join(screen, "\n"))
	}
	p.Close()
	if screen := emulate(t, out.String()); len(screen) != 4 || strings.Contains(screen[3], "waits") {
		t.Errorf("not clean at the end:\n%s", strings.Join(screen, "\n"))
	}
}

func TestPaint(t *testing.T) {
	on := Colours(nil)
	team := []muster.Name{"lead", "alice", "bob"}
	read := func() []muster.Name { return team }
	if seen, known := Colours(nil), Colours(read); known.Who("alice", "x") != seen.Who("first", "x") || known.Who("bob", "x") != seen.Who("second", "x") {
		t.Error("colours follow the order in which members joined")
	}
	colours, late := map[string]bool{}, Colours(read)
	for i := range 8 {
		name := fmt.Sprint("m", i)
		team = append(team, muster.Name(name))
		colours[late.Who(name, "x")] = true
	}
	if late.Who("landing", "x") != "x" || len(colours) != 8 || colours["x"] || colours["\x1b["+Amber+"mx\x1b[0m"] {
		t.Errorf("eight members have eight colours, the runtime has none: %v", colours)
	}
	if on.In(Bad, "x") != "\x1b[31mx\x1b[0m" || on.In(Good, "x") != "\x1b[32mx\x1b[0m" || on.In(Plain, "x") != "x" {
		t.Error("red is for trouble, green for what landed")
	}
	if off := (Paint{}); off.In(Bad, "x")+off.Who("alice", "y") != "xy" {
		t.Error("no colour, no bytes")
	}
}

func TestATakenTaskIsToldWithItsLane(t *testing.T) {
	var out strings.Builder
	p := progressTo(&out, 0, muster.Time(1000),
		lookup(muster.Task{ID: 4, Subject: "known", Owner: "carol", Worktree: "task-4-known"}))
	play(p,
		at(journal.TaskClaimed, "alice", 1, "subject", "tokenizer"),
		at(journal.TaskClaimed, "bob", 2, "subject", "counter"),
		at(journal.MemberSpawned, "carol", 0, "role", "coder"),
		at(journal.LaneCreated, "", 2, "lane", "task-2-counter"),
	)
	if out.Len() > 0 {
		t.Errorf("told before the first lane is known:\n%s", out.String())
	}
	play(p, at(journal.LaneCreated, "", 1, "lane", "task-1-tokenizer"),
		at(journal.TaskClaimed, "carol", 4, "subject", "known"), at(journal.TaskClaimed, "dave", 5, "subject", "bare"))
	p.Tick(muster.Time(1000.5))
	if strings.Contains(out.String(), "bare") {
		t.Error("did not wait for a lane")
	}
	p.Tick(muster.Time(1000.2).Add(laneDelay))
	same(t, out.String(), `  0.0s alice    takes  1 tokenizer               lane task-1-tokenizer
  0.1s bob      takes  2 counter                 lane task-2-counter
  0.2s carol    joins  coder
  0.1s carol    takes  4 known                   lane task-4-known
  0.2s dave     takes  5 bare
`)
}

func TestNarrowLinesKeepTheVerdict(t *testing.T) {
	for _, width := range []int{60, 70, 80, 100} {
		var out strings.Builder
		p := progressTo(&out, width, muster.Time(1000),
			lookup(muster.Task{ID: 2, Subject: "a counter with a long name"}))
		play(p,
			at(journal.CheckBase, "", 0, "result", "ok", "seconds", 0.5, "command",
				"go test -race ./internal/... ./cmd/..."),
			at(journal.TaskCompleted, "alice", 2, "commit", "422b157aa", "receipt", "ok", "check",
				"go test -race ./internal/... ./cmd/...", "seconds", 0.5),
			at(journal.TaskReturned, "alice", 2, "reason", "check", "seconds", 0.6, "text",
				"--- FAIL: TestCountEmpty (0.00s) and so on and on and on and on"),
		)
		p.Close()
		told := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(told) < 4 || !strings.HasSuffix(told[0], "  ok 0.5 s") || !strings.HasSuffix(told[1], "  ok 0.5 s") ||
			!strings.Contains(told[1], "422b157") || !strings.HasSuffix(told[2], "  FAIL 0.6 s") {
			t.Errorf("at %d:\n%s", width, out.String())
		}
		said := ""
		for i, l := range told {
			if text.Columns(l) > width {
				t.Errorf("%d columns at %d: %q", text.Columns(l), width, l)
			}
			if i >= 3 {
				said += " " + strings.TrimSpace(l)
			}
			if i > 3 && (!strings.HasPrefix(l, strings.Repeat(" ", 23)) || l[23] == ' ') {
				t.Errorf("at %d not under the text: %q", width, l)
			}
		}
		if !strings.Contains(said,
			"2 a counter with a long name to alice: --- FAIL: TestCountEmpty (0.00s) and so on and on and on and on on the merged tree") {
			t.Errorf("at %d trouble is cut: %q", width, said)
		}
	}
}

// The names of what has changed stand at the end of a note, and the command to type at the end of a question.
func TestNarrowNotesAndQuestionsAreWhole(t *testing.T) {
	changed := "changed while alice worked: HEAD (main, was feature); the index; files of your checkout: README, main.go"
	for _, width := range []int{60, 80, 400} {
		var out strings.Builder
		p := progressTo(&out, width, muster.Time(1000), lookup())
		play(p, at(journal.RunNote, "alice", 0, "text", changed),
			at(journal.RequestCreated, "bob", 0, "kind", string(muster.AskPermission), "to", "user", "text",
				strings.Repeat("delete the old files ", 4), "request_id", "1a2b3c4d"))
		p.Close()
		said := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(said, changed) || !strings.HasSuffix(said, "; muster approve 1a2b3c4d") {
			t.Errorf("at %d something is cut:\n%s", width, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if text.Columns(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%d columns at %d: %q", text.Columns(line), width, line)
			}
		}
	}
}

func TestTroubleMailedToTheLeadIsTold(t *testing.T) {
	var out strings.Builder
	p := progressTo(&out, 0, muster.Time(1000), lookup())
	play(p,
		at(journal.MailSent, "system", 0, "to", "lead", "type", "error", "text", "alice is lost: its process died"),
		// board says it
		at(journal.MailSent, "system", 3, "to", "lead", "type", "error", "text", "task 3 needs attention"),
		at(journal.MailSent, "system", 0, "to", "lead", "type", "task_landed", "text", "news"),
	)
	same(t, out.String(), "  0.0s board    note   alice is lost: its process died\n")
}

func TestLivingColumnsStay(t *testing.T) {
	var l Presence
	l.Apply(at(journal.MemberSpawned, "a-long-name", 0, "role", "coder"))
	l.Apply(at(journal.TaskClaimed, "a-long-name", 2))
	l.Apply(at(journal.TurnStarted, "a-long-name", 2, "turn", 1.0))
	l.Apply(at(journal.ToolStarted, "a-long-name", 2, "tool", "bash", "text", "go test ./..."))
	row := func(width int, subject string) string {
		return l.Rows(Paint{}, muster.Time(1001), width, func(muster.TaskID) string { return subject })[0]
	}
	wide := row(100, "a subject of some length")
	l.Apply(at(journal.TaskClaimed, "a-long-name", 3))
	if got := row(100, "x"); strings.Index(got, "turn") != strings.Index(wide, "turn") {
		t.Errorf("the columns jump:\n%s\n%s", wide, got)
	}
	for width := 30; width < 110; width++ {
		if got := row(width, "counter 件"); strings.Contains(got, "....") || !strings.HasSuffix(got, "  1 s") ||
			text.Columns(got) >= width {
			t.Errorf("at %d: %q", width, got)
		}
	}
}
