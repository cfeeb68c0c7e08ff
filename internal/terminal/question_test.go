package terminal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/testing/require"
)

// asking has a keyboard in front of which questions have stood for a minute.
func asking(t *testing.T, do func(*keyboard), questions ...Question) {
	synctest.Test(t, func(*testing.T) {
		k := newKeyboard(Options{})
		k.Update(statusMsg{Status: Status{Questions: questions}})
		k.View()
		time.Sleep(time.Minute)
		do(k)
	})
}

// pressed presses a key and lets the time of its effect pass, unless more is typed.
func (k *keyboard) pressed(key, more string) {
	_, effect := k.Update(tea.KeyPressMsg(tea.Key{Code: rune(key[0]), Text: key}))
	k.press(more)
	if effect != nil {
		k.Update(effect())
	}
}

var push = Question{ID: "p-1", Title: "bob asks to run a command", Note: "4m left", Lines: []string{"$ git push"},
	Keys: []Key{{Name: "y", Label: "yes", Settles: true}, {Name: "n", Label: "no", Settles: false}, {Name: "v", Label: "all of it", Settles: false}}}

// One key on an empty input answers the question that has stood for a second. All else is text.
func TestOneKeyAnswers(t *testing.T) {
	plan := Question{ID: "p-2", Title: "ann asks for approval of a plan", Keys: push.Keys}
	for name, c := range map[string]struct {
		do    func(k *keyboard)
		want  []Event
		input string
	}{
		"a key":                {func(k *keyboard) { k.pressed("y", "") }, []Event{Answer{"p-1", "y"}}, ""},
		"the next question":    {func(k *keyboard) { k.press("<tab>"); time.Sleep(2 * time.Second); k.pressed("n", "") }, []Event{Answer{"p-2", "n"}}, ""},
		"Tab at once, then y":  {func(k *keyboard) { k.press("<tab>"); k.pressed("y", "") }, nil, "y"},
		"a message":            {func(k *keyboard) { k.pressed("y", "ou are late") }, nil, "you are late"},
		"behind a message":     {func(k *keyboard) { k.press("x<backspace>"); k.pressed("y", "") }, nil, "y"},
		"a pause in a message": {func(k *keyboard) { k.press("x"); time.Sleep(time.Minute); k.pressed("y", "") }, nil, "xy"},
		"a longer pause":       {func(k *keyboard) { k.press("x<backspace>"); time.Sleep(time.Minute); k.pressed("y", "") }, []Event{Answer{"p-1", "y"}}, ""},
		"Esc":                  {func(k *keyboard) { k.pressed("y", "<esc>") }, nil, ""},
		"Backspace":            {func(k *keyboard) { k.pressed("y", "<backspace>") }, nil, ""},
		"Enter":                {func(k *keyboard) { k.pressed("y", "<enter>") }, []Event{Line{Text: "y"}}, ""},
		"the key twice":        {func(k *keyboard) { k.pressed("y", "y") }, nil, "yy"},
		"a key of no question": {func(k *keyboard) { k.pressed("z", "") }, nil, "z"},
		"pasted":               {func(k *keyboard) { k.Update(tea.PasteMsg{Content: "y"}) }, nil, "y"},
		"pasted behind a key": {func(k *keyboard) {
			k.Update(tea.KeyPressMsg(tea.Key{Code: 'y', Text: "y"}))
			k.Update(tea.PasteMsg{Content: "es"})
		}, nil, "yes"},
		"it is shown, and answered": {func(k *keyboard) { k.pressed("v", ""); time.Sleep(time.Second); k.pressed("y", "") },
			[]Event{Answer{"p-1", "v"}, Answer{"p-1", "y"}}, ""},
		"it is another one now": {func(k *keyboard) { k.pressed("y", ""); k.pressed("y", "") }, []Event{Answer{"p-1", "y"}}, "y"},
		"answered elsewhere": {func(k *keyboard) {
			_, effect := k.Update(tea.KeyPressMsg(tea.Key{Code: 'y', Text: "y"}))
			k.Update(statusMsg{Status: Status{Questions: []Question{plan}}})
			k.Update(effect())
		}, nil, "y"}, // it may begin a message
		"a modal question comes": {func(k *keyboard) {
			_, effect := k.Update(tea.KeyPressMsg(tea.Key{Code: 'y', Text: "y"}))
			k.Update(askMsg{Question{ID: "leave", Keys: []Key{{Name: "b"}}, IsModal: true}})
			k.press("b")
			k.Update(effect())
		}, []Event{Answer{"leave", "b"}}, "y"},
	} {
		asking(t, func(k *keyboard) {
			c.do(k)
			if fmt.Sprint(k.events) != fmt.Sprint(c.want) || k.input.Value() != c.input {
				t.Errorf("%s: events %v, want %v; the input is %q, want %q", name, k.events, c.want, k.input.Value(), c.input)
			}
		}, push, plan)
	}
}

