package teammate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster/internal/prompt"
	"muster/llm"
)

// phase is what a member counts within one WORK phase.
type phase struct {
	started  time.Time
	asked    time.Time
	turns    int
	extra    bool // the turn limit was met once, and one more phase granted
	stop     llm.Stop
	words    string // of the last reply
	over     bool   // a tool ended it: idle, a complete_task that landed
	reminded bool   // that a task is still in hand
	cut      int    // replies cut at max_tokens
	pending  map[string]llm.Call
	last     [sha256.Size]byte // the last counted call with its result
	same     int               // how often it came in a row
	warned   bool
	parks    int  // how often the member was parked for its model
	replies  int  // of the model, since the conversation was started afresh
	fresh    bool // the conversation was started afresh
	todo     bool // todo was called in this round
	held     bool // the user stopped it, or a limit did while the user was there: nothing goes on before they speak
	spins    int  // waits of the lead that said at once why, with nothing done in between
}

// Counting of repeated calls: a reminder at three, the end of the phase at six.
const (
	repeatWarn = 3
	repeatEnd  = 6
)

var (
	errTurns = errors.New("the turn limit of this phase")
	errLoop  = errors.New("a loop: the same call with the same result six times in a row")
)

func (p *phase) calls(cs []llm.Call) {
	p.pending = map[string]llm.Call{}
	for _, c := range cs {
		p.pending[c.ID] = c
	}
}

// answered counts calls that repeat with the same result. A tool that polls is not counted.
func (p *phase) answered(r llm.Result, polls func(tool string) bool) {
	c, ok := p.pending[r.ID]
	if !ok || polls(c.Name) {
		return
	}
	p.spins = 0
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\x00%s\x00", c.Name, c.Input)
	for _, part := range r.Parts {
		_ = json.NewEncoder(&b).Encode(part)
	}
	sum := sha256.Sum256(b.Bytes())
	if sum == p.last {
		p.same++
	} else {
		p.last, p.same, p.warned = sum, 1, false
	}
}

// between acts on the limits between two rounds of tools.
func (m *Member) between(ctx context.Context) error {
	limits := m.profile().Limits
	m.mu.Lock()
	p := &m.phase
	loops, warn := p.same >= repeatEnd, p.same >= repeatWarn && !p.warned
	p.warned = p.warned || warn
	full := p.turns >= limits.Turns && limits.Turns > 0
	more := full && !p.extra
	if more {
		p.extra, p.turns = true, 0
	}
	used := p.todo
	p.todo = false
	m.mu.Unlock()
	switch {
	case loops:
		return errLoop
	case warn:
		return m.say(ctx, nil, prompt.Reminder("You made the same call three times with the same result. Do something else."))
	case more:
		return m.say(ctx, nil, prompt.Reminder("You have used %d turns. You get as many once more: finish, or give the task back with release_task and say what is left.", limits.Turns))
	case full:
		return errTurns
	}
	if text, due := m.todo.Round(used); due {
		return m.say(ctx, nil, prompt.Reminder("%s", text))
	}
	return nil
}
