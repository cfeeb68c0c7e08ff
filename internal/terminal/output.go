package terminal

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// mark begins a text that is inserted above the view. As a sequence it means nothing that "\x1b[m" would not.
const mark = "\x1b[0;0m"

// notOurs is what bubbletea writes on its own and no line editor needs: queries whose answers would be read as
// typed text (here after a late answer, or by the shell after the end), keyboard protocols that old terminals take
// for other commands and that stay on after a crash, and a cursor shape that is the user's to choose.
var notOurs = strings.NewReplacer(
	ansi.RequestModeSynchronizedOutput, "",
	ansi.RequestModeUnicodeCore, "",
	ansi.ResetModeUnicodeCore, "",
	ansi.RequestKittyKeyboard, "",
	ansi.PushKittyKeyboard(1), "",
	ansi.PopKittyKeyboard(1), "",
	ansi.SetModifyOtherKeys2, "",
	ansi.ResetModifyOtherKeys, "",
	ansi.SetCursorStyle(1), "",
	ansi.SetTabEvery8Columns, "",
)

// heldAtMost is how long an inserted text waits for the frame that belongs to it (one comes 60 times a second).
const heldAtMost = 50 * time.Millisecond

// output is the terminal as bubbletea sees it. An inserted text is held until the next frame, and both go out as
// one write: the user never sees a streamed row twice, nor the cursor away from its place.
//
// The file is not embedded: its WriteString and ReadFrom would go past Write.
type output struct {
	file    *os.File
	started func() // called after the first frame: nothing may be inserted before it

	mu       sync.Mutex
	held     []byte
	inserted bool                       // since the last frame; it may have gone out alone
	first    func(inserted bool) string // asked at each frame for what must go before it
	frames   int
}

func newOutput(f *os.File, started func()) *output { return &output{file: f, started: started} }

func (o *output) Read(p []byte) (int, error)        { return o.file.Read(p) }
func (o *output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }
func (o *output) Close() error                      { return o.file.Close() }
func (o *output) Fd() uintptr                       { return o.file.Fd() }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Contains(p, []byte(mark)) {
		if len(o.held) == 0 {
			time.AfterFunc(heldAtMost, o.flush)
		}
		o.held = append(o.held, bytes.Replace(p, []byte(mark), nil, 1)...)
		o.inserted = true
		return len(p), nil
	}
	frame := notOurs.Replace(string(p))
	if frame == "" {
		return len(p), nil
	}
	var before string
	if o.first != nil {
		before = o.first(o.inserted)
	}
	err := o.emit(before + string(o.held) + frame)
	o.held, o.inserted = nil, false
	if o.frames++; o.frames == 1 && o.started != nil {
		o.started()
	}
	return len(p), err
}

// emit asks the terminal to show a whole frame at once; one that does not know the mode ignores it.
func (o *output) emit(s string) error {
	if s == "" {
		return nil
	}
	_, err := o.file.WriteString(ansi.SetModeSynchronizedOutput + s + ansi.ResetModeSynchronizedOutput)
	return err
}

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.emit(string(o.held))
	o.held = nil
}

// drawn says whether there has been a frame.
func (o *output) drawn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.frames > 0
}

// input is the terminal's other direction. bubbletea ends reading at a hangup without a word.
type input struct {
	*os.File
	gone func()
}

func (i *input) Read(p []byte) (int, error) {
	n, err := i.File.Read(p)
	if err != nil {
		i.gone()
	}
	return n, err
}
