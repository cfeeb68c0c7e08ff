package terminal

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

const inputRows = 8

type (
	printMsg  struct{} // something waits in the queue
	statusMsg struct {
		lines    []string
		panicked any
	}
)

// screen is the model. bubbletea calls filter, Update and View from one goroutine; the rest says what it shares.
type screen struct {
	options Options
	queue   *queue
	out     *output
	event   func(Event)
	now     func() time.Time

	columns       atomic.Int64 // the width, for the one who asks for the status
	width, height int
	input         buffer
	top           int // the first row of the input that is shown
	history       history
	search        search
	tabbed        bool // the last key was Tab
	status        []string
	stream        stream
	rows          []string // to be inserted, oldest first
	waiting       []string // printed while a streamed row grows
	since         time.Time
	closed        bool
	away          bool // suspended
	inserted      bool // since the last View

	mu     sync.Mutex
	latest geometry // of the last View
	drawn  geometry // of what stands on the terminal
}

// geometry is where a frame has put what: needed when the terminal wraps it anew at a resize.
type geometry struct {
	widths []int // columns of each row
	x, y   int   // the cursor
	mark   bool  // see View
	prefix string
}

func newScreen(o Options, q *queue, out *output, event func(Event)) *screen {
	if o.Prompt = strings.ReplaceAll(clean(o.Prompt), "\n", " "); o.Prompt == "" {
		o.Prompt = "> "
	}
	s := &screen{options: o, queue: q, out: out, event: event, now: time.Now, history: newHistory(o.History)}
	if out != nil {
		out.first = s.beforeFrame
	}
	return s
}

func (s *screen) resize(width, height int) {
	s.width, s.height = max(width, 8), max(height, 2)
	s.columns.Store(int64(s.width - 1))
}

// highest is the number of rows that the view may have; half a screen and more is left for inserting above it.
// Were an inserted text and the view together higher than the screen, parts of the view would scroll away with it.
func (s *screen) highest() int { return max(1, s.height*3/5) }

func (s *screen) Init() tea.Cmd { return nil }

// filter sees messages before bubbletea does: a text to insert has to be put in and taken out of the view in one step.
func (s *screen) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case printMsg:
		return s.insert()
	case tea.WindowSizeMsg:
		if msg.Width < s.width {
			s.rewrapped(msg.Width)
		}
	}
	return msg
}

// insert takes from the queue and gives the message that inserts the next rows, nil if there are none.
func (s *screen) insert() tea.Msg {
	if s.closed || s.out != nil && !s.out.drawn() {
		return nil
	}
	items, last := s.queue.take()
	for _, i := range items {
		s.take(i)
	}
	if last {
		s.take(item{kind: flushed})
	}
	if len(s.rows) == 0 {
		if last {
			s.closed = true
			return tea.QuitMsg{}
		}
		return statusMsg{lines: s.status} // no rows, but a streamed row may have grown
	}
	n := min(len(s.rows), max(1, s.height-s.highest()-1))
	text := mark + strings.Join(s.rows[:n], "\n")
	if s.rows = s.rows[n:]; len(s.rows) > 0 || last {
		s.queue.nudge()
	}
	s.inserted = true
	return tea.Println(text)()
}

func (s *screen) take(i item) {
	width := s.width - 1 // the last column is left free: a row that ends there leaves the cursor in doubt
	switch i.kind {
	case echoed:
		s.rows = append(s.rows, paint(i.text, width, s.options.Colour)...)
	case printed:
		rows := paint(i.text, width, s.options.Colour)
		if !s.stream.open() {
			s.rows = append(s.rows, rows...)
			return
		}
		if len(s.waiting) == 0 {
			s.since = s.now()
		}
		s.waiting = append(s.waiting, rows...)
	case streamed:
		// line by line, so that what waits comes at the first line's end
		for _, piece := range strings.SplitAfter(i.text, "\n") {
			s.rows = append(s.rows, s.stream.add(piece, width)...)
			if !s.stream.open() {
				s.release()
			}
		}
	case flushed:
		s.rows = append(s.rows, s.stream.flush()...)
		s.release()
	}
}

func (s *screen) release() {
	s.rows = append(s.rows, s.waiting...)
	s.waiting = nil
}

