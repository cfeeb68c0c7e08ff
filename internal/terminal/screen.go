package terminal

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/lineedit"
	"muster/internal/markdown"
	"muster/internal/text"
)

// inputPrompt stands before the first row of the input, and further rows are indented by its width. A search has a
// prompt of its own.
const inputPrompt = "> "

// maxInputRows limits the rows of the input that are shown at once.
const maxInputRows = 8

type (
	// printMsg says that something waits in the queue.
	printMsg struct{}
	editMsg  struct {
		text    string
		wasSaid bool // it was entered before
	}
	// clipboardMsg is what Options.Clipboard has returned.
	clipboardMsg struct{ text, said string }
	// menuMsg says that the menu may have other choices now.
	menuMsg   struct{}
	statusMsg struct {
		Status
		panicked any
	}
)

// screen is the bubbletea model: the state of the editor, the text to insert above it, and the status lines. bubbletea
// calls filter, Update and View from one goroutine, so only the fields below mu, which the drawing goroutine reads
// too, and columns need protection.
type screen struct {
	options Options
	queue   *queue[item]
	out     *output
	emit    func(Event) // reports what the user did; it never blocks

	// columns is the width of a status line. The goroutine that asks for the status reads it.
	columns atomic.Int64
	// isEditing says that the user's editor has the terminal.
	isEditing atomic.Bool
	// hasDraft says that something is typed, and lastKey when a key was pressed last, in nanoseconds of Unix.
	hasDraft atomic.Bool
	lastKey  atomic.Int64
	// width and height are the size of the terminal, as far as it can be used.
	width, height int
	input         lineedit.Buffer
	// firstRow is the first row of the input that is shown.
	firstRow  int
	history   history
	search    search
	questions questions
	menu      openMenu
	// isEdit says that the input was made of what editMsg has put in.
	isEdit bool
	// readsClipboard says that Options.Clipboard has not returned yet.
	readsClipboard bool
	status         Status // as the caller gave it, not cut yet
	above          int    // the rows above the input in the last view
	stream         markdown.Writer
	thinking       thinking
	block          itemKind // of the last row that was inserted
	endsBlank      bool     // that row is blank
	// insertRows are the rows to be inserted above the view, oldest first.
	insertRows []string
	// waitingRows were printed while a streamed row grows.
	waitingRows  []string
	waitingSince time.Time
	// closed and suspended say that nothing is to be drawn: the terminal is the shell's, for good or until it continues
	// the program.
	closed, suspended bool
	// insertedSinceView says that rows were inserted since the last View, so the next frame must differ from the last
	// one.
	insertedSinceView bool

	mu sync.Mutex
	// latestView is the geometry of the last View.
	latestView geometry
	// drawnView is the geometry of the frame on the terminal. bubbletea may skip frames, so it can be older than
	// latestView.
	drawnView geometry
	// insertedRows is how many rows were inserted that no frame has followed on the terminal.
	insertedRows int
}

// geometry is where a frame put its rows and its cursor. It is needed when the terminal wraps a frame anew after a
// resize.
type geometry struct {
	widths []int // columns of each row
	x, y   int   // the cursor
	// mark makes two frames differ that would otherwise be equal; see View.
	mark bool
	// prefix is a sequence to be written right before the next frame.
	prefix string
}

// newScreen returns a screen without a size; resize sets it. In tests out is nil.
func newScreen(o Options, q *queue[item], out *output, event func(Event)) *screen {
	s := &screen{options: o, queue: q, out: out, emit: event, history: newHistory(o.History),
		stream: markdown.Writer{Colour: o.Colour}}
	if out != nil {
		out.beforeFrame = s.beforeFrame
	}
	return s
}

// resize sets the size of the terminal, but assumes at least 8 columns and 2 rows.
func (s *screen) resize(width, height int) {
	width, height = sizeOf(width, height)
	s.width, s.height = max(width, 8), max(height, 2)
	s.columns.Store(int64(s.width - 1))
}

// sizeOf returns the size of a terminal. Some, such as serial lines, report 0: they count as 80 x 24.
func sizeOf(width, height int) (columns, rows int) {
	if width == 0 || height == 0 {
		return 80, 24
	}
	return width, height
}

// maxViewHeight is the number of rows that the view may have. Were an inserted text and the view together higher than
// the screen, parts of the view would scroll away with the text. A question may have more of the screen where no text
// waits for its frame.
func (s *screen) maxViewHeight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions.current() != nil {
		return max(maxViewHeight(s.height), s.height-3-s.insertedRows)
	}
	return maxViewHeight(s.height)
}