// Who types while a question appears has typed text.
func TestTypingThroughAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyboard(Options{})
		for i, r := range "yes no yyy" {
			if i == 2 {
				k.Update(statusMsg{Status: Status{Questions: []Question{push}}})
			}
			k.press(string(r))
			time.Sleep(150 * time.Millisecond)
		}
		k.press("<enter>y")
		time.Sleep(time.Minute)
		if got, want := fmt.Sprint(k.events), fmt.Sprint([]Event{Line{Text: "yes no yyy"}}); got != want || k.input.Value() != "y" {
			t.Errorf("events %v, want %v; the input is %q", got, want, k.input.Value())
		}
	})
}

// A question that still waits after its answer, because that failed, is shown again.
func TestAnAnswerThatFailed(t *testing.T) {
	asking(t, func(k *keyboard) {
		k.pressed("y", "")
		shows := func() bool {
			k.Update(statusMsg{Status: Status{Questions: []Question{push}}})
			return strings.Contains(k.View().Content, push.Title)
		}
		if shows() {
			t.Error("it is shown at once")
		}
		if time.Sleep(time.Minute); !shows() {
			t.Error("it is not shown again")
		}
	}, push)
}

// The frame has what is asked, how long it waits, its keys, and what a key that was pressed will do.
func TestTheFrameOfAQuestion(t *testing.T) {
	asking(t, func(k *keyboard) {
		shows := func(width, height int, want string) {
			t.Helper()
			k.resize(width, height)
			if got := k.View().Content; !strings.Contains(got, strings.TrimPrefix(want, "\n")) {
				t.Errorf("%d columns, %d rows:\n%s", width, height, got)
			}
		}
		shows(61, 24, `
╭─ bob asks to run a command ─────────── 4m left · 1 of 2 ─╮
│ $ git push                                               │
│                                                          │
│ y  yes                                                   │
│ n  no                                                    │
│ v  all of it                                             │
╰─ Tab next ───────────────────────────────────────────────╯`)
		shows(30, 12, "╭─ bob asks to run a comm… ─╮\n│ $ git push                │\n│                           │\n│ y  yes                    │\n│ n  no                     │\n│ v  all of it              │")
		long := push
		long.Lines = []string{strings.Repeat("word ", 60)}
		k.Update(statusMsg{Status: Status{Questions: []Question{long}}})
		shows(30, 16, "│ ... 7 more rows           │\n│ y yes · n no              │\n│ v all of it               │")
		k.Update(statusMsg{Status: Status{Questions: []Question{push, {ID: "p-2"}}}})
		shows(30, 5, "$ git push\ny yes · n no")
		k.Update(tea.KeyPressMsg(tea.Key{Code: 'y', Text: "y"}))
		shows(80, 24, "╰─ Esc takes it back: yes in a moment (any other key makes it text) ─")
		k.press("es")
		shows(61, 24, "╰─ keys answer when the line below is empty ─")
	}, push, Question{ID: "p-2"})
}

// A key answers no question that the terminal has no room for.
func TestAQuestionWithoutRoom(t *testing.T) {
	asking(t, func(k *keyboard) {
		k.resize(80, 3)
		k.View()
		if k.pressed("y", ""); len(k.events) > 0 || k.input.Value() != "y" {
			t.Errorf("events %v, the input is %q", k.events, k.input.Value())
		}
	}, push)
}

