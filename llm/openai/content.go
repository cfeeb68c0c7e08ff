package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"muster/llm"
)

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

// images returns the images of ps.
func images(ps []llm.Part) (out []llm.Image) {
	for _, p := range ps {
		if i, ok := p.(llm.Image); ok && len(i.Data) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// dataURL encodes an image as a data URL.
func dataURL(i llm.Image) string {
	return "data:" + i.Media + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// orDefault returns s, or none if s is empty.
func orDefault(s json.RawMessage, none string) json.RawMessage {
	if len(s) == 0 {
		return json.RawMessage(none)
	}
	return s
}

const (
	emptyInput  = `{}`
	emptySchema = `{"type":"object","properties":{}}`
)
