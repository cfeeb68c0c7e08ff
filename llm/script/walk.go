package script

import (
	"regexp"
	"slices"
	"sort"
	"strings"

	"muster/llm"
)

// walk follows a conversation through the script: what came in, and which turn each reply was.
type walk struct {
	script *Script
	me     string
	role   string
	frames []*frame // the speaker's own turns first, then the scenes it is in; the last one speaks
	heard  []string // all that came in, by message
	played int      // replies so far
}

// frame is a list of turns and how far it is.
type frame struct {
	turns    []*turn
	next     int
	again    bool   // the next turn was played and is waiting for its until
	since    string // what came in since its last turn
	captured map[string]string
}

// follow walks the request's conversation to its end.
func (s *Script) follow(me string, r llm.Request) *walk {
	w := &walk{script: s, me: me, role: roleIn(me, r)}
	turns, ok := s.speakers[me]
	if !ok {
		turns = s.speakers[w.role]
	}
	w.frames = []*frame{{turns: turns, captured: map[string]string{}}}
	for _, m := range r.Messages {
		if m.Role == llm.User {
			w.hear(words(m))
			continue
		}
		if t, f := w.turn(); t != nil {
			f.play(t)
		}
		w.played++
	}
	return w
}

// words is all that a message of the runtime's side brings in.
func words(m llm.Message) string {
	var texts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			texts = append(texts, p.Text)
		case llm.Result:
			texts = append(texts, p.Text())
		}
	}
	return strings.Join(texts, "\n")
}

// hear takes in what came and enters the scenes whose cue it has.
func (w *walk) hear(text string) {
	w.heard = append(w.heard, text)
	for _, f := range w.frames {
		f.since += text + "\n"
	}
	type entry struct {
		at int
		*frame
	}
	var entries []entry
	for _, s := range w.script.scenes {
		if len(s.who) > 0 && !slices.Contains(s.who, w.me) && !slices.Contains(s.who, w.role) {
			continue
		}
		seen := map[string]bool{}
		for _, at := range s.cue.FindAllStringSubmatchIndex(text, -1) {
			captured := groups(s.cue, text, at)
			if key := fingerprint(s.cue, captured); !seen[key] {
				seen[key] = true
				entries = append(entries, entry{at[0], &frame{turns: s.turns, since: text + "\n", captured: captured}})
			}
		}
	}
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].at < entries[j].at })
	for _, e := range slices.Backward(entries) { // the first to occur is the first to be played
		w.frames = append(w.frames, e.frame)
	}
}

// turn is the turn to play now and whose it is; nil when nothing is left.
func (w *walk) turn() (*turn, *frame) {
	for {
		f := w.frames[len(w.frames)-1]
		if t := f.turn(); t != nil {
			return t, f
		}
		if len(w.frames) == 1 {
			return nil, nil
		}
		w.frames = w.frames[:len(w.frames)-1]
	}
}

// turn is the list's next turn that what came in allows.
func (f *frame) turn() *turn {
	for f.next < len(f.turns) {
		t := f.turns[f.next]
		if f.again {
			if !f.matches(t.until) {
				return t
			}
			f.again = false
		} else if t.cue == nil || f.matches(t.cue) {
			return t
		}
		f.next++
	}
	return nil
}

// play moves on after t was said.
func (f *frame) play(t *turn) {
	f.since = ""
	if t.until != nil {
		f.again = true
		return
	}
	f.next++
}

// matches looks for the cue in what came in since the last turn, and keeps what it captures.
func (f *frame) matches(cue *regexp.Regexp) bool {
	at := cue.FindStringSubmatchIndex(f.since)
	for name, v := range groups(cue, f.since, at) {
		f.captured[name] = v
	}
	return at != nil
}

// groups are the named groups of a match.
func groups(re *regexp.Regexp, text string, at []int) map[string]string {
	out := map[string]string{}
	for i, name := range re.SubexpNames() {
		if name != "" && at != nil && at[2*i] >= 0 {
			out[name] = text[at[2*i]:at[2*i+1]]
		}
	}
	return out
}

func fingerprint(re *regexp.Regexp, captured map[string]string) string {
	var b strings.Builder
	for _, name := range re.SubexpNames() {
		b.WriteString(captured[name])
		b.WriteByte(0)
	}
	return b.String()
}

var (
	saysRole  = lazily(`Your role is ([^.\n]+)\.`)
	knowsRole = lazily(`<identity>You are '[^']*', role: ([^,<]+),`)
)

// roleIn is the speaker's role, as the runtime told it.
func roleIn(me string, r llm.Request) string {
	if strings.Contains(me, "/") {
		return "subagent"
	}
	for _, s := range r.System {
		if m := saysRole().FindStringSubmatch(s); m != nil {
			return m[1]
		}
	}
	for _, msg := range r.Messages {
		if m := knowsRole().FindStringSubmatch(words(msg)); msg.Role == llm.User && m != nil {
			return m[1]
		}
	}
	return me // the lead
}
