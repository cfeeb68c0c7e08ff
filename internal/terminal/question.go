package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/text"
)

const (
	// AnswerAfter is how long a question must have stood without typing before a key answers it.
	AnswerAfter = time.Second
	// EffectDelay is the time between a key and its effect. A further key meanwhile turns both into text.
	EffectDelay = 600 * time.Millisecond
	// reaskAfter is the time after which a question that was answered, and still waits, is shown again.
	reaskAfter = 5 * time.Second
	// maxQuestionRows limits the rows between the upper and the lower edge of a question's frame. They also have at
	// most two thirds of the screen.
	maxQuestionRows = 30
)

// Question stands in a frame above the input. One key on an empty input answers it.
type Question struct {
	// ID tells one question from another.
	ID string
	// Title and Note stand in the upper edge of the frame, at its left and right end.
	Title, Note string
	// Lines stand in the frame. Long ones are wrapped, and only the first rows are shown.
	Lines []string
	// Brief stands in the place of the first line where that has not enough room; "": the line is cut.
	Brief string
	// Keys answer the question.
	Keys []Key
	// IsModal says that the user has asked for the question: a key answers at once, and other keys do nothing.
	IsModal bool
}

// Key answers a question.
type Key struct {
	Name  string // as bubbletea names it
	Label string // what it does, such as "yes"; "": it is not shown
	Long  string // the same where there is more room; "": the label
	// Settles says that the question waits no longer after the key.
	Settles bool
}

// Answer is the key with which the user has answered a question.
type Answer struct{ ID, Key string }

// Leave is Ctrl-D on an empty line: the user wants to leave, and the terminal is still there.
type Leave struct{}

func (Answer) event() {}
func (Leave) event()  {}

// questions are the questions that wait for the user, and what the user has done about them.
type questions struct {
	waiting []Question // as Options.Status returned them
	modal   *Question
	// shown is the ID of the question that is shown, and since when it has been.
	shown string
	since time.Time
	// isDrawn says that the terminal has room for what the question is about.
	isDrawn bool
	// typed is when a key was pressed last.
	typed time.Time
	// pressed is the key whose effect comes at the end of EffectDelay; "" is none. presses counts them.
	pressed string
	presses int
	// sent is when each question was settled.
	sent map[string]time.Time
}

type (
	// askMsg asks a modal question.
	askMsg struct{ question Question }
	// effectMsg is the end of EffectDelay after a key.
	effectMsg struct{ press int }
)

// Ask shows a modal question in the place of those that wait, until one of its keys answers it.
func (t *Terminal) Ask(q Question) {
	q.IsModal = true
	go t.program.Send(askMsg{q}) // the caller does not wait for the terminal
}

// update takes the questions that wait now. The one that is shown stays as long as it waits.
func (q *questions) update(waiting []Question) {
	now := time.Now()
	q.waiting = slices.DeleteFunc(slices.Clone(waiting), func(x Question) bool {
		at, isSent := q.sent[x.ID]
		return isSent && now.Sub(at) < reaskAfter
	})
	if q.index() < 0 {
		q.show(0)
	}
}

// index returns which of the waiting questions is shown, or -1.
func (q *questions) index() int {
	return slices.IndexFunc(q.waiting, func(x Question) bool { return x.ID == q.shown })
}

// show shows the waiting question at an index. No key that was pressed before counts for it.
func (q *questions) show(i int) {
	q.shown, q.pressed, q.since = "", "", time.Now()
	if i < len(q.waiting) {
		q.shown = q.waiting[i].ID
	}
}

// current returns the question that is shown, or nil.
func (q *questions) current() *Question {
	if q.modal != nil {
		return q.modal
	}
	if i := q.index(); i >= 0 {
		return &q.waiting[i]
	}
	return nil
}

// handleQuestionKey takes a key where it answers the question that is shown. isDone says that the key needs no further
// handling.
func (s *screen) handleQuestionKey(name string) (isDone bool, cmd tea.Cmd) {
	q := &s.questions
	current, now := q.current(), time.Now()
	defer func() { q.typed = now }()
	if current == nil {
		return false, nil
	}
	isAnswer := slices.ContainsFunc(current.Keys, func(x Key) bool { return x.Name == name })
	switch {
	case current.IsModal:
		if isAnswer {
			q.modal = nil
			s.emit(Answer{ID: current.ID, Key: name})
		}
		return true, nil
	case q.pressed != "":
		first := q.pressed
		q.pressed = ""
		if name == "esc" {
			return true, nil
		}
		s.input.Insert(first)
		return false, nil
	case !s.input.IsEmpty() || s.search.active:
		return false, nil
	case name == "tab" && len(q.waiting) > 1:
		q.show((q.index() + 1) % len(q.waiting))
		return true, nil
	case isAnswer && q.isDrawn && now.Sub(q.since) >= AnswerAfter && now.Sub(q.typed) >= AnswerAfter:
		q.pressed = name
		q.presses++
		press := q.presses
		return true, tea.Tick(EffectDelay, func(time.Time) tea.Msg { return effectMsg{press} })
	}
	return false, nil
}