func maxViewHeight(height int) int { return max(1, height*3/5) }

// StatusRows returns how many status lines a terminal of a height shows beside one row of input.
func StatusRows(height int) int { return max(0, maxViewHeight(height)-1) }

// Init asks for the ground of the terminal.
func (s *screen) Init() tea.Cmd { return tea.RequestBackgroundColor }

// filter sees messages before bubbletea does. A text has to be inserted above the view and taken out of the view in
// one step; otherwise the user would see it twice or not at all.
func (s *screen) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case printMsg:
		return s.nextInsertion()
	case tea.WindowSizeMsg:
		msg.Width, msg.Height = sizeOf(msg.Width, msg.Height)
		if msg.Width < s.width {
			s.compensateRewrap(msg.Width)
		}
		return msg
	}
	return msg
}

// nextInsertion takes texts from the queue and returns the message that inserts the next rows above the view. It
// inserts no more rows than fit above the view; the others follow in further messages. It returns nil when nothing is
// to be done.
func (s *screen) nextInsertion() tea.Msg {
	if s.closed || s.isEditing.Load() || s.out != nil && !s.out.hasDrawn.Load() {
		return nil
	}
	items, last := s.queue.take()
	for _, i := range items {
		s.apply(i)
	}
	if last {
		s.apply(item{kind: flushed})
		s.keepUnsent()
	}
	if len(s.insertRows) == 0 {
		if last {
			s.closed = true
			return tea.QuitMsg{}
		}
		return statusMsg{Status: s.status} // no rows, but a streamed row may have grown
	}
	s.mu.Lock()
	high := max(maxViewHeight(s.height), len(s.latestView.widths), len(s.drawnView.widths))
	n := min(len(s.insertRows), max(1, s.height-high-1))
	s.insertedRows += n
	s.mu.Unlock()
	text := insertMark + strings.Join(s.insertRows[:n], "\n")
	if s.insertRows = s.insertRows[n:]; len(s.insertRows) > 0 || last {
		s.queue.nudge()
	}
	s.insertedSinceView = true
	return tea.Println(text)()
}

// keepUnsent shows what stands in the input of a terminal that closes, so that it is not lost.
func (s *screen) keepUnsent() {
	if strings.TrimSpace(s.input.Value()) != "" {
		s.apply(item{kind: printed, text: "this was not sent:\n" + s.input.Value()})
	}
	s.clearInput()
}

// apply turns one queued text into rows to insert, or keeps it until the streamed line has ended.
func (s *screen) apply(i item) {
	width := s.width - 1 // the last column is left free: a row that ends there leaves the cursor in doubt
	switch i.kind {
	case echoed:
		const indent = len(inputPrompt)
		for n, row := range text.WrapColoured(i.text, width-indent, false) {
			prompt := inputPrompt
			if n > 0 {
				prompt = strings.Repeat(" ", indent)
			}
			s.insert(echoed, s.paint("1", prompt+row))
		}
	case printed:
		rows := text.WrapColoured(i.text, width, s.options.Colour)
		if !s.stream.IsGrowing() {
			s.insert(printed, rows...)
			return
		}
		if len(s.waitingRows) == 0 {
			s.waitingSince = time.Now()
		}
		s.waitingRows = append(s.waitingRows, rows...)
	case thought:
		if s.stream.IsGrowing() {
			s.insert(streamed, s.stream.End(width)...)
			s.releaseWaiting()
		}
		s.thinking.add(i.text)
	case streamed:
		s.endThinking()
		// line by line, so that what waits comes at the first line's end
		for _, piece := range strings.SplitAfter(i.text, "\n") {
			s.insert(streamed, s.stream.Add(piece, width)...)
			if !s.stream.IsGrowing() {
				s.releaseWaiting()
			}
		}
	case flushed:
		s.endThinking()
		s.insert(streamed, s.stream.End(width)...)
		if s.block == streamed { // another text begins a block of its own
			s.block = flushed
		}
		s.releaseWaiting()
	}
}

// insert adds rows to those that are inserted. A blank row stands between blocks of different kinds.
func (s *screen) insert(kind itemKind, rows ...string) {
	if kind == printed && s.endsBlank && len(rows) > 0 && rows[0] == "" {
		rows = rows[1:]
	}
	if len(rows) == 0 {
		return
	}
	if s.block != kind && s.block != none && rows[0] != "" && !s.endsBlank {
		s.insertRows = append(s.insertRows, "")
	}
	s.block, s.endsBlank = kind, rows[len(rows)-1] == ""
	s.insertRows = append(s.insertRows, rows...)
}

