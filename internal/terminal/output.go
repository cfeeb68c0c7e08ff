package terminal

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// insertMark begins a text that is to be inserted above the view, so that output recognises it. A terminal would read
// it like "\x1b[m".
const insertMark = "\x1b[0;0m"

// unwantedSequences removes what bubbletea writes unasked and no line editor needs. The answers to its queries could
// be read as typed text, by us or by the shell after us. The keyboard protocols mean other commands to old terminals
// and stay on after a crash. The shape of the cursor is the user's choice.
var unwantedSequences = strings.NewReplacer(
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

// maxHold is how long an inserted text waits for the frame that belongs to it, which is more than the time between two.
const maxHold = 50 * time.Millisecond

// output is the terminal as bubbletea sees it. An inserted text is held back until the next frame, and both go out in
// one write. So the user never sees a streamed row twice, nor the cursor in a wrong place.
//
// The file is not embedded, because its WriteString and ReadFrom would bypass Write.
type output struct {
	file *os.File
	// onFirstFrame is called after the first frame. Nothing may be inserted before it.
	onFirstFrame func()
	// hasDrawn says that there has been a frame. Text inserted before the first one would be lost.
	hasDrawn atomic.Bool

	mu sync.Mutex
	// held is inserted text that waits for its frame.
	held []byte
	// insertedSinceFrame says that text was inserted since the last frame. It may have been written without one.
	insertedSinceFrame bool
	// beforeFrame is asked at each frame for what must go before it. It is set before the first frame.
	beforeFrame func(inserted bool) string
}

// newOutput returns the output to a terminal.
func newOutput(f *os.File, started func()) *output { return &output{file: f, onFirstFrame: started} }

// The following methods make the output a terminal's file for the library, which asks for its descriptor.
func (o *output) Read(p []byte) (int, error) { return o.file.Read(p) }
func (o *output) Close() error               { return o.file.Close() }
func (o *output) Fd() uintptr                { return o.file.Fd() }

// Write holds back an inserted text, and writes a frame together with the text held back before it.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.Contains(p, []byte(insertMark)) {
		if len(o.held) == 0 {
			time.AfterFunc(maxHold, o.flush)
		}
		o.held = append(o.held, bytes.Replace(p, []byte(insertMark), nil, 1)...)
		o.insertedSinceFrame = true
		return len(p), nil
	}
	frame := unwantedSequences.Replace(string(p))
	if frame == "" {
		return len(p), nil
	}
	err := o.emit(o.beforeFrame(o.insertedSinceFrame) + string(o.held) + frame)
	o.held, o.insertedSinceFrame = nil, false
	if !o.hasDrawn.Swap(true) && o.onFirstFrame != nil {
		o.onFirstFrame()
	}
	return len(p), err
}

// emit writes a whole frame, bracketed so that terminals with synchronized output show it at once. Others ignore the
// brackets.
func (o *output) emit(s string) error {
	if s == "" {
		return nil
	}
	_, err := o.file.WriteString(ansi.SetModeSynchronizedOutput + s + ansi.ResetModeSynchronizedOutput)
	return err
}

// ring writes a sequence between two frames. The lock keeps it out of the middle of one, where it could end a sequence
// of the frame.
func (o *output) ring(sequence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.file.WriteString(sequence)
}

// flush writes an inserted text whose frame did not come in time.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.emit(string(o.held))
	o.held = nil
}

// input is the file that keys are read from. bubbletea stops reading at a hangup without saying so; onError says it.
type input struct {
	*os.File
	onError func()
}

// Read reads from the terminal. A terminal that is gone gives an error for ever, so the first one is reported.
func (i *input) Read(p []byte) (int, error) {
	n, err := i.File.Read(p)
	if err != nil {
		i.onError()
	}
	return n, err
}
