package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"muster/llm"
)

// texts are the texts in ps, joined: most servers that imitate the API take one
// string and nothing else.
func texts(ps []llm.Part) string {
	var out []string
	for _, p := range ps {
		if t, ok := p.(llm.Text); ok && t.Text != "" {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, "\n\n")
}

// system is the system prompt as one text: chat templates of local models often
// refuse a second one.
func system(parts []string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n\n")
}

func images(ps []llm.Part) (out []llm.Image) {
	for _, p := range ps {
		if i, ok := p.(llm.Image); ok && len(i.Data) > 0 {
			out = append(out, i)
		}
	}
	return out
}

func dataURL(i llm.Image) string {
	return "data:" + i.Media + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

func object(s json.RawMessage, none string) json.RawMessage {
	if len(s) == 0 {
		return json.RawMessage(none)
	}
	return s
}

const (
	noInput  = `{}`
	noSchema = `{"type":"object","properties":{}}`
)
