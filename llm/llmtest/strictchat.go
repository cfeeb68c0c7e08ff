package llmtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// chatRules are what a vendor of Chat Completions refuses and others take.
type chatRules struct {
	fields    string // of a request, beside those that all take
	reasoned  bool   // each message of the assistant has reasoning_content, if the request asks for thinking
	noNull    bool   // content is never null
	callID    *regexp.Regexp
	userAfter bool // the user may not speak directly after results
	signed    bool // the first call of each message has a signature
	images    bool
}

// chatVendors are the rules by the vendors' names. "" is a server that is not known.
var chatVendors = map[string]chatRules{
	"": {fields: "max_tokens user reasoning_effort", images: true},
	"openai": {fields: "max_completion_tokens prompt_cache_key reasoning_effort", images: true,
		callID: regexp.MustCompile(`^.{1,40}$`)},
	"deepseek": {fields: "max_tokens user reasoning_effort thinking", reasoned: true, images: true},
	"zai":      {fields: "max_tokens user reasoning_effort thinking", reasoned: true},
	"moonshot": {fields: "max_completion_tokens prompt_cache_key reasoning_effort thinking", reasoned: true,
		images: true},
	"minimax": {fields: "max_completion_tokens user reasoning_split", images: true},
	"qwen":    {fields: "max_tokens user enable_thinking", noNull: true, images: true},
	"mistral": {fields: "max_tokens reasoning_effort", callID: regexp.MustCompile(`^[a-zA-Z0-9]{9}$`),
		userAfter: true, images: true},
	"xai":        {fields: "max_completion_tokens user reasoning_effort", noNull: true, images: true},
	"openrouter": {fields: "max_tokens user reasoning", images: true},
	"gemini":     {fields: "max_tokens reasoning_effort", signed: true, images: true},
}

// strictMessage is a message of a request of Chat Completions.
type strictMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Reasoning  string          `json:"reasoning_content"`
	ToolCallID string          `json:"tool_call_id"`
	Details    []struct {
		Signature string `json:"signature"`
	} `json:"reasoning_details"`
	ToolCalls []struct {
		ID, Type string
		Function struct{ Name, Arguments string }
		Extra    struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		} `json:"extra_content"`
	} `json:"tool_calls"`
}

// CheckChat returns what a vendor would refuse in the body of a request of Chat Completions. The vendor has its name
// in package catalogue; "" is a server of which nothing is known. A signature names the model that made it.
func CheckChat(vendor string, body []byte) []string {
	s, rules := &strictCheck{}, chatVendors[vendor]
	var q struct {
		Model, User   string
		Max           *int              `json:"max_tokens"`
		MaxCompletion *int              `json:"max_completion_tokens"`
		Thinking      json.RawMessage   `json:"thinking"`
		Messages      []json.RawMessage `json:"messages"`
		Tools         []struct {
			Type     string
			Function struct {
				Name       string
				Parameters json.RawMessage
			}
		}
	}
	allowed := "model messages tools stream stream_options " + rules.fields
	if vendor == "mistral" {
		allowed = strings.Replace(allowed, "stream_options", "", 1)
	}
	s.fields("request", body, &q, allowed)
	if q.Model == "" || q.Max != nil && *q.Max < 1 || q.MaxCompletion != nil && *q.MaxCompletion < 1 {
		s.addf("request: the model or the limit")
	}
	for i, t := range q.Tools {
		s.tool(fmt.Sprintf("tools[%d]", i), t.Function.Name, t.Function.Parameters)
	}
	rules.reasoned = rules.reasoned && len(q.Thinking) > 0
	s.messages(q.Messages, rules, q.Model)
	return s.problems
}

// messages checks the messages: their roles, and that the results follow their calls.
func (s *strictCheck) messages(raws []json.RawMessage, rules chatRules, model string) {
	open, last := map[string]bool{}, ""
	for i, raw := range raws {
		where := fmt.Sprintf("messages[%d]", i)
		var m strictMessage
		s.fields(where, raw, &m, "role content reasoning reasoning_content reasoning_details tool_calls tool_call_id")
		if len(m.Content) == 0 {
			s.addf("%s: missing field content", where)
		}
		if m.Role != "tool" && len(open) > 0 {
			s.addf("%s: no results for %v", where, open)
		}
		if strings.Contains(string(m.Content), `"image_url"`) && !rules.images {
			s.addf("%s: the model takes no images", where)
		}
		switch m.Role {
		case "system":
			if i > 0 {
				s.addf("%s: a system message that is not the first", where)
			}
			s.content(where, m.Content)
		case "user":
			if last == "tool" && rules.userAfter {
				s.addf("%s: unexpected role user after role tool", where)
			}
			s.content(where, m.Content, "text", "image_url")
		case "tool":
			if !open[m.ToolCallID] {
				s.addf("%s: no call has the id %q", where, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			s.content(where, m.Content)
		case "assistant":
			s.assistant(where, m, rules, model)
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		default:
			s.addf("%s: role %q", where, m.Role)
		}
		last = m.Role
	}
	if len(open) > 0 || last != "user" && last != "tool" {
		s.addf("messages: the last one is of %s, without results for %v", last, open)
	}
}

// assistant checks a message of the assistant.
func (s *strictCheck) assistant(where string, m strictMessage, rules chatRules, model string) {
	isEmpty := string(m.Content) == "null" || string(m.Content) == `""`
	switch {
	case !isEmpty:
		s.content(where, m.Content, "text", "thinking")
	case len(m.ToolCalls) == 0:
		s.addf("%s: neither content nor calls", where)
	case rules.noNull && string(m.Content) == "null":
		s.addf("%s: content is null", where)
	}
	if rules.reasoned && m.Reasoning == "" {
		s.addf("%s: missing reasoning_content", where)
	}
	for _, d := range m.Details {
		if d.Signature != "" && d.Signature != model {
			s.addf("%s: the signature of %s for %s", where, d.Signature, model)
		}
	}
	seen := map[string]bool{}
	for i, c := range m.ToolCalls {
		var object map[string]any
		err := json.Unmarshal([]byte(c.Function.Arguments), &object)
		if err != nil || c.Type != "function" || !toolName.MatchString(c.Function.Name) || c.ID == "" || seen[c.ID] ||
			rules.callID != nil && !rules.callID.MatchString(c.ID) {
			s.addf("%s: call %q of %q: %v", where, c.ID, c.Function.Name, err)
		}
		seen[c.ID] = true
		signature := c.Extra.Google.Signature
		if rules.signed && i == 0 && signature == "" || signature != "" && signature != model &&
			signature != "skip_thought_signature_validator" {
			s.addf("%s: the thought signature %q for %s", where, signature, model)
		}
	}
}
