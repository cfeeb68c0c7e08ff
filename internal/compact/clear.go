package compact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/internal/text"
	"muster/llm"
)

// Change puts a part in the place of another one of the same kind, with the same id: a shorter result, or a call with
// a shorter input. Its JSON is stored in transcripts.
type Change struct {
	Message int       `json:"message"` // its index
	Part    int       `json:"part"`    // its index in the message
	Now     llm.Parts `json:"now"`     // one part
}

// Rules say what Clear leaves whole.
type Rules struct {
	// Kept is the size in tokens of the newest results that stay whole; the one that crosses it stays as well. Results
	// that the model has not read yet stay in any case.
	Kept int
	// Tools are the tools of the calls.
	Tools []llm.Spec
	// Files returns the files that a call reads whole, or in part, and those that it writes. nil: no call does either.
	Files func(llm.Call) (reads, writes []string)
}

// The sizes from which clearing is worth it.
const (
	minCleared = 40   // tokens that the line in place of a result must win
	maxInput   = 1000 // bytes of a text in the input of an older call
	keptInput  = 200  // bytes that stay of a longer one
	maxReason  = 120  // bytes of an error that stay
)

// Clear returns the changes that make older results and inputs short, and about how many tokens they free. Left whole
// are the newest results, those of tools that last (llm.Spec.Lasting), and the newest read of each file that is also
// written, because the model needs it for its next edit. A part that was cleared before is not changed again.
func (r Rules) Clear(messages []llm.Message) (changes []Change, saved int) {
	whole, calls := r.whole(messages), []llm.Call(nil)
	for i, m := range messages {
		if m.Role == llm.Assistant {
			calls = m.Calls()
			continue
		}
		for j, p := range m.Parts {
			old, ok := p.(llm.Result)
			if !ok || whole[[2]int{i, j}] || j >= len(calls) {
				continue
			}
			line := r.line(calls[j], old)
			if won := PartTokens(old.Parts) - PartTokens(line.Parts); won >= minCleared {
				changes, saved = append(changes, Change{i, j, llm.Parts{line}}), saved+won
			}
		}
		changes, saved = r.clearInputs(messages, i, whole, changes, saved)
	}
	return changes, saved
}

// CutNewest returns the changes that cut the results which the model has not read yet, so that they have about so many
// tokens together, and about how many tokens that wins. It is for results that alone are too large for the window.
func CutNewest(messages []llm.Message, most int) (changes []Change, saved int) {
	last := len(messages) - 1
	if last < 1 {
		return nil, 0
	}
	share := most / max(len(messages[last-1].Calls()), 1)
	for j, p := range messages[last].Parts {
		if r, ok := p.(llm.Result); ok && PartTokens(r.Parts) > share {
			was := PartTokens(r.Parts)
			r.Parts = llm.Parts{llm.Text{Text: Shorten(cmp.Or(r.Text(), "(an image)"), share)}}
			changes, saved = append(changes, Change{last, j, llm.Parts{r}}), saved+was-PartTokens(r.Parts)
		}
	}
	return changes, saved
}

// clearInputs adds the changes of the calls that the results in a user message answer.
func (r Rules) clearInputs(messages []llm.Message, at int, whole map[[2]int]bool, changes []Change, saved int) (
	[]Change, int) {
	if at == 0 {
		return changes, saved
	}
	nth := -1
	for j, p := range messages[at-1].Parts {
		call, ok := p.(llm.Call)
		if !ok {
			continue
		}
		if nth++; whole[[2]int{at, nth}] {
			continue
		}
		if short := shortInput(call.Input); short != nil {
			saved += TextTokens(string(call.Input)) - TextTokens(string(short))
			// What the provider has sealed with the call tells the old input.
			call.Input, call.Opaque = short, nil
			changes = append(changes, Change{at - 1, j, llm.Parts{call}})
		}
	}
	return changes, saved
}

