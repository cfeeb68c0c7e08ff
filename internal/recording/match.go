package recording

import (
	"fmt"
	"slices"
	"strings"

	"muster/internal/editdist"
	"muster/internal/lazyregexp"
	"muster/llm"
)

// matcher compares texts of a recording with those of a replay. Ids, commits and the like are other ones in each run:
// the first time that one stands in the place of another the two belong together, and must do so from then on. Times
// and durations are never compared.
type matcher struct {
	root, newRoot string
	ids           map[string]string // of the recording, to those of the replay
	taken         map[string]bool   // the values of ids
}

// newMatcher returns the matcher of a run that was recorded in one directory and is played in another.
func newMatcher(root, newRoot string) *matcher {
	return &matcher{root: root, newRoot: newRoot, ids: map[string]string{}, taken: map[string]bool{}}
}

// The expressions of what differs from run to run. volatile is what is the name of nothing: a date, a time, a duration,
// and the go command's word that a result is an old one. names are those, and ids. passing is what is said of the
// user's checkout, in which nothing is played, and of what was remembered before the run.
var (
	volatile = lazyregexp.New(`^(?:` + times + `)$`)
	names    = lazyregexp.New(`\b(?:` + times + `)|\(cached\)|\b[0-9a-f]{7,64}\b|\b[A-Z0-9]{10,32}\b|` +
		`\bgo-build\d+\b|\b(?:localhost|127\.0\.0\.1):\d+\b|\bpid \d+\b`)
	passing = lazyregexp.New(`(?m)^The user's checkout: .*\n|\n?<memories>\n(?s:.*?)</memories>|` +
		` The text that was there is kept in .*\.md\.`)
)

// times matches a date with its day, a time of day, a time in seconds, and durations.
const times = `\d{4}-\d\d-\d\d(?: \([A-Z][a-z]+\))?|\d\d:\d\d(?::\d\d)?(?:\.\d+)?\b|[12]\d{9}(?:\.\d+)?\b|` +
	`(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h))+\b|\d+(?:\.\d+)? (?:ms|s|seconds?|minutes?)\b|\(cached\)`

// difference is the first place where two texts differ.
type difference struct {
	recorded, now string
	at, atNow     int // bytes into the texts
}

// compare returns the first difference of a recorded text and one of the replay, nil if they say the same.
func (m *matcher) compare(recorded, now string) *difference {
	if recorded == now {
		return nil
	}
	if m.root != "" {
		recorded = strings.ReplaceAll(recorded, m.root, m.newRoot)
	}
	recorded, now = passing().ReplaceAllString(recorded, ""), passing().ReplaceAllString(now, "")
	a, b := names().FindAllStringIndex(recorded, -1), names().FindAllStringIndex(now, -1)
	i, j := 0, 0
	for n := 0; ; n++ {
		x, y := []int{len(recorded), len(recorded)}, []int{len(now), len(now)}
		if n < len(a) {
			x = a[n]
		}
		if n < len(b) {
			y = b[n]
		}
		if recorded[i:x[0]] != now[j:y[0]] {
			same, _ := editdist.CommonEnds([]byte(recorded[i:]), []byte(now[j:]))
			return &difference{recorded, now, i + same, j + same}
		}
		if !m.belong(recorded[x[0]:x[1]], now[y[0]:y[1]]) {
			return &difference{recorded, now, x[0], y[0]}
		}
		if i, j = x[1], y[1]; n >= len(a) && n >= len(b) {
			return nil
		}
	}
}

// belong reports whether a name of the recording and one of the replay may be the same thing, and remembers that they
// are.
func (m *matcher) belong(recorded, now string) bool {
	if recorded == now && m.ids[recorded] == "" || volatile().MatchString(recorded) && volatile().MatchString(now) {
		return true
	}
	if known := m.lookUp(recorded); known != "" {
		return known == now || strings.HasPrefix(now, known) && m.learn(recorded, now)
	}
	if recorded == "" || now == "" || m.taken[now] || len(recorded) != len(now) && isHex(recorded) {
		return false
	}
	return m.learn(recorded, now)
}

// learn remembers that two names are of the same thing.
func (m *matcher) learn(recorded, now string) bool {
	m.ids[recorded], m.taken[now] = now, true
	return true
}

// isHex reports whether a name is one of digits to the base 16, as ids of commits are.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// shortID is how much of a commit's id texts have.
const shortID = 7

// lookUp returns what stands for a name of the recording in the replay, "" if nothing is known of it. A commit may be
// known by its whole id or by the beginning.
func (m *matcher) lookUp(recorded string) string {
	if now, ok := m.ids[recorded]; ok {
		return now
	}
	if !isHex(recorded) || len(recorded) < shortID {
		return ""
	}
	for id, now := range m.ids {
		if strings.HasPrefix(id, recorded) && len(now) >= len(recorded) {
			return now[:len(recorded)]
		}
	}
	if len(recorded) >= 40 {
		return m.ids[recorded[:shortID]]
	}
	return ""
}

// translate returns a text of the recording with the names that the replay has.
func (m *matcher) translate(text string) string {
	if m.root != "" {
		text = strings.ReplaceAll(text, m.root, m.newRoot)
	}
	return names().ReplaceAllStringFunc(text, func(name string) string {
		if now := m.lookUp(name); now != "" && len(now) == len(name) {
			return now
		}
		return name
	})
}

// reply returns a recorded reply with the names that the replay has.
func (m *matcher) reply(r llm.Reply) llm.Reply {
	r.Message.Parts = slices.Clone(r.Message.Parts)
	for i, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			r.Message.Parts[i] = llm.Text{Text: m.translate(p.Text)}
		case llm.Call:
			p.Input = []byte(m.translate(string(p.Input)))
			r.Message.Parts[i] = p
		}
	}
	return r
}

// messages compares messages, and says where they differ.
func (m *matcher) messages(recorded, now []llm.Message) (where string, d *difference) {
	for i := range max(len(recorded), len(now)) {
		a, b := piecesAt(recorded, i), piecesAt(now, i)
		for j := range max(len(a), len(b)) {
			x, y := at(a, j), at(b, j)
			where = fmt.Sprintf("message %d of %d, part %d", i+1, len(recorded), j+1)
			if d := m.compare(x, y); d != nil {
				return where, d
			}
		}
	}
	return "", nil
}

// piecesAt returns the parts of a message as texts, none behind the last one.
func piecesAt(messages []llm.Message, i int) (texts []string) {
	if i >= len(messages) {
		return nil
	}
	for _, p := range messages[i].Parts {
		switch p := p.(type) {
		case llm.Text:
			texts = append(texts, p.Text)
		case llm.Thinking:
			texts = append(texts, "thinking: "+p.Text)
		case llm.Image:
			texts = append(texts, fmt.Sprintf("an image (%s, %d bytes)", p.Media, len(p.Data)))
		case llm.Call:
			texts = append(texts, p.Name+" "+string(p.Input)+p.Malformed)
		case llm.Result:
			texts = append(texts, p.Text())
		}
	}
	return texts
}

// at returns a text of a list, "" behind its end.
func at(texts []string, i int) string {
	if i < len(texts) {
		return texts[i]
	}
	return ""
}
