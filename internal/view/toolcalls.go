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
	ids   []string          // of those that have a line; the first is number 1
	// counts and rows are what Options.Below has returned last.
	counts string
	rows   []string
}

// leastSaidSeconds is how long a call must take for its line to say it.
const leastSaidSeconds = 1

// ownLine are the tools whose effect has a line of its own, or that do nothing but wait.
var ownLine = []string{"wait", "task_create", "claim_task", "complete_task", "release_task", "send_message",
	"broadcast", "spawn_teammate", "review_plan", "request_shutdown"}

// toolLine returns the line of a call of the lead that has ended, with its number. It is not shown where there is none.
func (p *Progress) toolLine(e muster.Event) (l Line) {
	id, tool := e.Text("call"), text.OneLine(e.Text("tool"))
	if e.Member != muster.Lead || id == "" || bySubagent(e) || slices.Contains(ownLine, tool) {
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
		p.calls.ids = append(p.calls.ids, id)
		l = Line{Who: tool, Show: true, isCall: true, name: text.CutColumns(p.calls.gists[id], 80)}
		said := []string{l.name, p.calls.counts}
		if took := e.Number("seconds"); took >= leastSaidSeconds {
			said = append(said, seconds(took))
		}
		l.below = p.calls.rows
		switch problem := text.OneLine(e.Text("error")); {
		case problem != "" && len(l.below) > 0: // they say why
			said, l.Tone = append(said, "failed"), Bad
		case problem != "":
			said, l.Tone = append(said, Because("error", text.CutColumns(problem, 120))), Bad
		}
		said = append(said, fmt.Sprintf("[%d]", len(p.calls.ids)))
		l.Text = strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), "  ")
		delete(p.calls.gists, id)
	}
	return l
}

// HasRowsBelow reports whether the end of a call may have rows below its line: what it has changed or printed.
func HasRowsBelow(ended muster.Event) bool {
	return slices.Contains([]string{"bash", "edit_file", "write_file", "apply_patch"}, ended.Text("tool"))
}

// Recall shows the line of a call of the lead that has ended before the progress began. started has no fields where its
// beginning is not known.
func (p *Progress) Recall(started, ended muster.Event) {
	counts, rows := p.below(ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls.counts, p.calls.rows = counts, rows
	p.toolLine(started)
	if l := p.toolLine(ended); l.Show {
		l.isOld = true
		p.enqueue(queuedLine{at: muster.Time(ended.At), line: l})
	}
}

// below returns what Options.Below does for the end of a call of the lead.
func (p *Progress) below(e muster.Event) (counts string, rows []string) {
	if p.options.Below == nil || e.Kind != journal.ToolEnded || e.Member != muster.Lead || bySubagent(e) {
		return "", nil
	}
	return p.options.Below(e) // which may read a long file, so it is called without the lock
}

// Call returns the id of a call of the lead by the number in its line; 0 is the last one. It returns "" where there is
// none.
func (p *Progress) Call(number int) (id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number == 0 {
		number = len(p.calls.ids)
	}
	if number < 1 || number > len(p.calls.ids) {
		return ""
	}
	return p.calls.ids[number-1]
}

// ToolCall returns a call of a tool whole: what went in, by its names, and what came out.
func ToolCall(p Paint, tool string, input json.RawMessage, output string, hasEnded, isError bool) string {
	w := new(strings.Builder)
	fmt.Fprintln(w, p.code("1", text.OneLine(tool)))
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
