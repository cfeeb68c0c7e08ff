package anthropic

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"muster/llm"
)

// opaqueThinking is the Opaque of an llm.Thinking: everything of the block except its text. Its JSON is
// stored in transcripts.
type opaqueThinking struct {
	Type      string `json:"type"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// The kinds of blocks of thinking. The text of a redacted one is encrypted, and only the vendor can read it.
const (
	thinking = "thinking"
	redacted = "redacted_thinking"
)

// thinkingBlocks returns the block that p was made from, unchanged. Thinking of another endpoint, and
// thinking without a signature, is not sent.
func (m *model) thinkingBlocks(p llm.Thinking) []block {
	var s opaqueThinking
	if p.Provider != m.provider || json.Unmarshal(p.Opaque, &s) != nil {
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

// setThinking asks for thinking in the form that the model takes: an effort, or for older models a budget
// of tokens, which is added to the length of the reply.
func (m *model) setThinking(p *request) {
	if m.o.Effort == "" {
		return
	}
	if hasAdaptiveThinking(m.o.Model) {
		p.Thinking = map[string]any{"type": "adaptive"}
		p.OutputConfig = map[string]string{"effort": m.o.Effort}
		return
	}
	// The older API counts the budget as part of max_tokens, so the reply would be shorter by it.
	budgets := map[string]int{"low": 2048, "high": 16384, "xhigh": 16384, "max": 16384}
	budget := cmp.Or(budgets[m.o.Effort], 4096)
	p.Thinking = map[string]any{"type": "enabled", "budget_tokens": budget}
	p.MaxTokens += budget
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