// takeEffect answers the question with the key that was pressed, unless a further key came.
func (s *screen) takeEffect(press int) {
	q := &s.questions
	current := q.current()
	if q.pressed == "" || press != q.presses || current == nil || current.IsModal {
		return
	}
	s.emit(Answer{ID: current.ID, Key: q.pressed})
	if slices.ContainsFunc(current.Keys, func(k Key) bool { return k.Name == q.pressed && k.Settles }) {
		if q.sent == nil {
			q.sent = map[string]time.Time{}
		}
		q.sent[current.ID] = time.Now()
	}
	q.pressed = ""
	q.update(q.waiting)
}

// typePressed makes a key whose effect has not come yet the beginning of a text.
func (s *screen) typePressed() {
	s.input.Insert(s.questions.pressed)
	s.questions.pressed, s.questions.typed = "", time.Now()
}

// questionRows draws the question in at most height rows of the screen. Without enough rows for a frame, what is
// asked and the keys stand on one row each. The first key stands at x in row y.
func (s *screen) questionRows(height int) (rows []string, x, y int) {
	q := s.questions.current()
	s.questions.isDrawn = height >= 2
	if q == nil || height <= 0 {
		return nil, 0, 0
	}
	title, note, next := clean(q.Title), q.Note, ""
	if n := len(s.questions.waiting); n > 1 && !q.IsModal {
		note = strings.TrimPrefix(note+" · ", " · ") + fmt.Sprintf("%d of %d", s.questions.index()+1, n)
		next = "Tab next"
	}
	width := s.width - 1
	var body, rest []string
	for i, line := range q.Lines {
		if i == 0 {
			body = text.WrapColoured(line, width-4, s.options.Colour)
		} else {
			rest = append(rest, text.WrapColoured(line, width-4, s.options.Colour)...)
		}
	}
	state, inline, keys := s.questionKeys(q, width-4, next)
	if height < 4 || width < 16 { // what is asked, and the keys
		if len(body) == 0 {
			body = []string{title}
		}
		rows = []string{s.paint(s.options.Accent, ansi.TruncateWc(ansi.Strip(body[0]), width, "…")),
			ansi.TruncateWc(cmp.Or(state, inline), width, "")}
		return rows[:min(height, 2)], 0, min(height, 2) - 1
	}
	// Where there is room each key has a row; else they stand in the edge or, where that is too short, in few rows.
	most := min(height-2, maxQuestionRows, s.height*2/3)
	switch spare := most - len(body) - len(rest) - len(keys); {
	case spare < 0 && ansi.StringWidthWc(inline) <= width-6:
		state, keys = cmp.Or(state, inline), nil
	case spare < 0:
		keys = text.Packed(strings.Split(inline, " · "), " · ", width-4)
		for i, row := range keys {
			keys[i] = s.paint(s.options.Accent, row)
		}
	case spare > 0 && len(body) > 0:
		keys, rest = slices.Insert(keys, 0, ""), slices.Insert(rest, 0, make([]string, min(spare-1, len(rest), 1))...)
	}
	keys = keys[:min(len(keys), max(most-1, 0))]
	// The keys stay, and as far as there is room why it is asked: the long text gives way.
	most = max(most-len(keys), 1)
	rest = rest[:min(len(rest), max(most-2, 0))]
	if most -= len(rest); len(body) > most && q.Brief != "" {
		body = text.WrapColoured(q.Brief, width-4, s.options.Colour)
	}
	if len(body) > most && most > 1 {
		more := fmt.Sprintf("... %d more rows", len(body)-most+1)
		body = append(body[:most-1], s.paint(faint, more))
	}
	body = slices.Concat(body[:min(len(body), most)], rest, keys)
	body = body[:min(len(body), height-2)]
	rows = frame{s.options.Accent, title, note, cmp.Or(state, next)}.draw(s, body, width)
	if len(keys) == 0 {
		return rows, 3, len(rows) - 1
	}
	return rows, 2, max(len(rows)-1-len(slices.DeleteFunc(keys, func(key string) bool { return key == "" })), 1)
}

// questionKeys returns the keys in one line that ends with more, and in rows of a width. state stands in the edge below
// the rows: what the key that was pressed will do, or why no key answers.
func (s *screen) questionKeys(q *Question, width int, more string) (state, inline string, rows []string) {
	wide := 1
	if q.IsModal {
		wide = len("Esc")
	}
	for _, k := range q.Keys {
		if k.Label == "" {
			continue
		}
		if k.Name == s.questions.pressed {
			state = "Esc takes it back: " + k.Label + " in a moment (any other key makes it text)"
		}
		name := strings.Replace(k.Name, "esc", "Esc", 1)
		inline += name + " " + k.Label + " · "
		name = s.paint(s.options.Accent, name) + strings.Repeat(" ", wide-len(name)+2)
		for _, row := range text.Wrap(cmp.Or(k.Long, k.Label), width-wide-2) {
			rows = append(rows, name+row)
			name = strings.Repeat(" ", wide+2)
		}
	}
	if !s.input.IsEmpty() && !q.IsModal {
		state = "keys answer when the line below is empty"
	}
	return state, strings.TrimSuffix(inline+more, " · "), rows
}
