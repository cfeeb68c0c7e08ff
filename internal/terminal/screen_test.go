package terminal

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/lineedit"
	"muster/internal/testing/tmuxtest"
)

// keyboard drives the model without a terminal.
type keyboard struct {
	*screen
	events []Event
}

func newKeyboard(o Options) *keyboard {
	k := &keyboard{}
	k.screen = newScreen(o, newQueue[item](), nil, func(e Event) { k.events = append(k.events, e) })
	k.resize(80, 24)
	return k
}

var named = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "tab": {Code: tea.KeyTab},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete}, "home": {Code: tea.KeyHome},
	"end":       {Code: tea.KeyEnd},
	"ctrl+left": {Code: tea.KeyLeft, Mod: tea.ModCtrl}, "ctrl+right": {Code: tea.KeyRight, Mod: tea.ModCtrl},
	"esc": {Code: tea.KeyEscape},
}

// press presses keys: <ctrl+a> is one, all else is typed.
func (k *keyboard) press(keys string) {
	for keys != "" {
		if name, rest, ok := strings.Cut(keys[1:], ">"); ok && keys[0] == '<' {
			key, known := named[name]
			if mod, letter, ok := strings.Cut(name, "+"); ok && !known {
				key = tea.Key{Code: []rune(letter)[0],
					Mod: map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt}[mod]}
			}
			k.Update(tea.KeyPressMsg(key))
			keys = rest
			continue
		}
		r := []rune(keys)[0]
		k.Update(tea.KeyPressMsg(tea.Key{Code: r, Text: string(r)}))
		keys = keys[len(string(r)):]
	}
}

func TestEditing(t *testing.T) {
	for _, c := range []struct{ keys, want string }{ // the cursor is |
		{"abc<left><left>x", "ax|bc"},
		{"abc<home>x<end>y", "xabcy|"},
		{"one two<alt+b><ctrl+k>", "one |"},
		{"one two<ctrl+left><ctrl+left><ctrl+right><delete>", "one|two"},
		{"one a-b<ctrl+w>", "one |"},
		{"one two<ctrl+w><ctrl+y><ctrl+y>", "one twotwo|"},
		{"a<alt+enter>b<ctrl+j>c<up><ctrl+a>x", "a\nx|b\nc"},
		{"abc<alt+enter>d<up><right><right>x", "abcx|\nd"},
		{"ab<alt+enter>cd<up><ctrl+e><ctrl+k>", "ab|cd"},
		{"e\u0301x<left><backspace>", "|x"},
		{"x\U0001F468\u200d\U0001F469y<left><left>z", "xz|\U0001F468\u200d\U0001F469y"},
	} {
		k := newKeyboard(Options{})
		k.press(c.keys)
		value := func(text []lineedit.Cluster) string { b := lineedit.Buffer{Text: text}; return b.Value() }
		got := value(k.input.Text[:k.input.Cursor]) + "|" + value(k.input.Text[k.input.Cursor:])
		if got != c.want {
			t.Errorf("%s gives %q, want %q", c.keys, got, c.want)
		}
	}
}

// TestHint checks that what may be typed stands below an empty input only, and moves nothing.
func TestHint(t *testing.T) {
	k := newKeyboard(Options{Hint: "/help"})
	const hint = "╰─ /help ──"
	empty := k.View().Content
	k.press("x")
	typed := k.View().Content
	if !strings.Contains(empty, hint) || strings.Contains(typed, hint) || strings.Count(empty, "\n") != strings.Count(typed, "\n") {
		t.Errorf("%s\n%s", empty, typed)
	}
}

// TestATerminalWithoutSize checks that one that does not know its size has the usual one, also for bubbletea, which
// draws each frame anew on none.
func TestATerminalWithoutSize(t *testing.T) {
	k := newKeyboard(Options{})
	k.resize(0, 0)
	if got := k.filter(nil, tea.WindowSizeMsg{}); k.width != 80 || k.height != 24 || got != (tea.WindowSizeMsg{Width: 80, Height: 24}) {
		t.Errorf("%d, %d, %v", k.width, k.height, got)
	}
}

func TestEvents(t *testing.T) {
	k := newKeyboard(Options{})
	k.press("one<enter> <enter><ctrl+c>x<ctrl+c><ctrl+c><ctrl+d>")
	want := []Event{Line{Text: "one"}, Interrupt{}, Interrupt{}, Leave{}}
	if fmt.Sprint(k.events) != fmt.Sprint(want) {
		t.Errorf("events %v, want %v", k.events, want)
	}
	items, _ := k.queue.take()
	if len(items) != 1 || items[0] != (item{kind: echoed, text: "one"}) {
		t.Errorf("in the scrollback: %v", items)
	}
}