func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.resize(msg.Width, msg.Height)
	case statusMsg:
		if msg.panicked != nil {
			panic(fmt.Sprintf("the status function: %v", msg.panicked))
		}
		s.status = msg.lines
		if len(s.waiting) > 0 && s.now().Sub(s.since) >= statusEvery {
			s.release()
			s.queue.nudge()
		}
	case tea.ResumeMsg:
		s.away = false
	case tea.PasteMsg:
		s.tabbed = false
		s.leaveSearch()
		s.input.paste(pasted(msg.Content))
	case tea.KeyPressMsg:
		return s, s.key(msg)
	}
	return s, nil
}

// View draws: the growing streamed row, the status, the input. What does not fit is cut from the status, then the
// input shows the rows around the cursor.
func (s *screen) View() tea.View {
	if s.closed || s.away {
		s.note(geometry{})
		return tea.NewView("")
	}
	prompt, input := s.options.Prompt, &s.input
	if s.search.on {
		prompt = s.search.prompt()
	}
	prompt = ansi.TruncateWc(prompt, s.width/2, "")
	l := lay(input, ansi.StringWidthWc(prompt), s.width-1)
	high := min(len(l.rows), inputRows, s.highest())
	s.top = min(max(s.top, l.y-high+1), l.y, len(l.rows)-high)

	var rows []string
	room := s.highest() - high
	if s.stream.open() && room > 0 {
		rows = append(rows, shown(s.stream.growing))
		room--
	}
	rows = append(rows, s.statusRows(room)...)
	y := len(rows) + l.y - s.top
	rows = append(rows, l.render(input, prompt, s.top, s.top+high)...)

	g := geometry{x: min(l.x, s.width-1), y: y}
	for i, r := range rows {
		rows[i] = ansi.TruncateWc(r, s.width-1, "")
		g.widths = append(g.widths, ansi.StringWidthWc(rows[i]))
	}
	// bubbletea skips a frame that equals the last one, and would leave the cursor where it inserted.
	s.mu.Lock()
	g.mark = s.latest.mark
	if s.inserted {
		g.mark = !s.drawn.mark
	}
	s.inserted = false
	s.mu.Unlock()
	s.note(g)
	content := strings.Join(rows, "\n")
	if g.mark {
		content += "\x1b[m"
	}
	v := tea.NewView(content)
	v.Cursor = tea.NewCursor(g.x, g.y)
	return v
}

func (s *screen) statusRows(room int) []string {
	var rows []string
	for _, line := range s.status {
		rows = append(rows, shown(coloured(strings.TrimSuffix(line, "\n"), s.options.Colour))+"\x1b[m")
	}
	if len(rows) > room {
		more := len(rows) - max(0, room-1)
		rows = rows[:max(0, room-1)]
		if room > 0 {
			rows = append(rows, fmt.Sprintf("... %d more", more))
		}
	}
	return rows
}

func (s *screen) note(g geometry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = g
}

// beforeFrame is called by the output, from bubbletea's drawing goroutine.
func (s *screen) beforeFrame(inserted bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefix := s.drawn.prefix
	// A view that got lower than the row of the cursor is drawn too low by bubbletea 2.0.9: it takes the cursor to
	// be in the last row of the new view. An insertion before it has put the cursor into the first row.
	if below := s.drawn.y - max(0, len(s.latest.widths)-1); below > 0 && !inserted {
		prefix += ansi.CursorUp(below)
	}
	s.drawn = s.latest
	return prefix
}

// before has something written right before the next frame.
func (s *screen) before(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn.prefix = prefix
}

// rewrapped prepares for a narrower terminal. Most terminals have wrapped the rows of the view anew: the cursor is
// further below the view's first row than bubbletea knows, by the rows that were gained.
func (s *screen) rewrapped(width int) {
	if !rewraps() || width <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gained := 0
	for i, w := range s.drawn.widths {
		if i < s.drawn.y {
			gained += max(0, (w-1)/width)
		}
	}
	if len(s.drawn.widths) > 0 {
		gained += s.drawn.x / width
	}
	s.drawn.prefix = ""
	if gained > 0 {
		s.drawn.prefix = ansi.CursorUp(gained)
	}
}
