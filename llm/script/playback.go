package script

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
	"muster/llm"
)

// playback follows a conversation through the script: what came in, and which turn each reply was.
type playback struct {
	script *Script
	me     string
	role   string
	// frames are the speaker's own turns, then the scenes that were entered. The last one speaks.
	frames []*sceneProgress
	heard  []string // all that came in, by message
	played int      // replies so far
}

// sceneProgress is a list of turns and how many of them were played.
type sceneProgress struct {
	turns []turn
	next  int
	// repeating says that the next turn was played and is repeated until its until matches.
	repeating bool
	// since is what came in since the last turn of the list.
	since    string
	captured map[string]string
	at       int // where the cue of the scene matched, in the message that entered it
}

// playTo plays the script up to the end of the request's conversation. It begins at the first message each
// time, because the conversation is all that a model gets: a process that resumes a run continues where the
// last one was killed.
func (s *Script) playTo(me string, r llm.Request) *playback {
	w := &playback{script: s, me: me, role: roleIn(me, r)}
	turns, ok := s.speakers[me]
	if !ok {
		turns = s.speakers[w.role]
	}
	w.frames = []*sceneProgress{{turns: turns, captured: map[string]string{}}}
	for _, m := range r.Messages {
		if m.Role == llm.User {
			w.receive(incomingText(m))
			continue
		}
		if t, f := w.turn(); t != nil {
			f.play(t)
		}
		w.played++
	}
	return w
}

// incomingText returns all text that a user message brings in.
func incomingText(m llm.Message) string {
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

// receive adds what came in, for the turns of every list that has begun, and enters the scenes whose cue
// matches it.
func (w *playback) receive(text string) {
	w.heard = append(w.heard, text)
	for _, f := range w.frames {
		f.since += text + "\n"
	}
	var entered []*sceneProgress
	for _, s := range w.script.scenes {
		if len(s.Who) > 0 && !slices.Contains(s.Who, w.me) && !slices.Contains(s.Who, w.role) {
			continue
		}
		seen := map[string]bool{}
		for _, at := range s.Cue.FindAllStringSubmatchIndex(text, -1) {
			captured := groups(s.Cue.Regexp, text, at)
			if key := fingerprint(s.Cue.Regexp, captured); !seen[key] {
				seen[key] = true
				entered = append(entered,
					&sceneProgress{turns: s.Turns, since: text + "\n", captured: captured, at: at[0]})
			}
		}
	}
	slices.SortStableFunc(entered, func(a, b *sceneProgress) int { return a.at - b.at })
	slices.Reverse(entered) // the last frame speaks, so the first to occur is the first to be played
	w.frames = append(w.frames, entered...)
}

// turn returns the turn to play now and the list that it is from, or nil when nothing is left. A scene that
// has come to its end gives way to the one that was interrupted by it.
func (w *playback) turn() (*turn, *sceneProgress) {
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

// turn returns the next turn that what came in allows, or nil at the end of the list. A turn whose cue does
// not match is skipped for good.
func (f *sceneProgress) turn() *turn {
	for f.next < len(f.turns) {
		t := &f.turns[f.next]
		if f.repeating {
			if !f.matches(t.Until) {
				return t
			}
			f.repeating = false
		} else if t.Cue.Regexp == nil || f.matches(t.Cue) {
			return t
		}
		f.next++
	}
	return nil
}

// play moves on after t was said. A turn with an until stays, and is said again until what comes in matches.
func (f *sceneProgress) play(t *turn) {
	f.since = ""
	if t.Until.Regexp != nil {
		f.repeating = true
		return
	}
	f.next++
}

// matches looks for the cue in what came in since the last turn, and keeps what it captures.
func (f *sceneProgress) matches(cue cue) bool {
	at := cue.FindStringSubmatchIndex(f.since)
	maps.Copy(f.captured, groups(cue.Regexp, f.since, at))
	return at != nil
}

// groups returns the named groups of a match. Groups that took no part in it are left out, and so is
// everything if at is nil.
func groups(re *regexp.Regexp, text string, at []int) map[string]string {
	out := map[string]string{}
	for i, name := range re.SubexpNames() {
		if name != "" && at != nil && at[2*i] >= 0 {
			out[name] = text[at[2*i]:at[2*i+1]]
		}
	}
	return out
}

// fingerprint identifies what a match captured, so that a cue enters its scene once for each different
// capture.
func fingerprint(re *regexp.Regexp, captured map[string]string) string {
	var b strings.Builder
	for _, name := range re.SubexpNames() {
		b.WriteString(captured[name])
		b.WriteByte(0)
	}
	return b.String()
}

var (
	// How the runtime tells a member its role: in the system prompt, and again in the first message of a
	// fresh conversation.
	systemRolePattern   = lazyregexp.New(`Your role is ([^.\n]+)\.`)
	identityRolePattern = lazyregexp.New(`<identity>You are '[^']*', role: ([^,<]+),`)
)

// roleIn returns the speaker's role as the runtime told it in the request.
func roleIn(me string, r llm.Request) string {
	if strings.Contains(me, "/") {
		return "subagent"
	}
	for _, s := range r.System {
		if m := systemRolePattern().FindStringSubmatch(s); m != nil {
			return m[1]
		}
	}
	for _, msg := range r.Messages {
		if m := identityRolePattern().FindStringSubmatch(incomingText(msg)); msg.Role == llm.User && m != nil {
			return m[1]
		}
	}
	return me // the lead
}
