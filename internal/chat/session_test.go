package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/commands"
	"muster/internal/terminal"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/team"
)

// paper is a face that keeps what is printed, and lead a lead that keeps what it hears.
type paper struct {
	events chan terminal.Event
	mu     sync.Mutex
	text   strings.Builder
}

func (p *paper) Events() <-chan terminal.Event { return p.events }
func (p *paper) Print(s string)                { p.write(s + "\n") }
func (p *paper) Echo(s string)                 { p.write("> " + s + "\n") }
func (p *paper) Stream(s string)               { p.write(s) }
func (p *paper) Think(s string)                { p.write("(" + s + ")") }
func (p *paper) Flush()                        { p.write("|") }
func (*paper) Refresh()                        {}
func (p *paper) Ask(q terminal.Question)       { p.write("ask: " + q.Title + "\n") }

func (p *paper) write(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.WriteString(s)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

type lead struct {
	mu      sync.Mutex
	heard   []string
	turn    bool // it has one
	resting bool
	done    bool // nothing is left to do
	closed  bool
	changed chan struct{}
}

func (l *lead) Say(_ context.Context, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, text)
	if len(text) > 100 {
		return muster.Errorf(muster.Invalid, "too long").WithHint("say less")
	}
	return nil
}

func (l *lead) Interrupt() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.turn }
func (l *lead) Close()          { l.mu.Lock(); defer l.mu.Unlock(); l.closed = true }

func (l *lead) Resting() (resting, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resting, l.done
}

func (l *lead) Changed() <-chan struct{} { return l.changed }

func (l *lead) has(turn bool) { l.mu.Lock(); defer l.mu.Unlock(); l.turn = turn }

func (l *lead) rests() {
	l.mu.Lock()
	l.resting = true
	l.mu.Unlock()
	l.changed <- struct{}{}
}

// teller keeps the kinds of events.
type teller struct{ kinds []string }

func (t *teller) Event(e muster.Event) { t.kinds = append(t.kinds, e.Kind) }
func (*teller) Notice(muster.Event)    {}
func (*teller) Tick(time.Time)         {}

// Test is not looked at: the view has tests of its own.
func (*teller) Test(muster.TaskID, string) {}

type bench struct {
	*paper
	*lead
	session *Session
	begun   []string
	over    chan struct{}
	ran     [][]string
	waiting []muster.Request
	outcome Outcome
	ended   chan struct{}
}

// start runs a session in a bubble.
func start(t *testing.T, change func(*Session)) *bench {
	b := &bench{paper: &paper{events: make(chan terminal.Event)}, lead: &lead{changed: make(chan struct{}, 1)},
		over: make(chan struct{}), ended: make(chan struct{})}
	b.session = &Session{Face: b.paper, Lead: b.lead, Teller: &teller{}, Now: time.Now, OnLine: func(string) {},
		Events:  func(context.Context) <-chan team.Event { return nil },
		Mail:    func(context.Context) {},
		Waiting: func(context.Context) (all, shown []muster.Request) { return b.waiting, b.waiting },
		Command: func(_ context.Context, args ...string) (string, bool) {
			b.ran = append(b.ran, args)
			return "done\n", true
		},
		Commands: func() []Command { return nil },
		Begin:    func(words string) <-chan struct{} { b.begun = append(b.begun, words); return b.over }}
	if change != nil {
		change(b.session)
	}
	go func() {
		defer close(b.ended)
		b.outcome, _ = b.session.Run(t.Context())
	}()
	return b
}

func (b *bench) types(lines ...string) {
	for _, l := range lines {
		b.events <- terminal.Line{Text: l}
		synctest.Wait()
	}
}

func TestFirstWordsAreTheGoal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mails := 0
		b := start(t, func(s *Session) { s.Mail = func(context.Context) { mails++ } })
		// Without a shell, as in a pipe, a line that begins with ! is a message.
		long := strings.Repeat("x", 200)
		b.types("/tasks", "!make it", "and fast", " /not a command", "/reject 7f2c91aa not now", long)
		before := mails
		if b.types("/inbox"); mails != before+1 {
			t.Errorf("/inbox has shown the mail %d times", mails-before)
		}
		b.types("/quit")
		<-b.ended
		if !slices.Equal(b.begun, []string{"!make it"}) ||
			!slices.Equal(b.heard, []string{"and fast", " /not a command", long}) || b.outcome != UserLeft {
			t.Errorf("begun %q, heard %q, ended %d", b.begun, b.heard, b.outcome)
		}
		if len(b.ran) != 3 || strings.Join(b.ran[0], " ") != "task list" ||
			strings.Join(b.ran[1], "|") != "reject|7f2c91aa|--|not now" {
			t.Errorf("ran %q", b.ran)
		}
		if !strings.Contains(b.String(), "too long\n  say less") { // the lead refuses the long line
			t.Errorf("what is shown:\n%s", b.paper)
		}
	})
}

// TestWhatIsNotTaken is said when nothing is left to do, once for what has landed.
func TestWhatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan team.Event)
		b := start(t, func(s *Session) {
			s.Events = func(context.Context) <-chan team.Event { return events }
			s.Untaken = func(context.Context) string { return "not in main" }
		})
		said := func() int { synctest.Wait(); return strings.Count(b.String(), "not in main") }
		b.done = true
		if b.rests(); said() != 0 {
			t.Error("it is said before anything has landed")
		}
		var landed team.StateEvent
		landed.Entry.Event = muster.Event{Kind: journal.TaskCompleted, Task: 1}
		events <- landed
		for range 2 {
			if b.rests(); said() != 1 {
				t.Errorf("it is said %d times", said())
			}
		}
		b.types("/quit")
		<-b.ended
	})
}

