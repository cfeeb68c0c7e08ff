package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"muster/llm"
)

// seal is the Opaque of a Thinking: what of the block is not its text.
type seal struct {
	Type      string `json:"type"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

const (
	thinking = "thinking"
	redacted = "redacted_thinking"
)

// sealed is the block that p was made from, unchanged. Another endpoint's
// thinking, and what has no signature, is not sent.
func (m *model) sealed(p llm.Thinking) (b sdk.ContentBlockParamUnion, ok bool) {
	var s seal
	if p.Provider != m.provider || json.Unmarshal(p.Opaque, &s) != nil {
		return b, false
	}
	switch {
	case s.Type == thinking && s.Signature != "":
		return sdk.NewThinkingBlock(s.Signature, p.Text), true
	case s.Type == redacted && s.Data != "":
		return sdk.NewRedactedThinkingBlock(s.Data), true
	}
	return b, false
}

// think asks for thinking as the model takes it: by effort, or the older ones by
// a budget, which comes on top of the reply's length.
func (m *model) think(p *sdk.MessageNewParams) {
	if m.o.Effort == "" {
		return
	}
	if adaptive(m.o.Model) {
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(m.o.Effort)
		return
	}
	budget := int64(4096)
	switch m.o.Effort {
	case "low":
		budget = 2048
	case "high", "xhigh", "max":
		budget = 16384
	}
	p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
	p.MaxTokens += budget
}

// adaptive: claude-FAMILY-MAJOR[-MINOR] from 4.6 on, and every other name; the
// older order of the words (claude-3-7-sonnet) is before that.
func adaptive(model string) bool {
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
