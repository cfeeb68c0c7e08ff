package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// toolCalls are the calls of tools of the lead that a conversation has shown, so that the user can open one.
type toolCalls struct {
	gists map[string]string // of those that run, by the id of the call
	ended []muster.Event    // of those that have a line; the first is number 1
}

// leastSaidSeconds is how long a call must take for its line to say it.
const leastSaidSeconds = 1

// ownLine are the tools whose effect has a line of its own, or that do nothing but wait.
var ownLine = []string{"wait", "task_create", "claim_task", "complete_task", "release_task", "send_message",
	"broadcast", "spawn_teammate", "review_plan", "request_shutdown"}

// isToolLine reports whether an event is of a call of the lead that has a line.
func isToolLine(e muster.Event) bool {
	return e.Member == muster.Lead && e.Text("call") != "" && !bySubagent(e) &&
		!slices.Contains(ownLine, text.OneLine(e.Text("tool")))
}

// toolLine returns the line of a call of the lead that has ended, with its number. It is not shown where there is none.
func (p *Progress) toolLine(e muster.Event) (l Line) {
	id, tool := e.Text("call"), text.OneLine(e.Text("tool"))
	if !isToolLine(e) {
		return l
	}
	// Other members have lines of their own below: only what the lead does is part of the conversation.
	if p.calls.gists == nil {
		p.calls.gists = map[string]string{}
	}
	switch e.Kind {
	case journal.ToolStarted:
		p.calls.gists[id] = text.OneLine(e.Text("text"))
	case journal.ToolEnded:
		// A call that was refused before it ran has no beginning, and is shown without what it does.
		p.calls.ended = append(p.calls.ended, e)
		l = Line{Who: tool, Show: true, isCall: true, name: text.CutColumns(p.calls.gists[id], 80)}
		counts := ""
		if p.options.Below != nil {
			counts, l.below = p.options.Below(e, len(p.calls.ended))
		}
		said := []string{l.name, counts}
		if took := e.Number("seconds"); took >= leastSaidSeconds {
			said = append(said, seconds(took))
		}
		switch problem := text.OneLine(e.Text("error")); {
		case problem != "" && len(l.below) > 0: // they say why
			said, l.Tone = append(said, "failed"), Bad
		case problem != "":
			said, l.Tone = append(said, Because("error", text.CutColumns(problem, 120))), Bad
		}
		said = append(said, fmt.Sprintf("[%d]", len(p.calls.ended)))
		l.Text = strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), "  ")
		delete(p.calls.gists, id)
	}
	return l
}

// Recall numbers a call of the lead that has ended before the progress began, and shows its line if isShown. started
// has no fields where its beginning is not known.
func (p *Progress) Recall(started, ended muster.Event, isShown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toolLine(started)
	if !isShown {
		if isToolLine(ended) {
			p.calls.ended = append(p.calls.ended, ended)
			delete(p.calls.gists, ended.Text("call"))
		}
		return
	}
	if l := p.toolLine(ended); l.Show {
		l.isOld = true
		p.enqueue(queuedLine{at: muster.Time(ended.At), line: l})
	}
}

// Call returns the end of a call of the lead by the number in its line; 0 is the last one. ok is false where there is
// none.
func (p *Progress) Call(number int) (ended muster.Event, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number == 0 {
		number = len(p.calls.ended)
	}
	if number < 1 || number > len(p.calls.ended) {
		return muster.Event{}, false
	}
	return p.calls.ended[number-1], true
}

// ToolCall returns a call of a tool whole: what went in, by its names, and what came out.
func ToolCall(p Paint, tool string, input json.RawMessage, output string, hasEnded, isError bool) string {
	w := new(strings.Builder)
	fmt.Fprintln(w, p.Bold(text.OneLine(tool)))
	indented := func(words string) string {
		return strings.ReplaceAll(strings.TrimRight(text.Clean(words), "\n"), "\n", "\n    ")
	}
	var values map[string]any
	if json.Unmarshal(input, &values) != nil { // a model may write anything
		values = map[string]any{"input": string(input)}
	}
	// In the order of their names: a model writes them in any order.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words, isText := values[name].(string)
		if !isText {
			encoded, _ := json.Marshal(values[name]) // it was decoded from JSON
			words = string(encoded)
		}
		// Text of several lines stands below its name.
		if strings.Contains(strings.TrimSpace(words), "\n") {
			words = "\n" + words
		}
		fmt.Fprintf(w, "  %s: %s\n", p.In(Faint, text.OneLine(name)), indented(words))
	}
	title, tone := "output", Faint
	switch {
	case !hasEnded:
		title, output = "it has not answered yet", ""
	case isError:
		title, tone = "error", Bad
	case strings.TrimSpace(output) == "":
		title = "no output"
	}
	fmt.Fprintf(w, "  %s", p.In(tone, title))
	if strings.TrimSpace(output) != "" {
		fmt.Fprintf(w, "\n    %s", indented(output))
	}
	return w.String()
}
