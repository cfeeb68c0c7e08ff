package openai

import (
	"encoding/json"
	"strings"

	"muster/llm"
	"muster/llm/internal/wire"
)

// What a request holds, as the API wants it. Types of our own keep a tool's schema and an item that came
// from the vendor byte for byte. The order of the fields must stay, because the vendor's cache compares
// bytes.
type (
	// responsesRequest is the body of a request. Input holds items, and items as they came from the
	// vendor.
	responsesRequest struct {
		Instructions    string            `json:"instructions,omitempty"`
		MaxOutputTokens int               `json:"max_output_tokens,omitempty"`
		PromptCacheKey  string            `json:"prompt_cache_key,omitempty"`
		User            string            `json:"user,omitempty"`
		Store           bool              `json:"store"`
		Include         []string          `json:"include,omitempty"`
		Input           []any             `json:"input"`
		Model           string            `json:"model"`
		Reasoning       map[string]string `json:"reasoning,omitempty"`
		Tools           []responseTool    `json:"tools,omitempty"`
		Stream          bool              `json:"stream"`
	}
	// responseTool declares a tool.
	responseTool struct {
		Type string `json:"type"`
		function
		Strict bool `json:"strict"` // true, which is the default, takes only some schemas
	}
	// item is an item of any type, of a request or of a response. Each type uses a few of the fields.
	item struct {
		Type      string        `json:"type"`
		Role      llm.Role      `json:"role,omitempty"`
		Phase     string        `json:"phase,omitempty"`
		CallID    string        `json:"call_id,omitempty"`
		Name      string        `json:"name,omitempty"`
		Arguments string        `json:"arguments,omitempty"`
		Output    any           `json:"output,omitempty"` // a string or []contentPart
		Content   []contentPart `json:"content,omitempty"`
		Summary   []contentPart `json:"summary,omitempty"`
		Encrypted string        `json:"encrypted_content,omitempty"`

		raw   json.RawMessage // of a response: the whole item, because the vendor wants it back as it was
		index int             // items may be done in another order than the one that they have in the reply
	}
)

// responsesRequest builds the request. It is a function of r alone, and a longer conversation begins with
// the bytes of a shorter one, which the vendor's cache needs. Nothing is stored at the vendor's: the whole
// conversation is sent each time, and the reasoning goes back in encrypted form as part of it.
func (m *model) responsesRequest(r llm.Request) responsesRequest {
	q := responsesRequest{Instructions: joinSystem(r.System), MaxOutputTokens: r.MaxTokens, Model: m.o.Model,
		Stream: true}
	if !m.quirks.strict {
		q.PromptCacheKey = promptCacheKey(r)
	}
	if !m.quirks.strict && !m.peer.IsVendor { // it may tell conversations apart
		q.User = r.CacheKey
	}
	if canReason(m.o.Model) {
		q.Include = []string{"reasoning.encrypted_content"}
	}
	for _, msg := range r.Messages {
		q.Input = append(q.Input, m.items(msg)...)
	}
	if e := m.effort(); e != "" {
		q.Reasoning = map[string]string{"effort": e}
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, responseTool{Type: "function", function: newFunction(t)})
	}
	return q
}

// canReason reports whether a model may be asked for reasoning. Older models refuse the question.
func canReason(model string) bool {
	return !strings.HasPrefix(model, "gpt-3") && !strings.HasPrefix(model, "gpt-4") &&
		!strings.HasPrefix(model, "chatgpt-") && !strings.Contains(model, "-chat")
}

// canRead reports whether an item was made by the same model for the same account.
func (m *model) canRead(k opaque) bool { return k.Maker == "" || k.Maker == m.peer.Maker }

// items converts one message. Reasoning of another endpoint, another model or another account is left out, because it
// is encrypted for that one alone.
func (m *model) items(msg llm.Message) (out []any) {
	if msg.Role != llm.Assistant {
		return userItems(wire.Images(msg.Parts, m.o.Known))
	}
	phase := ""
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			var k opaque
			if p.Provider != m.peer.Provider || json.Unmarshal(p.Opaque, &k) != nil || !m.canRead(k) {
				continue
			}
			phase = k.Phase
			if len(k.Item) > 0 {
				out = append(out, k.Item)
			}
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				out = append(out, item{Type: "message", Role: llm.Assistant, Phase: phase,
					Content: []contentPart{{Type: "output_text", Text: p.Text}}})
			}
			phase = ""
		case llm.Call:
			out = append(out, m.callItem(p))
		}
	}
	// The vendor refuses reasoning without the item that it led to, which may have been blank.
	for len(out) > 0 && isReasoning(out[len(out)-1]) {
		out = out[:len(out)-1]
	}
	return out
}

// isReasoning reports whether an item of a request is one of reasoning, as it came.
func isReasoning(v any) bool {
	raw, ok := v.(json.RawMessage)
	var it item
	return ok && json.Unmarshal(raw, &it) == nil && it.Type == "reasoning"
}

// callItem returns the item that the call came as or, if that came from another endpoint, one that says the
// same. It compares id and name first, because a transcript may have been edited, and the results refer to
// the call by its id. Arguments that the item has in another form were no JSON, and other endpoints of this API read
// them.
func (m *model) callItem(c llm.Call) any {
	var k opaque
	var it item
	arguments := wire.Arguments(c.Input)
	if json.Unmarshal(c.Opaque, &k) == nil && k.Provider == m.peer.Provider && m.canRead(k) &&
		json.Unmarshal(k.Item, &it) == nil && it.CallID == c.ID && it.Name == c.Name {
		if input, err := llm.Input([]byte(it.Arguments)); err == nil && string(input) == arguments {
			return k.Item
		}
	}
	return item{Type: "function_call", CallID: wire.Name(c.ID, 64), Name: wire.Name(c.Name, 64), Arguments: arguments}
}

// userItems converts a user message: one item for each result, then one for the rest.
func userItems(parts []llm.Part) (out []any) {
	for _, p := range parts {
		if r, ok := p.(llm.Result); ok {
			o := item{Type: "function_call_output", CallID: wire.Name(r.ID, 64), Output: joinTexts(r.Parts)}
			if len(images(r.Parts)) > 0 {
				o.Output = contentParts(r.Parts, "input_text", inputImage)
			}
			out = append(out, o)
		}
	}
	if cs := contentParts(parts, "input_text", inputImage); len(cs) > 0 {
		out = append(out, item{Type: "message", Role: llm.User, Content: cs})
	}
	return out
}

// inputImage makes the content of an image.
func inputImage(url string) contentPart { return contentPart{Type: "input_image", ImageURL: url} }