// whole returns the places of the results that stay whole.
func (r Rules) whole(messages []llm.Message) map[[2]int]bool {
	whole, newer, read, written := map[[2]int]bool{}, 0, map[string]bool{}, map[string]bool{}
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role != llm.User {
			continue
		}
		calls := messages[i-1].Calls()
		for j := len(messages[i].Parts) - 1; j >= 0; j-- {
			result, ok := messages[i].Parts[j].(llm.Result)
			if !ok || j >= len(calls) {
				continue
			}
			whole[[2]int{i, j}] = newer < r.Kept || i == len(messages)-1 || r.spec(calls[j].Name).Lasting
			newer += PartTokens(result.Parts)
			if r.Files == nil {
				continue
			}
			reads, writes := r.Files(calls[j])
			for _, f := range writes {
				written[f] = true
			}
			for _, f := range reads {
				if written[f] && !read[f] {
					whole[[2]int{i, j}] = true
				}
				read[f] = true
			}
		}
	}
	return whole
}

// spec returns the spec of the tool with the name, or the zero Spec.
func (r Rules) spec(name string) llm.Spec {
	if i := slices.IndexFunc(r.Tools, func(s llm.Spec) bool { return s.Name == name }); i >= 0 {
		return r.Tools[i]
	}
	return llm.Spec{}
}

// line returns the result that stands in the place of another one: its size, and how to get it again. The call before
// it says what it was.
func (r Rules) line(call llm.Call, old llm.Result) llm.Result {
	again := "it was done; repeat it only for its output"
	switch {
	case len(old.Files) > 0:
		again = "the whole is in " + strings.Join(old.Files, ", ")
	case r.spec(call.Name).OnlyReads(call.Input):
		again = "call it again if needed"
	}
	why, _, _ := strings.Cut(old.Text(), "\n")
	if old.IsError {
		again = text.FirstBytes(why, maxReason)
	}
	old.Parts = llm.Parts{llm.Text{Text: fmt.Sprintf("[%d bytes cleared: %s]", old.Parts.Size(), again)}}
	return old
}

// shortInput returns the input with its long texts cut, or nil if it has none.
func shortInput(input json.RawMessage) json.RawMessage {
	if len(input) <= maxInput {
		return nil
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil
	}
	cut := false
	value = cutTexts(value, &cut)
	short, err := json.Marshal(value)
	if err != nil || !cut {
		return nil
	}
	return short
}

// cutTexts cuts the long texts in a JSON value, and sets cut if there was one.
func cutTexts(value any, cut *bool) any {
	switch v := value.(type) {
	case string:
		if len(v) > maxInput {
			*cut = true
			kept := text.FirstBytes(v, keptInput)
			return fmt.Sprintf("%s [cleared: %d bytes more]", kept, len(v)-len(kept))
		}
	case []any:
		for i := range v {
			v[i] = cutTexts(v[i], cut)
		}
	case map[string]any:
		for name := range v {
			v[name] = cutTexts(v[name], cut)
		}
	}
	return value
}

// Apply returns the messages with the changes made. The messages that it was given do not change. A change that fits
// nothing is left out: after an entry of a transcript was lost, the indexes are those of other parts.
func Apply(messages []llm.Message, changes []Change) []llm.Message {
	out, copied := slices.Clone(messages), map[int]bool{}
	for _, c := range changes {
		if c.Message < 0 || c.Message >= len(out) || c.Part < 0 || c.Part >= len(out[c.Message].Parts) ||
			len(c.Now) != 1 || idOf(out[c.Message].Parts[c.Part]) != idOf(c.Now[0]) || idOf(c.Now[0]) == "" {
			continue
		}
		if m := &out[c.Message]; !copied[c.Message] {
			m.Parts, copied[c.Message] = slices.Clone(m.Parts), true
		}
		out[c.Message].Parts[c.Part] = c.Now[0]
	}
	return out
}

// idOf returns the kind and the id of a call or a result, and "" for any other part.
func idOf(p llm.Part) string {
	switch p := p.(type) {
	case llm.Call:
		return "call " + p.ID + " " + p.Name
	case llm.Result:
		return "result " + p.ID
	}
	return ""
}
