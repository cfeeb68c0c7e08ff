package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"muster/llm"
)

// contentPart is a text or an image in a message, in the form of either API.
type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Refusal  string `json:"refusal,omitempty"`
	ImageURL any    `json:"image_url,omitempty"`
}

// contentParts converts the texts and the images of ps, which image makes of data URLs, in their order. It
// leaves out empty ones, which servers refuse, and all other parts.
func contentParts(ps []llm.Part, textType string, image func(url string) contentPart) (out []contentPart) {
	for _, p := range ps {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				out = append(out, contentPart{Type: textType, Text: p.Text})
			}
		case llm.Image:
			if len(p.Data) > 0 {
				out = append(out, image("data:"+p.Media+";base64,"+base64.StdEncoding.EncodeToString(p.Data)))
			}
		}
	}
	return out
}

// newUsage returns the usage of a reply. The API counts the tokens of the cache among those of the prompt,
// and llm.Usage counts them apart.
func newUsage(prompt, output, cacheRead, cacheWrite int) llm.Usage {
	return llm.Usage{
		Input:      max(prompt-cacheRead-cacheWrite, 0), // servers that imitate the API may count otherwise
		Output:     output,
		CacheRead:  cacheRead,
		CacheWrite: cacheWrite,
	}
}

// joinTexts joins the texts of ps. Most servers that imitate the API take a single string.
func joinTexts(ps []llm.Part) string {
	var out []string
	for _, p := range ps {
		if t, ok := p.(llm.Text); ok && t.Text != "" {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, "\n\n")
}

// joinSystem joins the system prompt. The chat templates of many local models refuse a second system message.
func joinSystem(parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n")
}

// images returns the images of ps that have data. Where there is one, content must be sent as a list and not
// as a string.
func images(ps []llm.Part) (out []llm.Image) {
	for _, p := range ps {
		if i, ok := p.(llm.Image); ok && len(i.Data) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// opaque is the Opaque of an llm.Thinking or an llm.Call. Its JSON is stored in transcripts, so its field names
// must stay.
//
// Of Chat Completions it holds the name of the field in which the server sent its reasoning and wants it back.
// Of Responses it holds an item as it came, or the phase of the message that follows. The vendor takes reasoning
// back only unchanged and together with the item that it led to, so both are kept.
type opaque struct {
	Field    string          `json:"field,omitempty"`
	Provider string          `json:"provider,omitempty"` // a Call has no field for it
	Item     json.RawMessage `json:"item,omitempty"`
	Phase    string          `json:"phase,omitempty"`
}

// encode returns the JSON of k. It cannot fail, because an item was parsed before it is kept.
func (k opaque) encode() json.RawMessage {
	b, _ := json.Marshal(k)
	return b
}