// What stands in the input when the terminal closes is shown, so that it is not lost. An editor that has the terminal
// ends first.
func TestWhatWasNotSentIsShownAtTheEnd(t *testing.T) {
	k := newKeyboard(Options{})
	k.press("a draft")
	k.isEditing.Store(true)
	k.queue.close()
	if msg := k.nextInsertion(); msg != nil {
		t.Errorf("while the editor has the terminal it closes: %v", msg)
	}
	k.isEditing.Store(false)
	if msg := fmt.Sprint(k.nextInsertion()); !strings.Contains(msg, "this was not sent:\na draft") {
		t.Errorf("it closes with %q", msg)
	}
	if k.nextInsertion(); !k.closed {
		t.Error("it does not close")
	}
}

// Esc is the caller's, who may put an entered line back. It is marked when it is entered again, and what was typed
// instead is not lost.
func TestEscAndEdit(t *testing.T) {
	k := newKeyboard(Options{History: []string{"old"}})
	k.press("one<enter>two<enter><esc>draft<esc>")
	k.Update(editMsg{"one", true})
	if got := k.input.Value(); got != "one" {
		t.Errorf("the input is %q", got)
	}
	k.press("!<enter>plain<enter>")
	k.Update(editMsg{"two", true})
	k.press("<ctrl+c>new<enter>typed")
	k.Update(editMsg{"new", true})
	if k.press("<down>"); k.input.Value() != "typed" {
		t.Errorf("Down brings %q", k.input.Value())
	}
	k.press("<enter>")
	want := []Event{Line{Text: "one"}, Line{Text: "two"}, Escape{IsEmpty: true}, Escape{}, Line{"one!", true}, Line{Text: "plain"},
		Line{Text: "new"}, Line{Text: "typed"}}
	if fmt.Sprint(k.events) != fmt.Sprint(want) {
		t.Errorf("events %v, want %v", k.events, want)
	}
}

// Ctrl-V asks for the clipboard while the user types on, and never twice at once.
func TestClipboard(t *testing.T) {
	text, said := "@shot.png ", ""
	k := newKeyboard(Options{Clipboard: func() (string, string) { return text, said }})
	k.press("see ")
	read := readClipboard(k.screen)
	k.press("<ctrl+v>it: ")
	if readClipboard(k.screen) != nil {
		t.Error("the clipboard is read twice at once")
	}
	k.Update(read())
	text, said = "", "the clipboard holds no image"
	k.Update(readClipboard(k.screen)())
	items, _ := k.queue.take()
	if len(items) != 1 || items[0] != (item{kind: printed, text: said}) || k.input.Value() != "see it: @shot.png " {
		t.Errorf("printed %v, the input is %q", items, k.input.Value())
	}
}

func TestHistory(t *testing.T) {
	k := newKeyboard(Options{History: []string{"a one", "b one\nmore", "b one\nmore", "c"}})
	for _, c := range []struct{ keys, want string }{
		{"draft<up>", "c"},
		{"<up>", "b one\nmore"}, // the same line twice in a row is kept once
		{"<up><up>", "a one"},   // through the rows of one line
		{"<down><down>", "c"},
		{"<down>", "draft"},
		{"<ctrl+c>new<enter><up>", "new"},
		{"<ctrl+r>one", "b one\nmore"},
		{"<ctrl+r>", "a one"},
		{"<ctrl+g>", "new"},
		{"<ctrl+r>one<ctrl+e>!", "b one!\nmore"},
		{"<ctrl+c><ctrl+r>zzz<ctrl+c>x", "x"},
	} {
		k.press(c.keys)
		if got := k.input.Value(); got != c.want {
			t.Errorf("after %s: %q, want %q", c.keys, got, c.want)
		}
	}
}

func TestPasteIsSubmittedWhole(t *testing.T) {
	k := newKeyboard(Options{})
	big := strings.Repeat("\tx := 1\r\n", 5000) + "\x1b[31mend"
	k.press("a ")
	k.Update(tea.PasteMsg{Content: big})
	k.press(" b")
	if v := k.View().Content; !strings.Contains(v, "> a [5001 lines pasted] b") {
		t.Errorf("shown: %.200q", v)
	}
	k.press("<enter>")
	want := Line{Text: "a " + strings.Repeat("\tx := 1\n", 5000) + "[31mend b"}
	if len(k.events) != 1 || k.events[0] != want {
		t.Errorf("submitted: %.100v", k.events)
	}
	k.press("<up>")
	if k.input.Value() != want.Text {
		t.Error("the history gives something else back")
	}
}

