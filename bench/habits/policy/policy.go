// Package policy plays models that know only the tools of another program: Claude Code, Codex or pi. Such a model
// reads neither the prompts nor the descriptions that it is sent. It makes the calls of its habit for one task, one
// step after the other, and reacts to results by a few rules:
//
//   - An error that names a field which the tool has and the call has not: the call again, with that name.
//   - An error that lists other tools: the same call of the first of them.
//   - An error that asks for the file to be read first: read it, then the call again.
//   - Any other error: the other form of the call, if the habit has one, and else go on.
//
// A command that ran and failed is no error, but an answer. After the last step the model stops with words, and answers
// a reminder with a call of the tool that it names.
//
// Read in this order: policy.go, habits.go.
package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"muster/llm"
)

// Call is a call as the other program's model writes it. Other is another form, nil if the habit has none.
type Call struct {
	Tool  string
	Input map[string]any
	Other *Call
}

// Habit is what a model does for a task: the calls of each turn. Read returns its call that reads a file.
type Habit struct {
	Steps [][]Call
	Words string // at the end
	Read  func(path string) Call
}

// maxAgain is how often a call is made again in another form.
const maxAgain = 2

// Model plays a habit once. It is safe for concurrent use.
type Model struct {
	habit Habit

	mu      sync.Mutex
	step    int
	turn    int
	pending map[string]attempt // by the id of the call
	Refused []string           // what was answered to calls that did nothing
}

// attempt is a call that waits for its result. then is what is called after it.
type attempt struct {
	Call
	again int
	then  *Call
}

// New returns a model that plays a habit.
func New(h Habit) *Model { return &Model{habit: h} }

// Reply makes the next step.
func (m *Model) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn++
	var again []attempt
	isAnswer := false
	said := ""
	if n := len(r.Messages); n > 0 {
		for _, part := range r.Messages[n-1].Parts {
			switch part := part.(type) {
			case llm.Result:
				a, isOurs := m.pending[part.ID]
				if isAnswer = true; isOurs {
					again = append(again, m.react(a, part, r.Tools)...)
				}
			case llm.Text:
				said = part.Text
			}
		}
	}
	switch {
	case len(again) > 0:
	case m.step < len(m.habit.Steps):
		for _, c := range m.habit.Steps[m.step] {
			again = append(again, attempt{Call: c})
		}
		m.step++
	case !isAnswer:
		again = m.reminded(said, r.Tools)
	}
	m.pending = map[string]attempt{}
	reply := llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant}}
	if len(again) == 0 {
		reply.Message.Parts = []llm.Part{llm.Text{Text: m.habit.Words}}
		return reply, nil
	}
	reply.Stop = llm.StopTools
	for i, a := range again {
		input, err := json.Marshal(a.Input)
		if err != nil {
			return llm.Reply{}, err
		}
		id := fmt.Sprintf("call_%d_%d", m.turn, i)
		m.pending[id] = a
		reply.Message.Parts = append(reply.Message.Parts, llm.Call{ID: id, Name: a.Tool, Input: input})
	}
	return reply, nil
}

var (
	// ranAndFailed is what stands behind the output of a command that did run.
	ranAndFailed = regexp.MustCompile(`\[exit \d+|\[killed with`)
	readFirst    = regexp.MustCompile(`(?i)\bread\b.*\b(first|again|before)\b`)
	quoted       = regexp.MustCompile("[\"`]([A-Za-z_-]+)[\"`]")
	otherTool    = regexp.MustCompile(`There are: ([a-z_]+)`)
)

// react returns what is called because of a result.
func (m *Model) react(a attempt, r llm.Result, tools []llm.Spec) []attempt {
	text := r.Text()
	if !r.IsError || ranAndFailed.MatchString(text) {
		if a.then != nil {
			return []attempt{{Call: *a.then, again: a.again}}
		}
		return nil
	}
	m.Refused = append(m.Refused, text)
	if a.again == maxAgain {
		return nil
	}
	next := attempt{Call: a.Call, again: a.again + 1}
	if renamed := rename(a.Call, text, tools); renamed != nil {
		next.Input = renamed
		return []attempt{next}
	}
	if found := otherTool.FindStringSubmatch(text); found != nil {
		next.Tool = found[1]
		return []attempt{next}
	}
	if path, ok := pathOf(a.Call); ok && m.habit.Read != nil && readFirst.MatchString(text) {
		return []attempt{{Call: m.habit.Read(path), again: maxAgain, then: &next.Call}}
	}
	if a.Other != nil {
		next.Call = *a.Other
		return []attempt{next}
	}
	return nil
}

// rename returns the input with a field under the name that an error asks for: the error quotes it, some tool has it,
// and the call has not. The field that it replaces is one that the error quotes, too.
func rename(c Call, text string, tools []llm.Spec) map[string]any {
	wanted, wrong := "", ""
	for _, found := range quoted.FindAllStringSubmatch(text, -1) {
		name := found[1]
		_, isGiven := c.Input[name]
		isField := slices.ContainsFunc(tools, func(s llm.Spec) bool { return hasField(s, name) })
		switch {
		case isGiven && wrong == "":
			wrong = name
		case !isGiven && isField && wanted == "":
			wanted = name
		}
	}
	if wanted == "" || wrong == "" {
		return nil
	}
	input := maps.Clone(c.Input)
	input[wanted] = input[wrong]
	delete(input, wrong)
	return input
}

func hasField(s llm.Spec, name string) bool {
	var schema struct{ Properties map[string]json.RawMessage }
	return json.Unmarshal(s.Schema, &schema) == nil && schema.Properties[name] != nil
}

// pathOf returns the file that a call is about.
func pathOf(c Call) (path string, ok bool) {
	for _, name := range []string{"file_path", "path"} {
		if path, ok = c.Input[name].(string); ok {
			return path, true
		}
	}
	return "", false
}

// reminded returns the call of the tool that a reminder names, with the last words in each field that it needs.
func (m *Model) reminded(text string, tools []llm.Spec) []attempt {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		at := slices.IndexFunc(tools, func(s llm.Spec) bool { return s.Name == word && strings.Contains(word, "_") })
		if at < 0 {
			continue
		}
		var schema struct{ Required []string }
		_ = json.Unmarshal(tools[at].Schema, &schema) // none, then
		input := map[string]any{}
		for _, field := range schema.Required {
			input[field] = m.habit.Words
		}
		return []attempt{{Call: Call{Tool: word, Input: input}}}
	}
	return nil
}