// TestCustomCommands: a command of the repository is what the user says, as it is in its file at that moment.
func TestCustomCommands(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, ".claude", "commands", name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	write("release.md", "---\ndescription: Make a release\nargument-hint: VERSION\nmodel: opus\n---\nRelease $1.\nThen say so.")
	write("help.md", "Not this.")
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(s *Session) {
			s.Custom = func() []commands.Command { return commands.Find(root, "", "", Builtin()) }
		})
		b.types("/release 1.2")
		write("release.md", "Release $1 now.")
		b.types("/release 1.3", "/help", "/relaese 1.4", "/project:help", "/quit")
		<-b.ended
		if !slices.Equal(b.begun, []string{"Release 1.2.\nThen say so."}) ||
			!slices.Equal(b.heard, []string{"Release 1.3 now.", "Not this."}) {
			t.Errorf("begun %q, heard %q", b.begun, b.heard)
		}
		for _, want := range []string{"/release is .claude/commands/release.md\n", "names the model opus, which is ignored",
			"  /help             this\n", "\n  /project:help     Not this.\n  /release          Release $1 now.\n",
			"there is no command /relaese (did you mean /release?) (/help lists them"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not said:\n%s", want, b.paper)
			}
		}
	})
}

// A stopped team goes on with /resume, and with the answer to a question.
func TestAStoppedTeamGoesOnWithoutWords(t *testing.T) {
	for ran, act := range map[string]func(*bench){
		"[]":                       func(b *bench) { b.types("/resume", "/resume", "/archive") },
		"[[approve a1]]":           func(b *bench) { b.events <- terminal.Answer{ID: "a1", Key: "y"} },
		"[[reject a1 -- not now]]": func(b *bench) { b.types("/reject not now") },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, func(s *Session) { s.Stopped = true })
			b.waiting = []muster.Request{{ID: "a1"}}
			b.events <- terminal.Answer{ID: "a1", Key: "v"} // to look at a question answers nothing
			synctest.Wait()
			if b.ran = b.ran[1:]; len(b.begun) > 0 {
				t.Errorf("begun %q", b.begun)
			}
			act(b)
			close(b.over)
			<-b.ended
			if !slices.Equal(b.begun, []string{""}) || b.outcome != RunEnded || fmt.Sprint(b.ran) != ran {
				t.Errorf("%s: begun %q, ended %d, ran %q\n%s", ran, b.begun, b.outcome, b.ran, b.paper)
			}
		})
	}
}

func TestCtrlCTwiceLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil)
		b.types("go")
		b.lead.has(true)
		b.events <- terminal.Interrupt{}
		time.Sleep(time.Minute) // too late to be the second of two
		b.lead.has(false)
		b.events <- terminal.Interrupt{}
		b.events <- terminal.Interrupt{}
		<-b.ended
		if b.outcome != Interrupted {
			t.Errorf("ended %d", b.outcome)
		}
		for _, want := range []string{"stopped: the lead waits", "nothing to stop"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is not said:\n%s", want, b.paper)
			}
		}
	})
}

func TestOneByOneWaitsForTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(s *Session) { s.WaitForLead = true })
		b.types("first")
		sent := make(chan struct{})
		go func() {
			b.events <- terminal.Line{Text: "second"}
			close(b.events)
			close(sent)
		}()
		synctest.Wait()
		if len(b.heard) > 0 {
			t.Fatal("the lead was not waited for")
		}
		b.rests()
		<-sent
		synctest.Wait()
		if !slices.Equal(b.heard, []string{"second"}) || !b.closed {
			t.Errorf("heard %q, closed %v", b.heard, b.closed)
		}
		close(b.over) // the end of the input is not the end of the run
		<-b.ended
		if b.outcome != RunEnded {
			t.Errorf("ended %d", b.outcome)
		}
	})
}

func TestSpeech(t *testing.T) {
	p := &paper{}
	s := &Speech{Face: p}
	reply := llm.Reply{Message: llm.Message{Parts: []llm.Part{llm.Text{Text: "Hello."}}}}
	s.Emit("alice", loop.TextDelta{Text: "not the lead"})
	s.Emit(muster.Lead, loop.TextDelta{Text: "Hel"})
	s.Emit(muster.Lead, loop.TextDelta{Text: "lo."})
	s.Emit(muster.Lead, loop.TurnEnded{Reply: reply})
	s.Emit(muster.Lead, loop.TurnEnded{Reply: reply}) // a model that does not stream
	s.Emit(muster.Lead, loop.TextDelta{Text: "Hal"})
	s.Emit(muster.Lead, loop.ReplyDiscarded{})
	s.Emit(muster.Lead, loop.TextDelta{Part: 0, Text: "one"})
	s.Emit(muster.Lead, loop.TextDelta{Part: 2, Text: "two"})
	s.Emit(muster.Lead, loop.TurnEnded{})
	s.Emit(muster.Lead, loop.TurnEnded{}) // only calls
	if got, want := p.String(), "Hello.|Hello.|Hal ...|one|two|"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPipe(t *testing.T) {
	var out, beside strings.Builder
	p := NewPipe(strings.NewReader("one\r\n\ntwo"), &out, &beside)
	var got []string
	for e := range p.Events() {
		got = append(got, e.(terminal.Line).Text)
	}
	if !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
	p.Stream("Hel")
	p.Stream("lo")
	p.Flush()
	p.Flush()
	p.Print("news")
	if out.String() != "Hello\n" || beside.String() != "news\n" {
		t.Errorf("%q beside %q", out.String(), beside.String())
	}
}
