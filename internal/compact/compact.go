// Package compact makes the messages of a conversation fewer or shorter, so that a model's window holds them. It is
// pure: messages and a budget go in, messages come out. It knows no team, no store and no model.
//
// There are two ways. Rules.Clear replaces each older result, and each large input of an older call, by one line; it
// returns a list of Changes, which can be stored, and Apply makes them. Tail returns the newest messages that fit, to
// follow a summary of the rest; the caller asks a model for the summary.
//
// These hold for every conversation that keeps the rules of llm.History:
//   - What comes out keeps them too: no call is parted from its result, and roles alternate.
//   - The same messages give the same bytes, in every process.
//   - A call and its result stay calls and results with the same id and name.
//   - The results that the model has not read yet stay whole in Clear.
//
// Tokens are estimated with Estimate, until a Gauge has the count of the model's provider.
package compact

import (
	"unicode"

	"muster/internal/text"
	"muster/llm"
)

// Budget is how many tokens the parts of a conversation may have. NewBudget makes one.
type Budget struct {
	ClearFrom int // of a request: if it has more, older results are cleared
	Step      int // that clearing must free: it changes the beginning of the request that the provider has cached
	Results   int // of the newest results, which clearing leaves whole
	Limit     int // of a request: if it has more, a summary replaces all but the newest messages
	Kept      int // of the newest messages, which stay whole after a summary
	Opening   int // of the first message of a shortened conversation, with its summary
	Summary   int // of the summary
}

// The largest parts of a budget. In a large window, more would cost more than it helps. With maxResults, 96% of the
// edits in public sessions still have the last read of their file (bench/habits).
const (
	maxClearFrom = 100_000
	maxResults   = 40_000
	maxKept      = 24_000
	maxOpening   = 48_000
	maxSummary   = 4_000
)

// Models with a window of at most smallWindow tokens lose track long before it is full: they get a summary earlier, and
// a shorter one.
const (
	smallWindow     = 64_000
	maxSmallSummary = 1_000
)

// WordsPerToken is about how many English words a token has.
const WordsPerToken = 0.6

// NewBudget returns the budget for a window of tokens, of which a reply may take reply tokens. prefix is the size of
// the system prompt and the tools.
//
// Results are cleared from half of the window on, and from 100,000 tokens at the latest. Each time this frees an eighth
// of the window, and leaves the newest results: 40,000 tokens, or a quarter of the window. The limit is 80% of the
// window, 60% of a small one (more if the prefix is large), or less where the longest reply would not fit, because many
// servers refuse such a request.
// A shortened conversation fills at most four fifths of the room beside the prefix. harder counts how often a shortened
// conversation was still too long: each time its parts are half as large.
func NewBudget(window, reply, prefix, harder int) Budget {
	limit, summary := min(window*4/5, window*19/20-reply), maxSummary
	if window <= smallWindow {
		limit, summary = min(limit, max(window*3/5, prefix+window/4)), maxSmallSummary
	}
	limit = max(limit, window/2)
	room := max(limit-prefix, limit/4)
	part := func(share, most int) int { return min(room*share/100, most) >> harder }
	return Budget{ClearFrom: min(window/2, maxClearFrom), Step: min(window/8, room/4),
		Results: min(window/4, room/2, maxResults), Limit: limit, Kept: part(30, maxKept),
		Opening: part(50, maxOpening), Summary: part(8, summary)}
}

// Gauge corrects estimates by what the provider has counted of the last request. The zero Gauge corrects nothing.
type Gauge struct{ counted, estimated int }

// Count notes that the provider has counted so many tokens in a request of which the estimate is known. A count that
// is far off says something else, such as that a server has cut the request.
func (g *Gauge) Count(counted, estimated int) {
	if estimated > 0 && counted > estimated/3 {
		*g = Gauge{counted, estimated}
	}
}

// Tokens returns how many tokens a request has, of which the estimate is known. What has come since the last request is
// added to its count. When less is left than that had, because the conversation was shortened, the count shrinks in
// proportion.
func (g Gauge) Tokens(estimated int) int {
	switch {
	case g.estimated == 0:
		return estimated
	case estimated >= g.estimated:
		return g.counted + estimated - g.estimated
	}
	return int(int64(g.counted) * int64(estimated) / int64(g.estimated))
}

// What is added to the estimate of a text.
const (
	imageTokens   = 1600 // of an image, whatever its size: about the most that a provider counts for a usual one
	messageTokens = 4    // for the frame of a message
	callTokens    = 12   // for the frame of a call or a result, with its id
)

// Estimate returns about how many tokens messages have: see TextTokens.
func Estimate(messages []llm.Message) (n int) {
	for _, m := range messages {
		n += messageTokens + PartTokens(m.Parts)
	}
	return n
}

// PrefixTokens returns about how many tokens the system prompt and the tools of a request have.
func PrefixTokens(system []string, tools []llm.Spec) (n int) {
	for _, s := range system {
		n += TextTokens(s)
	}
	for _, t := range tools {
		n += callTokens + TextTokens(t.Name) + TextTokens(t.Description) + TextTokens(string(t.Schema))
	}
	return n
}

// PartTokens returns about how many tokens parts have.
func PartTokens(parts llm.Parts) (n int) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += TextTokens(p.Text)
		case llm.Image:
			n += imageTokens
		case llm.Thinking: // the text is a summary of what the opaque part holds, or the same
			n += max(TextTokens(p.Text), len(p.Opaque)/4)
		case llm.Call:
			n += callTokens + TextTokens(p.Name) + TextTokens(string(p.Input)) + TextTokens(p.Malformed)
		case llm.Result:
			n += callTokens + PartTokens(p.Parts)
		}
	}
	return n
}

// firstEastern is where the scripts of East Asia begin. It saves the look into the tables.
const firstEastern = 0x2e80

// TextTokens returns about how many tokens a text has: one for four ASCII characters, one for two letters of the other
// alphabets (Latin, Greek, Cyrillic, Arabic, Hebrew), and one for each character of any other script, above all of
// Chinese, Japanese and Korean, and for each symbol.
func TextTokens(text string) int {
	quarters := 0
	for _, r := range text {
		switch {
		case r <= unicode.MaxASCII:
			quarters++
		case r < firstEastern && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Arabic,
			unicode.Hebrew):
			quarters += 2
		default:
			quarters += 4
		}
	}
	return (quarters + 3) / 4
}

// Shorten returns s, or its beginning and its end with a note between them, so that it has about most tokens.
func Shorten(s string, most int) string {
	size := TextTokens(s)
	if size <= max(most, 0) {
		return s
	}
	const note = "\n[... cut here: the context window has no room for all of it ...]\n"
	keep := int(int64(len(s)) * int64(max(most-TextTokens(note), 0)) / int64(size))
	return text.FirstBytes(s, keep*2/3) + note + text.LastBytes(s, keep/3)
}

// Fit shortens the longest of the texts until all together have at most about so many tokens. Others stay as they are.
func Fit(texts []string, most int) []string {
	fitted := append([]string(nil), texts...)
	for range 4 * len(fitted) {
		sum, longest := 0, 0
		for i, t := range fitted {
			if sum += TextTokens(t); TextTokens(t) > TextTokens(fitted[longest]) {
				longest = i
			}
		}
		if sum <= most {
			break
		}
		size := TextTokens(fitted[longest])
		fitted[longest] = Shorten(fitted[longest], max(size-(sum-most), size/2))
	}
	return fitted
}
