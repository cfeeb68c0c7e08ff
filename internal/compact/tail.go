package compact

import (
	"encoding/json"
	"slices"

	"muster/llm"
)

// Tail returns the newest messages that have at most so many tokens together, to stand behind a summary of those
// before them, and how many it is that stand before. A call is never parted from its result. Of a newest round of
// calls that alone has more, and of a newest reply in words, the texts are cut; what does not fit even so is left out.
func Tail(messages []llm.Message, most int) (tail []llm.Message, before int) {
	before = len(messages)
	for i, sum := len(messages)-1, 0; i > 0; i-- {
		if sum += Estimate(messages[i : i+1]); sum > most {
			break
		}
		if canBegin(messages[i]) {
			before = i
		}
	}
	if before < len(messages) || len(messages) < 2 {
		return slices.Clone(messages[before:]), before
	}
	last := len(messages) - 1
	if !canBegin(messages[last]) {
		last--
	}
	if cut := shortened(messages[last:], most); last > 0 && Estimate(cut) <= most {
		return cut, last
	}
	return nil, before
}

// canBegin reports whether a message can stand behind a summary: it is a reply, or it has no result.
func canBegin(m llm.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p llm.Part) bool { _, is := p.(llm.Result); return is })
}

// shortened returns the messages of one round without its thinking and its images, and with its texts cut, each to an
// equal share of most.
func shortened(round []llm.Message, most int) (out []llm.Message) {
	texts := 0
	for _, m := range round {
		texts += len(m.Parts)
	}
	share := most/max(texts, 1) - messageTokens - callTokens
	for _, m := range round {
		parts := llm.Parts{}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				parts = append(parts, llm.Text{Text: Shorten(p.Text, share)})
			case llm.Call:
				if TextTokens(string(p.Input)) > share {
					p.Input, p.Opaque = either(shortInput(p.Input), json.RawMessage("{}")), nil
				}
				p.Malformed = Shorten(p.Malformed, share)
				parts = append(parts, p)
			case llm.Result:
				p.Parts = llm.Parts{llm.Text{Text: Shorten(p.Text(), share)}}
				parts = append(parts, p)
			}
		}
		if len(parts) > 0 {
			out = append(out, llm.Message{Role: m.Role, Parts: parts})
		}
	}
	return out
}

// either returns a, or b if a is nil.
func either(a, b json.RawMessage) json.RawMessage {
	if a == nil {
		return b
	}
	return a
}

// Behind returns a conversation that opens with texts and goes on with the tail of another one.
func Behind(opening []string, tail []llm.Message) []llm.Message {
	first := llm.Message{Role: llm.User}
	for _, text := range opening {
		if text != "" {
			first.Parts = append(first.Parts, llm.Text{Text: text})
		}
	}
	if len(tail) > 0 && tail[0].Role == llm.User {
		first.Parts = append(first.Parts, tail[0].Parts...)
		tail = tail[1:]
	}
	return append([]llm.Message{first}, tail...)
}