// endThinking folds what the model has thought to one row.
func (s *screen) endThinking() {
	if row := s.thinking.fold(); row != "" {
		s.insert(printed, s.paint(faint, row))
	}
}

// releaseWaiting inserts the printed rows that waited for the streamed line.
func (s *screen) releaseWaiting() {
	s.insert(printed, s.waitingRows...)
	s.waitingRows = nil
}

// Update applies one message to the model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	defer func() { s.hasDraft.Store(!s.input.IsEmpty()) }()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.resize(msg.Width, msg.Height)
	case statusMsg:
		if msg.panicked != nil {
			panic(fmt.Sprintf("the status function: %v", msg.panicked))
		}
		s.status = msg.Status
		pressed := s.questions.pressed
		if s.questions.update(msg.Questions); s.questions.pressed == "" { // it was for a question that waits no longer
			s.input.Insert(pressed)
		}
		if len(s.waitingRows) > 0 && time.Since(s.waitingSince) >= statusInterval {
			s.releaseWaiting()
			s.queue.nudge()
		}
	case tea.BackgroundColorMsg:
		if s.options.OnGround != nil {
			s.options.OnGround(!msg.IsDark())
		}
	case tea.ResumeMsg:
		s.suspended = false
	case askMsg:
		s.typePressed()
		s.questions.modal = &msg.question
		s.menu.close()
	case effectMsg:
		s.takeEffect(msg.press)
	case tea.PasteMsg:
		s.lastKey.Store(time.Now().UnixNano())
		s.typePressed()
		s.menu.close()
		s.endSearch()
		text := cleanPaste(msg.Content)
		if s.options.Paste != nil {
			text = clean(s.options.Paste(text))
		}
		s.input.Paste(text)
	case clipboardMsg:
		s.readsClipboard = false
		if msg.said != "" {
			s.queue.put(item{kind: printed, text: msg.said})
		}
		s.endSearch()
		s.input.Insert(clean(msg.text))
	case editMsg:
		// The draft is kept before the input is replaced, so that nothing typed is lost.
		s.history.visit(msg.text, s.input.Value())
		s.clearInput()
		s.input.Set(msg.text)
		s.isEdit = msg.wasSaid
	case editedMsg:
		s.takeEdited(msg)
	case menuMsg:
		s.refreshMenu()
	case tea.KeyPressMsg:
		s.lastKey.Store(time.Now().UnixNano())
		return s, s.handleKey(msg)
	}
	return s, nil
}

// View draws the growing streamed row, a rule, the status lines, the question, the input and its menu. Where they do
// not fit, status lines are left out first; then the question and the input show fewer rows. A low or narrow terminal
// has neither rule nor frame.
//
// While something is typed the rows above it do not get fewer, so that it does not move.
func (s *screen) View() tea.View {
	if s.closed || s.suspended {
		s.setLatestView(geometry{})
		return tea.NewView("")
	}
	isFramed := s.isFramed()
	inputRows, x, y := s.inputRows()
	hint, q := "", s.questions.current()
	if isEmpty := s.input.IsEmpty() && !s.search.active; isEmpty && (q == nil || !q.IsModal) {
		hint = s.options.Hint
		inputRows[0] += s.paint(faint, ansi.TruncateWc(s.status.Empty, s.inputWidth()-len(inputPrompt), "…"))
	}
	if isFramed {
		inputRows = frame{code: faint, foot: hint}.draw(s, inputRows, s.width-1)
		x, y = x+2, y+1
	}
	menu := s.menuRows(s.maxViewHeight() - len(inputRows))
	room := s.maxViewHeight() - len(inputRows) - len(menu)
	question, keyX, keyY := s.questionRows(room)
	room -= len(question)
	// A block that grows leaves half of the room to the status.
	half := max((room+1)/2, room-len(s.status.Lines)-1)
	rows := s.stream.Growing(s.width - 1)
	if len(rows) > 0 && len(rows) < half && !s.endsBlank && s.block != none && s.block != streamed {
		rows = append([]string{""}, rows...) // as there will be when the block is inserted
	}
	rows = rows[max(len(rows)-max(half, 0), 0):]
	for _, row := range s.thinking.growingRows(s.width-1, half-len(rows)) {
		rows = append(rows, s.paint(faint, row))
	}
	room -= len(rows)
	if status := s.statusRowsIn(room - 1); isFramed && len(status) > 0 {
		rows = append(append(rows, s.paint(faint, strings.Repeat("─", s.width-1))), status...)
	} else {
		rows = append(rows, s.statusRowsIn(room)...)
	}
	if isFramed && len(rows) == 0 && room > 0 && !s.endsBlank && s.block != none {
		rows = []string{""} // between what was printed and the frame
	}
	if rows = append(rows, question...); len(question) > 0 && !q.IsModal && s.input.IsEmpty() && !s.search.active {
		x, y = keyX, keyY-len(question) // the cursor is where a key answers
	}
	if spare := s.maxViewHeight() - len(rows) - len(inputRows) - len(menu); !s.input.IsEmpty() {
		rows = append(make([]string, max(min(s.above-len(rows), spare), 0)), rows...)
	}
	s.above = len(rows)
	y += len(rows)
	rows = append(append(rows, inputRows...), menu...)

	g := geometry{x: min(x, s.width-1), y: y}
	for i, r := range rows {
		rows[i] = ansi.TruncateWc(r, s.width-1, "")
		g.widths = append(g.widths, ansi.StringWidthWc(rows[i]))
	}
	// bubbletea skips a frame that equals the last one, and would leave the cursor where it inserted. A colour reset at
	// the end, which nobody sees, makes the frame another one.
	s.mu.Lock()
	g.mark = s.latestView.mark
	if s.insertedSinceView {
		g.mark = !s.drawnView.mark
	}
	s.insertedSinceView = false
	s.mu.Unlock()
	s.setLatestView(g)
	content := strings.Join(rows, "\n")
	if g.mark {
		content += "\x1b[m"
	}
	v := tea.NewView(content)
	v.Cursor, v.WindowTitle = tea.NewCursor(g.x, g.y), clean(s.status.Title)
	return v
}