// Where there is no room for all of it, the short form of what a question is about is shown.
func TestABriefQuestion(t *testing.T) {
	asking(t, func(k *keyboard) {
		if got := k.View().Content; !strings.Contains(got, "in short") || strings.Contains(got, "more rows") {
			t.Errorf("%s", got)
		}
		k.resize(80, 60)
		if got := k.View().Content; strings.Contains(got, "in short") || strings.Contains(got, "more rows") {
			t.Errorf("%s", got)
		}
	}, Question{ID: "p", Lines: []string{strings.Repeat("line\n", 25), "ask edit_file"}, Brief: "in short", Keys: push.Keys})
}

// A question that takes all the room there is lets the user type.
func TestTypingBelowALongQuestion(t *testing.T) {
	for height := 6; height < 45; height++ {
		asking(t, func(k *keyboard) {
			k.apply(item{kind: printed, text: "printed"})
			k.resize(80, height)
			k.View()
			k.press("abc")
			rows := strings.Count(k.View().Content, "\n") + 1
			if rows > k.maxViewHeight() || !strings.Contains(k.View().Content, "> abc") {
				t.Errorf("of %d rows the view has %d:\n%s", height, rows, k.View().Content)
			}
		}, Question{ID: "p", Lines: []string{strings.Repeat("line\n", 60), "ask edit_file"}, Keys: push.Keys})
	}
}

// The cursor stands on the first key, until something is typed.
func TestTheCursorIsWhereAKeyAnswers(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {61, 12}, {30, 16}, {30, 5}} {
		asking(t, func(k *keyboard) {
			k.resize(size[0], size[1])
			at := func() string {
				v := k.View()
				row := []rune(ansi.Strip(strings.Split(v.Content, "\n")[v.Cursor.Y]))
				return string(row[min(v.Cursor.X, len(row)):])
			}
			if got := at(); !strings.HasPrefix(got, "y ") {
				t.Errorf("%v: it stands before %q", size, got)
			}
			if k.press("a"); !strings.Contains(k.View().Content, "> a") || strings.HasPrefix(at(), "y ") {
				t.Errorf("%v: it stands before %q", size, at())
			}
		}, Question{ID: "p", Lines: []string{strings.Repeat("line\n", 12), "ask bash(git push *)"}, Keys: push.Keys})
	}
}

// The long text of a question gives way to why it is asked.
func TestWhyAQuestionIsAskedStays(t *testing.T) {
	asking(t, func(k *keyboard) {
		if got := k.View().Content; !strings.Contains(got, "more rows") || !strings.Contains(got, "for task 3") || !strings.Contains(got, "y yes") {
			t.Errorf("%s", got)
		}
	}, Question{ID: "p", Lines: []string{strings.Repeat("line\n", 40), "ask bash(git push *)", "for task 3"}, Keys: push.Keys})
}

// A question that the user has asked for takes no key for text, and what was typed comes back.
func TestAsk(t *testing.T) {
	k := newKeyboard(Options{})
	k.screen.resize(60, 20)
	k.press("draft")
	k.screen.Update(askMsg{Question{Title: "the team is at work", Keys: []Key{{Name: "s", Label: "stops it"}, {Name: "esc", Label: "stays"}}, IsModal: true}})
	if shown := k.screen.View().Content; !strings.Contains(shown, "─ the team is at work ─") || !strings.Contains(shown, "s    stops it") {
		t.Errorf("asked:\n%s", shown)
	}
	k.press("x<enter>s")
	if got, want := fmt.Sprint(k.events), fmt.Sprint([]Event{Answer{Key: "s"}}); got != want {
		t.Errorf("events %v, want %v", got, want)
	}
	if shown := k.screen.View().Content; !strings.Contains(shown, "> draft") || strings.Contains(shown, "at work") {
		t.Errorf("after the answer:\n%s", shown)
	}
}

func TestNoTerminal(t *testing.T) {
	null := require.Value(os.Open(os.DevNull))(t)
	defer null.Close()
	for _, name := range []string{"xterm", "dumb"} {
		t.Setenv("TERM", name)
		if _, err := Open(t.Context(), Options{In: null, Out: null}); !errors.Is(err, ErrNoTerminal) || strings.Contains(err.Error(), `"dumb"`) != (name == "dumb") {
			t.Errorf("TERM=%s: %v", name, err)
		}
	}
}
