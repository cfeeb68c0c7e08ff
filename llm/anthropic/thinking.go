package anthropic

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"muster/llm"
	"muster/llm/catalogue"
)

// opaqueThinking is the Opaque of an llm.Thinking: everything of the block except its text, and what the block is bound
// to. Its JSON is stored in transcripts.
type opaqueThinking struct {
	Type      string `json:"type"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
	Bound     string `json:"bound,omitempty"` // see binding; "" in transcripts of older versions
}

// The kinds of blocks of thinking. The text of a redacted one is encrypted, and only the vendor can read it.
const (
	thinking = "thinking"
	redacted = "redacted_thinking"
)

// binding tells which thinking may go back. The vendor binds thinking to the model and the account that made it, and
// to everything that stood before it: it refuses a request, or throws the thinking away, after a change of the model or
// the key, of the system prompt or the tools, and after a summary has taken the place of earlier messages. So each
// block is stored with a hash of all that, and goes back only where the hash is the same.
//
// https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
type binding struct {
	provider string
	before   hash.Hash // of what stands before the next block, without thinking
	places   []string  // to which thinking of the present message can be bound: it may be several replies in a row
}

// newBinding returns the binding at the beginning of the messages of a request.
func (m *model) newBinding(p *request) *binding {
	b := &binding{provider: m.peer.Provider, before: sha256.New()}
	b.write(m.o.Model, m.o.Key)
	for _, s := range p.System {
		b.add("system", s)
	}
	for _, t := range p.Tools {
		b.write(t.Name, t.Description, string(t.InputSchema))
	}
	return b
}

// write adds texts to what stands before.
func (b *binding) write(texts ...string) {
	for _, s := range texts {
		_, _ = fmt.Fprintf(b.before, "%d:", len(s)) // a hash takes everything
		_, _ = io.WriteString(b.before, s)
	}
}

// add adds a block to what stands before.
func (b *binding) add(role llm.Role, c block) {
	b.write(string(role), c.Type, c.Text, c.ID, c.ToolUseID, c.Name, string(c.Input), strconv.FormatBool(c.IsError),
		c.Source["media_type"], c.Source["data"], strconv.Itoa(len(c.Content)))
	for _, inner := range c.Content {
		b.add(role, inner)
	}
}

// here returns what the thinking of a reply to what stands before is bound to.
func (b *binding) here() string { return hex.EncodeToString(b.before.Sum(nil)[:8]) }

// blocks returns the block that p was made from, unchanged, or none if it may not go back. Thinking of another
// endpoint, and thinking without a signature, is not sent.
func (b *binding) blocks(p llm.Thinking) []block {
	var s opaqueThinking
	if p.Provider != b.provider || json.Unmarshal(p.Opaque, &s) != nil {
		return nil
	}
	if s.Bound != "" && !slices.Contains(b.places, s.Bound) {
		return nil
	}
	switch {
	case s.Type == thinking && s.Signature != "":
		return []block{{Type: thinking, Signature: s.Signature, Thinking: &p.Text}}
	case s.Type == redacted && s.Data != "":
		return []block{{Type: redacted, Data: s.Data}}
	}
	return nil
}

// byDefault is the effort of a model that is known to think, where the user names none.
const byDefault = "medium"

// style returns how the model is asked for thinking, and with which effort. A model of which nothing is known is asked
// only if the user names an effort, and then in the style that its name tells.
func (m *model) style() (style catalogue.Style, effort string) {
	known := m.o.Known.Thinking
	switch {
	case known.Style == catalogue.Adaptive || known.Style == catalogue.Budget:
		effort = cmp.Or(m.o.Effort, byDefault)
	case m.o.Effort == "":
		return catalogue.None, ""
	default:
		effort, known = m.o.Effort, catalogue.Thinking{Style: catalogue.Budget}
		if hasAdaptiveThinking(m.o.Model) {
			known.Style, known.Efforts = catalogue.Adaptive, []string{"low", "medium", "high", "xhigh", "max"}
		}
	}
	if known.Style == catalogue.Adaptive {
		effort = known.Level(effort)
	}
	return known.Style, effort
}

// minBudget is the smallest budget that the API takes.
const minBudget = 1024

// setEffort asks for adaptive thinking.
func (m *model) setEffort(p *request, effort string) {
	p.Thinking = map[string]any{"type": "adaptive"}
	if m.peer.IsVendor && m.o.Known.Name != "" {
		// Newer models show nothing of their thinking otherwise, and what they say between calls is thinking.
		p.Thinking["display"] = "summarized"
	}
	p.OutputConfig = map[string]string{"effort": effort}
}

// budget returns the tokens for thinking that an older model is asked for, or 0.
func (m *model) budget(p *request) int {
	style, effort := m.style()
	if style != catalogue.Budget || isTurnWithoutThinking(p.Messages) {
		return 0
	}
	budgets := map[string]int{"minimal": minBudget, "low": 2048, "high": 16384, "xhigh": 16384, "max": 16384}
	return cmp.Or(budgets[effort], 4096)
}

// limit returns the limit of the reply, to which the API counts the budget, so that the reply would be shorter by it.
func (m *model) limit(p *request) int {
	limit := p.wanted + m.budget(p)
	if most := m.o.Known.MaxOutput; most > 0 {
		limit = min(limit, most) // the API refuses more
	}
	return limit
}

// setLimit sets the limit of the reply, and a budget for thinking that fits in it.
func (m *model) setLimit(p *request, limit int) {
	p.MaxTokens = limit
	if m.budget(p) == 0 {
		return
	}
	p.Thinking = nil
	if budget := min(m.budget(p), limit-min(p.wanted, limit/2)); budget >= minBudget {
		p.Thinking = map[string]any{"type": "enabled", "budget_tokens": budget}
	}
}

// isTurnWithoutThinking reports whether the model is in the middle of a turn, between calls, that does not begin with
// thinking, because another model began it. Models with a budget refuse to think then.
func isTurnWithoutThinking(messages []message) bool {
	begin := "" // the type of the block with which the turn begins
	for _, msg := range messages {
		switch {
		case msg.Role == llm.Assistant:
			begin = cmp.Or(begin, msg.Content[0].Type)
		case msg.Content[0].Type != "tool_result":
			begin = ""
		}
	}
	return begin != "" && begin != thinking && begin != redacted
}

// hasAdaptiveThinking reports whether a model takes an effort. All do except claude-FAMILY-MAJOR[-MINOR]
// before 4.6 and names in the older order (claude-3-7-sonnet).
func hasAdaptiveThinking(model string) bool {
	words := strings.Split(strings.TrimPrefix(model, "claude-"), "-")
	if _, err := strconv.Atoi(words[0]); err == nil || len(words) < 2 {
		return err != nil
	}
	major, err := strconv.Atoi(words[1])
	if err != nil {
		return true
	}
	minor := 0
	if len(words) > 2 && len(words[2]) < 3 { // longer is a date
		minor, _ = strconv.Atoi(words[2])
	}
	return major > 4 || major == 4 && minor >= 6
}
