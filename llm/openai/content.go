package openai

import (
	"encoding/base64"
	"slices"
	"strings"

	"muster/llm"
)

// convertContent converts the texts and the images of ps by one function each, in their order. It leaves out empty
// ones, which servers refuse, and all other parts. An image is given as a data URL.
func convertContent[T any](ps []llm.Part, text, image func(string) T) (out []T) {
	for _, p := range ps {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				out = append(out, text(p.Text))
			}
		case llm.Image:
			if len(p.Data) > 0 {
				out = append(out, image("data:"+p.Media+";base64,"+base64.StdEncoding.EncodeToString(p.Data)))
			}
		}
	}
	return out
}

// newUsage returns the usage of a reply. The API counts the tokens of the cache among those of the prompt, and
// llm.Usage counts them apart.
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

// images returns the images of ps that have data.
func images(ps []llm.Part) (out []llm.Image) {
	for _, p := range ps {
		if i, ok := p.(llm.Image); ok && len(i.Data) > 0 {
			out = append(out, i)
		}
	}
	return out
}
