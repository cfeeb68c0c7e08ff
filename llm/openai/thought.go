package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"muster/llm"
)

// The fields in which servers send reasoning, as opaque names them. fieldText is <think> in the text, and fieldList is
// a thinking chunk in a content that is a list.
const (
	fieldContent   = "reasoning_content"
	fieldReasoning = "reasoning"
	fieldText      = "<think>"
	fieldList      = "content"
)

// thought collects the reasoning of a reply of Chat Completions.
type thought struct {
	strings.Builder
	field   string // the name under which it came
	details []map[string]json.RawMessage
}

// part returns the part of the reply that holds the reasoning, and how the server wants it back.
func (t *thought) part(provider, model string) []llm.Part {
	if t.Len() == 0 && len(t.details) == 0 {
		return nil
	}
	k := opaque{Field: t.field}
	if len(t.details) > 0 {
		// Signatures in the details hold for the model that made them only.
		k = opaque{Model: model}
		k.Item, _ = json.Marshal(t.details)
	}
	return []llm.Part{llm.Thinking{Text: t.String(), Provider: provider, Opaque: k.encode()}}
}

// addDetails adds pieces of reasoning_details. A piece belongs to the last one if both have the same type and index;
// its text is then more of the other's, or all of it so far with servers that repeat. It returns what is new to show.
func (t *thought) addDetails(pieces []map[string]json.RawMessage) (shown string) {
	for _, p := range pieces {
		n := len(t.details) - 1
		if n < 0 || !bytes.Equal(p["type"], t.details[n]["type"]) || !bytes.Equal(p["index"], t.details[n]["index"]) ||
			p["id"] != nil && t.details[n]["id"] != nil && !bytes.Equal(p["id"], t.details[n]["id"]) {
			t.details = append(t.details, p)
			shown += deltaText(p["text"]) + deltaText(p["summary"])
			continue
		}
		for name, value := range p {
			switch before, more := deltaText(t.details[n][name]), deltaText(value); {
			case name != "text" && name != "summary" && name != "data":
				if string(value) != "null" && string(value) != `""` {
					t.details[n][name] = value
				}
			case len(before) >= minRepeated && strings.HasPrefix(more, before):
				t.details[n][name] = value
				shown += more[len(before):]
			default:
				t.details[n][name], _ = json.Marshal(before + more)
				if name != "data" {
					shown += more
				}
			}
		}
	}
	return shown
}

// minRepeated is from how many bytes on a text that begins with the text before is taken for a repetition of it.
const minRepeated = 16

// thinkTags finds <think> at the beginning of a text, as models send it whose server does not cut it out.
type thinkTags struct {
	held     string // what may be the beginning of a tag
	isInside bool
	isText   bool // the text has begun
}

// split returns what of a piece of text is reasoning and what is text. It keeps back what may be a tag.
func (t *thinkTags) split(piece string) (think, text string) {
	if t.isText {
		return "", piece
	}
	t.held += piece
	if !t.isInside {
		begin := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(begin, openTag):
			t.isInside, t.held = true, begin[len(openTag):]
		case strings.HasPrefix(openTag, begin):
			return "", "" // it may become one
		default:
			t.isText = true
			text, t.held = t.held, ""
			return "", text
		}
	}
	if before, after, ok := strings.Cut(t.held, closeTag); ok {
		t.isText, t.held = true, ""
		return before, strings.TrimLeft(after, "\r\n")
	}
	keep := 0 // of the end, which may be the beginning of the closing tag
	for n := 1; n < len(closeTag) && n <= len(t.held); n++ {
		if strings.HasSuffix(t.held, closeTag[:n]) {
			keep = n
		}
	}
	think, t.held = t.held[:len(t.held)-keep], t.held[len(t.held)-keep:]
	return think, ""
}

// rest returns what was kept back, at the end of the reply.
func (t *thinkTags) rest() (think, text string) {
	if t.isInside && !t.isText {
		return t.held, ""
	}
	return "", t.held
}

// The tags of reasoning in a text.
const (
	openTag  = "<think>"
	closeTag = "</think>"
)

// flexible is content that is a string, or with some servers a list of texts and of reasoning.
type flexible struct{ text, think string }

// UnmarshalJSON reads either form. What is neither is empty.
func (f *flexible) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '[' {
		f.text = deltaText(data)
		return nil
	}
	var list []struct {
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	err := json.Unmarshal(data, &list)
	for _, c := range list {
		f.text += c.Text
		for _, t := range c.Thinking {
			f.think += t.Text
		}
	}
	return err
}
