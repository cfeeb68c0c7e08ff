package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// strictCheck collects what a vendor would refuse in a request.
type strictCheck struct{ problems []string }

// addf notes a violation.
func (s *strictCheck) addf(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// fields decodes an object and notes fields that are not allowed.
func (s *strictCheck) fields(where string, raw []byte, to any, allowed string) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		s.addf("%s: %v", where, err)
		return
	}
	for name := range all {
		if !slices.Contains(strings.Fields(allowed), name) {
			s.addf("%s: unknown field %q", where, name)
		}
	}
	if err := json.Unmarshal(raw, to); err != nil {
		s.addf("%s: %v", where, err)
	}
}

// toolName is the name of a tool, for both of OpenAI's interfaces.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tool checks what both interfaces want of a tool.
func (s *strictCheck) tool(where, name string, schema json.RawMessage) {
	var o struct{ Type string }
	if err := json.Unmarshal(schema, &o); err != nil || o.Type != "object" {
		s.addf("%s: the schema of %q is not that of an object", where, name)
	}
	if !toolName.MatchString(name) {
		s.addf("%s: the name %q", where, name)
	}
}

// strictPart is a part of a list of content.
type strictPart struct {
	Type     string          `json:"type"`
	Text     *string         `json:"text"`
	ImageURL json.RawMessage `json:"image_url"`
	Thinking []strictPart    `json:"thinking"`
}

// content checks the content of a message: a text that is not empty, or a list of parts of these types.
func (s *strictCheck) content(where string, raw json.RawMessage, types ...string) {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		if strings.TrimSpace(text) == "" {
			s.addf("%s: empty content", where)
		}
		return
	}
	var parts []strictPart
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		s.addf("%s: content is %s", where, raw)
		return
	}
	for _, p := range parts {
		switch {
		case !slices.Contains(types, p.Type):
			s.addf("%s: a part of type %q", where, p.Type)
		case p.Type == "image_url" || p.Type == "input_image":
			s.image(where, p.ImageURL)
		case p.Type != "thinking" && (p.Text == nil || strings.TrimSpace(*p.Text) == ""):
			s.addf("%s: an empty text", where)
		}
	}
}

// image checks the URL of an image, which stands in an object in Chat Completions.
func (s *strictCheck) image(where string, raw json.RawMessage) {
	var url string
	if json.Unmarshal(raw, &url) != nil {
		var o struct{ URL string }
		_ = json.Unmarshal(raw, &o) // "" is refused below
		url = o.URL
	}
	media, data, _ := strings.Cut(strings.TrimPrefix(url, "data:image/"), ";base64,")
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(b) == 0 || !slices.Contains([]string{"png", "jpeg", "gif", "webp"}, media) {
		s.addf("%s: the image %.40q", where, url)
	}
}

// strictItem is an item of a request of the Responses API.
type strictItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Content   json.RawMessage `json:"content"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
}

// strictResponses checks a request of the Responses API.
type strictResponses struct {
	strictCheck
	model, account string
}

// SealReasoning returns the encrypted content of the reasoning with which a model answers a request with this header.
func SealReasoning(header http.Header, model string) string {
	return seal{Model: model, Account: header.Get("Authorization")}.encode()
}

// CheckResponses returns what the vendor would refuse in a request of the Responses API, of which these are the header
// and the body. Reasoning has the encrypted content that SealReasoning made.
func CheckResponses(header http.Header, body []byte) []string {
	s := &strictResponses{account: header.Get("Authorization")}
	var q struct {
		Model string
		Store *bool
		Max   *int `json:"max_output_tokens"`
		Input []json.RawMessage
		Tools []json.RawMessage
	}
	s.fields("request", body, &q, "model instructions input tools max_output_tokens prompt_cache_key user store "+
		"include reasoning stream")
	if q.Model == "" || len(q.Input) == 0 || q.Store == nil || *q.Store || q.Max != nil && *q.Max < 16 {
		s.addf("request: the model, the input, store or max_output_tokens")
	}
	for i, raw := range q.Tools {
		var t struct {
			Name       string
			Parameters json.RawMessage
		}
		s.fields(fmt.Sprintf("tools[%d]", i), raw, &t, "type name description parameters strict")
		s.tool(fmt.Sprintf("tools[%d]", i), t.Name, t.Parameters)
	}
	s.model = q.Model
	s.items(q.Input)
	return s.problems
}

// items checks the items: each call has one output behind it, and reasoning is followed by what it led to.
func (s *strictResponses) items(input []json.RawMessage) {
	open, seen, afterReasoning := map[string]bool{}, map[string]bool{}, false
	for i, raw := range input {
		where := fmt.Sprintf("input[%d]", i)
		var it strictItem
		s.fields(where, raw, &it, "type id status role phase content call_id name arguments output summary "+
			"encrypted_content")
		isOwn := it.Type == "function_call" || it.Type == "message" && it.Role == "assistant"
		if afterReasoning && !isOwn && it.Type != "reasoning" {
			s.addf("%s: reasoning was provided without its required following item", where)
		}
		afterReasoning = it.Type == "reasoning"
		switch it.Type {
		case "reasoning":
			if it.Encrypted == "" {
				s.addf("%s: the item is not stored", where)
			} else if x, ok := unseal(it.Encrypted); !ok || x.Model != s.model || x.Account != s.account {
				s.addf("%s: the encrypted content could not be verified", where)
			}
		case "message":
			types := map[string][]string{"user": {"input_text", "input_image"}, "assistant": {"output_text", "refusal"}}
			s.content(where, it.Content, types[it.Role]...)
		case "function_call":
			var object map[string]any
			if err := json.Unmarshal([]byte(it.Arguments), &object); err != nil || !toolName.MatchString(it.Name) ||
				!toolName.MatchString(it.CallID) || seen[it.CallID] {
				s.addf("%s: call %q of %q: %v", where, it.CallID, it.Name, err)
			}
			open[it.CallID], seen[it.CallID] = true, true
		case "function_call_output":
			if !open[it.CallID] {
				s.addf("%s: no call has the id %q", where, it.CallID)
			}
			delete(open, it.CallID)
			if !bytes.Equal(it.Output, []byte(`""`)) {
				s.content(where, it.Output, "input_text", "input_image")
			}
		default:
			s.addf("%s: type %q", where, it.Type)
		}
	}
	if len(open) > 0 || afterReasoning {
		s.addf("input: no output for %v, or it ends with reasoning", open)
	}
}