// isFramed reports whether there is room for a frame around the input.
func (s *screen) isFramed() bool { return s.height >= 16 && s.width >= 30 }

// inputWidth is the columns of a row of the input with its prompt.
func (s *screen) inputWidth() int {
	if s.isFramed() {
		return s.width - 5
	}
	return s.width - 1
}

// inputRows returns the rows of the input that are shown, and where the cursor is in them.
func (s *screen) inputRows() (rows []string, x, y int) {
	prompt, input := inputPrompt, &s.input
	if s.search.active {
		prompt = s.search.prompt()
	}
	prompt = ansi.TruncateWc(prompt, s.width/2, "")
	l := lineedit.NewLayout(input, ansi.StringWidthWc(prompt), s.inputWidth())
	most := s.maxViewHeight()
	if s.isFramed() {
		most -= 2
	}
	high := min(len(l.Rows), maxInputRows, most)
	s.firstRow = min(max(s.firstRow, l.Y-high+1), l.Y, len(l.Rows)-high)
	return l.Draw(input, prompt, s.firstRow, s.firstRow+high), l.X, l.Y - s.firstRow
}

// statusRowsIn returns the status lines, at most room of them. The last row then says how many are left out.
func (s *screen) statusRowsIn(room int) []string {
	var rows []string
	for _, line := range s.status.Lines {
		rows = append(rows, text.Coloured(strings.TrimSuffix(line, "\n"), s.options.Colour)+"\x1b[m")
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

// setLatestView notes how the view stands, for those who print between two frames.
func (s *screen) setLatestView(g geometry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latestView = g
}

// beforeFrame returns what must be written right before the next frame. The output calls it from bubbletea's drawing
// goroutine.
func (s *screen) beforeFrame(inserted bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	prefix := s.drawnView.prefix
	// A view that got lower than the row of the cursor is drawn too low by bubbletea 2.0.9: it takes the cursor to
	// be in the last row of the new view. An insertion before it has put the cursor into the first row.
	if below := s.drawnView.y - max(0, len(s.latestView.widths)-1); below > 0 && !inserted {
		prefix += ansi.CursorUp(below)
	}
	s.drawnView = s.latestView
	if inserted {
		s.insertedRows = 0
	}
	return prefix
}

// compensateRewrap prepares for a narrower terminal. Most terminals wrap the rows of the view anew, which puts the
// cursor further below the view's first row than bubbletea knows. The next frame first moves it up by the rows that
// were gained.
func (s *screen) compensateRewrap(width int) {
	if !Rewraps() || width <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gained := 0
	for _, w := range s.drawnView.widths[:min(s.drawnView.y, len(s.drawnView.widths))] {
		gained += max(0, (w-1)/width)
	}
	gained += s.drawnView.x / width
	s.drawnView.prefix = ""
	if gained > 0 {
		s.drawnView.prefix = ansi.CursorUp(gained)
	}
}
