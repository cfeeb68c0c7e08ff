// Package agent has the tools that concern one agent alone: todo, the list of its own steps, and subagent, which does
// one thing in a conversation of its own so that the agent's stays short.
//
// A Todo is the list of one agent. NewSubagent makes the tool that starts a subagent with the Options of its agent.
// Neither keeps anything on disk: the list is restored from the conversation, and a subagent that a crash cuts off is
// lost with its conversation. Tools for files are in package code, those for the team in package teamtools.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

const (
	todoName = "todo"
	maxItem  = 500 // bytes of the text of an item
)

// The defaults of NewTodo.
const (
	defaultItems    = 20
	defaultReminder = 10
)

// The status of an item.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
)

// Todo is one agent's list. It is not stored: the conversation has every call that changed it, so Restore can make it
// again. It is safe for concurrent use.
type Todo struct {
	maxItems int
	// silentRounds is how many rounds of tools may pass without a call of todo, while the list has open items, before
	// the agent is reminded of it; below zero it never is.
	silentRounds int

	mu     sync.Mutex
	items  []Step
	silent int // rounds since the last call of todo or the last reminder
}

// Step is one step of the work. Status is pending, in_progress or completed.
type Step struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// todoInput is the input of todo. The whole list is given each time, so one call tells all of it: Restore needs only
// the last call that succeeded.
type todoInput struct {
	Items []Step `json:"items"`
}

// NewTodo returns an empty list, which may have so many items, and of which the agent is reminded after so many rounds
// of tools that do not use it. Zero values are the defaults: 20 items, 10 rounds. Below zero it is never reminded.
func NewTodo(items, reminder int) *Todo {
	return &Todo{maxItems: cmp.Or(items, defaultItems), silentRounds: cmp.Or(reminder, defaultReminder)}
}

// Tool returns the tool that replaces the list.
func (t *Todo) Tool() llm.Tool {
	return tool.New(todoName, prompt.Tool(todoName),
		t.replace, tool.Enum("items.status", pending, inProgress, completed))
}

// replace takes over the list of a call, unless it breaks a rule.
func (t *Todo) replace(_ context.Context, in todoInput) (llm.Result, error) {
	if problem := check(in.Items, t.maxItems); problem != "" {
		return llm.ErrorResult("%s", problem), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items, t.silent = in.Items, 0
	return tool.Text(t.text()), nil
}

// Owns reports whether c is a call of the list's tool. Who runs the rounds uses it to tell Round.
func (t *Todo) Owns(c llm.Call) bool { return c.Name == todoName }

// Steps returns the list that a call of the tool gives, and false for a call that is none of it or breaks a rule. The
// limit may have been another one when the call was made, so the number of steps is not checked: its result says
// whether it was taken.
func Steps(c llm.Call) ([]Step, bool) {
	var in todoInput
	if c.Name != todoName || json.Unmarshal(c.Input, &in) != nil || check(in.Items, len(in.Items)) != "" {
		return nil, false
	}
	return in.Items, true
}

// check says what is wrong with a list and what to do about it, or "" if nothing is wrong.
func check(items []Step, maxItems int) string {
	if len(items) > maxItems {
		return fmt.Sprintf("the list has %d items and may have %d: leave out what is done, or join steps",
			len(items), maxItems)
	}
	var busy []string
	for i, it := range items {
		switch {
		case strings.TrimSpace(it.Text) == "":
			return fmt.Sprintf("item %d has no text: say what is to be done", i+1)
		case len(it.Text) > maxItem:
			return fmt.Sprintf("item %d has %d bytes and may have %d: say it in one sentence", i+1, len(it.Text),
				maxItem)
		case it.Status != pending && it.Status != inProgress && it.Status != completed:
			return fmt.Sprintf("item %d has the status %q: it is %s, %s or %s",
				i+1, it.Status, pending, inProgress, completed)
		case it.Status == inProgress:
			busy = append(busy, strconv.Itoa(i+1))
		}
	}
	if len(busy) > 1 {
		return fmt.Sprintf("%d items are %s (%s): do one at a time", len(busy), inProgress, strings.Join(busy, ", "))
	}
	return ""
}

// text returns the list as its agent reads it. The caller holds mu.
func (t *Todo) text() string {
	if len(t.items) == 0 {
		return "The list is empty."
	}
	marks := map[string]string{pending: "[ ]", inProgress: "[>]", completed: "[x]"}
	var b strings.Builder
	for i, it := range t.items {
		fmt.Fprintf(&b, "%s %d %s\n", marks[it.Status], i+1, it.Text)
	}
	fmt.Fprintf(&b, "%d of %d completed", len(t.items)-t.open(), len(t.items))
	return b.String()
}

// Text returns the list as its agent reads it, or "" if it is empty.
func (t *Todo) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.items) == 0 {
		return ""
	}
	return t.text()
}

// Progress says how many steps of the list are done, of how many, and which one the agent is at: "" for none.
func (t *Todo) Progress() (done, of int, current string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, it := range t.items {
		if it.Status == inProgress {
			current = it.Text
		}
	}
	return len(t.items) - t.open(), len(t.items), current
}

// open returns how many items are not completed. The caller holds mu.
func (t *Todo) open() (n int) {
	for _, it := range t.items {
		if it.Status != completed {
			n++
		}
	}
	return n
}

// Round counts a round of tools, of which used says whether todo was one. If the agent has left an open list alone for
// too long, due is true and the agent is to read the reminder.
func (t *Todo) Round(used bool) (reminder string, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if due = t.isSilentTooLong(used); due {
		reminder = fmt.Sprintf("Your todo list has open items (%d) and you have not touched it for %d rounds: "+
			"bring it up to date.", t.open(), t.silentRounds)
	}
	return reminder, due
}

// isSilentTooLong counts a round, and reports whether a reminder is due. The next one is due after as many rounds
// again. The caller holds mu.
func (t *Todo) isSilentTooLong(used bool) bool {
	t.silent++
	if used || t.open() == 0 {
		t.silent = 0
	}
	if t.silent < t.silentRounds || t.silentRounds < 0 {
		return false
	}
	t.silent = 0
	return true
}

// State returns the list as Restore reads it, for a conversation that is replaced by a shorter one.
func (t *Todo) State() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, err := json.Marshal(t.items)
	if err != nil || len(t.items) == 0 {
		return nil // items are texts: there is no error
	}
	return state
}

// Restore makes the list, and the count of silent rounds, after a restart: from the State that the conversation began
// with, and from its messages. The list is that of the last call that succeeded.
func (t *Todo) Restore(state json.RawMessage, messages []llm.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items, t.silent = nil, 0
	if len(state) > 0 && (json.Unmarshal(state, &t.items) != nil || check(t.items, len(t.items)) != "") {
		t.items = nil // another version wrote it
	}
	var calls []llm.Call // of the last reply
	for _, m := range messages {
		if m.Role == llm.Assistant {
			calls = m.Calls()
			continue
		}
		used := false
		for _, p := range m.Parts {
			r, ok := p.(llm.Result)
			i := slices.IndexFunc(calls, func(c llm.Call) bool { return ok && c.ID == r.ID && t.Owns(c) })
			if i < 0 {
				continue
			}
			used = true
			if steps, ok := Steps(calls[i]); ok && !r.IsError {
				t.items = steps
			}
		}
		// A user message without calls before it is no round of tools.
		if len(calls) > 0 {
			t.isSilentTooLong(used)
		}
		calls = nil
	}
}