// The view leaves room above it: what is inserted there must not push parts of it out of the screen.
func TestViewIsNeverTooHigh(t *testing.T) {
	for _, height := range []int{1, 2, 3, 5, 10, 15, 16, 17, 24, 60} {
		k := newKeyboard(Options{})
		k.resize(40, height)
		k.Update(statusMsg{Status: Status{Lines: strings.Split(strings.Repeat("member\n", 30), "\n"),
			Questions: []Question{{ID: "a", Lines: []string{strings.Repeat("plan\n", 30)}}}}})
		k.stream.Add("growing", 39)
		k.Update(tea.PasteMsg{Content: strings.Repeat("row\n", 7) + strings.Repeat("x", 400)})
		for range 12 {
			v := k.View()
			rows := strings.Split(v.Content, "\n")
			if len(rows) > k.maxViewHeight() || v.Cursor.Y >= len(rows) || v.Cursor.X >= 40 {
				t.Errorf("height %d: %d rows, cursor %d,%d", height, len(rows), v.Cursor.X, v.Cursor.Y)
			}
			k.press("<up>")
		}
	}
}

// What the model thinks is shown while it streams, folds to a line with its time, and Ctrl-O brings it back.
func TestThinking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyboard(Options{})
		for i := range 9 {
			k.apply(item{thought, fmt.Sprintf("thought %d\n\x1b[2J", i)})
			time.Sleep(time.Second)
		}
		if got := tmuxtest.Unframed(k.View().Content); got != "[2Jthought 6\n[2Jthought 7\n[2Jthought 8\n[2J\n> " {
			t.Errorf("while it thinks: %q", got)
		}
		k.apply(item{streamed, "So it is."})
		k.apply(item{kind: flushed})
		if got := strings.Join(k.insertRows, "|"); got != "thought for 9 s (Ctrl-O shows it)||So it is." {
			t.Errorf("%q", got)
		}
		k.press("<ctrl+o>")
		if items, _ := k.queue.take(); len(items) != 1 || !strings.HasPrefix(items[0].text, "thought 0\n[2Jthought 1") {
			t.Errorf("Ctrl-O shows %v", items)
		}
	})
}

// A streamed line is not cut by what others print, unless its end does not come.
func TestPrintedWaitsForTheStreamedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyboard(Options{})
		step := func(i item, want string) {
			t.Helper()
			k.apply(i)
			if got := strings.Join(k.insertRows, "|"); got != want {
				t.Errorf("after %q: %q, want %q", i.text, got, want)
			}
			k.insertRows = nil
		}
		step(item{streamed, "one "}, "")
		step(item{printed, "event"}, "")
		step(item{echoed, "typed"}, "> typed")
		step(item{streamed, "two\n\nthree"}, "|one two||event")
		step(item{printed, "event"}, "")
		step(item{kind: flushed}, "|three||event")
		step(item{printed, "event"}, "event")

		step(item{streamed, "slow"}, "")
		step(item{printed, "event"}, "")
		k.Update(statusMsg{})
		step(item{kind: echoed, text: "."}, "|> .")
		time.Sleep(statusInterval)
		k.Update(statusMsg{})
		step(item{kind: echoed, text: "."}, "|event||> .")
	})
}

// What streams in is drawn as Markdown, block by block, and what grows is drawn as it will be.
func TestMarkdownStreams(t *testing.T) {
	k := newKeyboard(Options{Colour: true})
	k.resize(30, 10)
	var rows []string
	for _, piece := range []string{"# Fou", "nd\n\nThe **lock** \x1b]0;t\a&#27;[31m is", " taken\n\n| A | B |\n|--:|---|\n| 1 "} {
		k.apply(item{streamed, piece})
		rows, k.insertRows = append(rows, k.insertRows...), nil
	}
	if shown := ansi.Strip(k.View().Content); !strings.Contains(shown, "A  B\n1") {
		t.Errorf("while the table grows:\n%s", shown)
	}
	k.apply(item{kind: flushed})
	got := strings.Join(append(rows, k.insertRows...), "\n")
	want := "\x1b[0;1mFound\x1b[0m\n\nThe \x1b[0;1mlock\x1b[0m ]0;t[31m is taken\n\n\x1b[0;1mA\x1b[0m  \x1b[0;1mB\x1b[0m\n1"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
