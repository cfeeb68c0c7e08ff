package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"muster/llm"
)

// Next runs the tool that a wrapper is around.
type Next = func(context.Context, llm.Call) (llm.Result, error)

// Wrap puts f around t: f runs instead, and calls next to run t. The tool's spec stays as it is.
func Wrap(t llm.Tool, f func(ctx context.Context, c llm.Call, next Next) (llm.Result, error)) llm.Tool {
	if f == nil {
		return t
	}
	return wrapped{t, f}
}

// wrapped is a tool with the function around it.
type wrapped struct {
	llm.Tool
	f func(context.Context, llm.Call, Next) (llm.Result, error)
}

// fitted returns what Fit does.
func (w wrapped) fitted(input json.RawMessage) json.RawMessage { return Fit(w.Tool, input) }

// Run runs the wrapper around the tool. The result answers the call, whatever the wrapper returns.
func (w wrapped) Run(ctx context.Context, c llm.Call, progress func(string)) (llm.Result, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r, err := w.f(ctx, c, func(ctx context.Context, c llm.Call) (llm.Result, error) {
		return w.Tool.Run(ctx, c, progress)
	})
	r.ID = c.ID
	return r, err
}

// Recoverer is a tool whose outcome can be read from durable records. When the end of a process cuts off a
// call of any other tool, nobody knows what became of it, and the model is told to check. A call of a
// Recoverer is answered by Recover instead.
type Recoverer interface {
	llm.Tool
	// Recover answers a call that was cut off, from the records. With resume it may also continue what the
	// call had begun, and wait for its end. known is false when the records say nothing.
	Recover(ctx context.Context, c llm.Call, resume bool) (r llm.Result, known bool, err error)
}

// Recoverable makes a Recoverer of t, whose input is an In. f answers as Recover does. A call whose input
// is not an In has never run, so nothing is known of it.
func Recoverable[In any](
	t llm.Tool, f func(ctx context.Context, in In, resume bool) (r llm.Result, known bool, err error),
) Recoverer {
	return recoverable[In]{t, f}
}

// recoverable is a tool with the function that answers its calls which were cut off.
type recoverable[In any] struct {
	llm.Tool
	answer func(context.Context, In, bool) (llm.Result, bool, error)
}

// fitted returns what Fit does.
func (t recoverable[In]) fitted(input json.RawMessage) json.RawMessage { return Fit(t.Tool, input) }

// Recover answers a call that was cut off.
func (t recoverable[In]) Recover(ctx context.Context, c llm.Call, resume bool) (llm.Result, bool, error) {
	var in In
	if json.Unmarshal(c.Input, &in) != nil {
		return llm.Result{}, false, nil
	}
	r, known, err := t.answer(ctx, in, resume)
	r.ID = c.ID
	return r, known, err
}

// MaxOutput is how many characters of a tool's output a model gets at most.
const MaxOutput = 50_000

// Limit cuts the text of t's results to max characters, in the middle. The whole goes to keep, and the
// result names the path that keep returns. Without keep, or when it fails, the result says that the middle
// is lost. Output that is too large for memory must be cut by the tool itself: what fits passes here
// untouched.
func Limit(
	t llm.Tool, max int, keep func(ctx context.Context, call llm.Call, whole string) (path string, err error),
) llm.Tool {
	return Wrap(t, func(ctx context.Context, c llm.Call, next Next) (llm.Result, error) {
		r, err := next(ctx, c)
		if err != nil {
			return r, err
		}
		var whole strings.Builder
		var others []llm.Part
		for _, p := range r.Parts {
			if text, ok := p.(llm.Text); ok {
				whole.WriteString(text.Text)
			} else {
				others = append(others, p)
			}
		}
		text := whole.String()
		// The length in bytes is at least that in characters, so most results are not counted.
		if len(text) <= max || utf8.RuneCountInString(text) <= max {
			return r, nil
		}
		var where string
		if keep == nil {
			where = "the middle is lost"
		} else if path, err := keep(ctx, c, text); err != nil {
			where = "the whole could not be kept: " + ErrorText(err)
		} else {
			where = "the whole is in " + path
			r.Files = append(r.Files, path)
		}
		r.Parts = append([]llm.Part{llm.Text{Text: Cut(text, max, where)}}, others...)
		return r, nil
	})
}

// Cut returns the beginning and the end of text, at most max characters in all, with a line between them
// that says how much is missing and where it is. A text that fits is returned as it is.
func Cut(text string, max int, where string) string {
	total := utf8.RuneCountInString(text)
	if total <= max {
		return text
	}
	note := cutNote(total, total, where)
	room := max - utf8.RuneCountInString(note)
	if room < 2 {
		return strings.TrimSpace(note)
	}
	return CutMiddle(text, room/2, total, where)
}

// CutMiddle returns the first and the last n characters of text around the line of Cut. Text may lack a
// middle already: total is how many characters there were. The cuts are moved to the end of a line if that
// costs less than a tenth.
func CutMiddle(text string, n, total int, where string) string {
	head, tail := 0, len(text)
	for range n {
		_, first := utf8.DecodeRuneInString(text[head:])
		_, last := utf8.DecodeLastRuneInString(text[:tail])
		head, tail = head+first, tail-last
	}
	if line := strings.LastIndexByte(text[:head], '\n'); line > head-head/10 {
		head = line
	}
	if line := strings.IndexByte(text[tail:], '\n'); line >= 0 && line < (len(text)-tail)/10 {
		tail += line + 1
	}
	shown := utf8.RuneCountInString(text[:head]) + utf8.RuneCountInString(text[tail:])
	return text[:head] + cutNote(total-shown, total, where) + text[tail:]
}

// cutNote is the line that says how much is missing.
func cutNote(cut, total int, where string) string {
	return fmt.Sprintf("\n... %d of %d characters cut here; %s ...\n", cut, total, where)
}
