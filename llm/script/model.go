package script

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"muster/llm"
)

// provider marks the thinking of scripted replies.
const provider = "script"

// model plays a script. It keeps no state except how often a turn has failed.
type model struct {
	script *Script
	pace   float64
	mu     sync.Mutex
	failed map[attempt]int // how often a turn has failed; the conversation does not tell
}

// attempt is a turn at its place in one member's conversation.
type attempt struct {
	key    string
	turn   *turn
	played int
}

// Reply says the line that the conversation has come to.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if err := context.Cause(ctx); err != nil {
		return llm.Reply{}, err
	}
	me, err := m.script.speaker(r.CacheKey)
	if err != nil {
		return llm.Reply{}, err
	}
	w := m.script.playTo(me, r)
	t, _ := w.turn()
	t = cmp.Or(t, &turn{Say: "Nothing more to say.", Stop: placed[llm.Stop]{value: llm.StopEnd}})
	reply, err := w.reply(t, r)
	if err != nil {
		return llm.Reply{}, llm.Errorf(llm.BadRequest, "%s:%d: %s says nothing: %w", m.script.file, t.line, me, err)
	}
	failure := m.failure(attempt{r.CacheKey, t, w.played})
	if failure == nil || failure.Kind == llm.Incomplete {
		if err := m.stream(ctx, reply.Message, time.Duration(t.Wait), emit, failure != nil); err != nil {
			return llm.Reply{}, err
		}
	}
	if failure != nil {
		return llm.Reply{}, failure
	}
	return reply, nil
}

// speaker returns the member that the cache key of a request stands for.
func (s *Script) speaker(key string) (string, error) {
	if key == "" && len(s.speakers) == 1 {
		for name := range s.speakers {
			return name, nil
		}
	}
	name, rest, _ := strings.Cut(key, "@")
	if _, part, ok := strings.Cut(rest, "/"); ok {
		name += "/" + part
	}
	if name == "" {
		return "", llm.Errorf(llm.BadRequest,
			"%s: the request does not say who speaks, and the script has several speakers", s.file)
	}
	return name, nil
}

// failure returns the error that a turn ends in this time, or nil if it has failed often enough.
func (m *model) failure(o attempt) *llm.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := o.turn.Error
	if f == nil || m.failed[o] >= f.Times.value {
		return nil
	}
	m.failed[o]++
	e := llm.Errorf(f.Kind, "rehearsed by the script")
	e.After = time.Duration(f.After)
	return e
}

// reply returns the reply of a turn, with its values filled in.
func (w *playback) reply(t *turn, r llm.Request) (reply llm.Reply, err error) {
	msg := llm.Message{Role: llm.Assistant}
	think, _, errThink := w.fill(t.Think)
	say, _, errSay := w.fill(t.Say)
	if err := cmp.Or(errThink, errSay); err != nil {
		return reply, err
	}
	if think != "" {
		msg.Parts = append(msg.Parts, llm.Thinking{Text: think, Provider: provider})
	}
	if say != "" {
		msg.Parts = append(msg.Parts, llm.Text{Text: say})
	}
	for i, c := range t.Do {
		v, err := mapTexts(c.input, w.fillAny)
		if err != nil {
			return reply, err
		}
		input, err := json.Marshal(v)
		if err != nil {
			return reply, fmt.Errorf("the input of %s has no JSON form: %w", c.tool, err)
		}
		msg.Parts = append(msg.Parts, llm.Call{ID: w.callID(r, i), Name: c.tool, Input: input})
	}
	return llm.Reply{Message: msg, Stop: t.Stop.value, Usage: usage(r, msg), Model: provider}, nil
}

// callID returns an id that is the same whenever the same request is sent, and different everywhere else.
func (w *playback) callID(r llm.Request, i int) string {
	// Two members that play the same turn must not share an id, because results are matched by it.
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(append([]string{r.CacheKey}, w.heard...), "\x00")) // a hash never fails
	return fmt.Sprintf("call_%d_%d_%08x", w.played, i, uint32(h.Sum64()))
}

// usage estimates tokens at four characters each. Everything up to the last reply counts as read from a
// cache.
func usage(r llm.Request, said llm.Message) llm.Usage {
	fresh, old := 0, 0
	for _, s := range r.System {
		fresh += utf8.RuneCountInString(s)
	}
	for _, t := range r.Tools {
		fresh += utf8.RuneCountInString(t.Name) + utf8.RuneCountInString(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		if m.Role == llm.Assistant { // what was before it was sent before
			fresh, old = 0, old+fresh
		}
		fresh += characters(m.Parts)
	}
	return llm.Usage{Input: estimateTokens(fresh), CacheRead: estimateTokens(old),
		Output: estimateTokens(characters(said.Parts))}
}

// estimateTokens returns about how many tokens a text of so many characters has, for a usage that looks real.
func estimateTokens(characters int) int { return (characters + 3) / 4 }

// characters returns the number of characters in parts.
func characters(parts []llm.Part) (n int) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += utf8.RuneCountInString(p.Text)
		case llm.Thinking:
			n += utf8.RuneCountInString(p.Text)
		case llm.Call:
			n += len(p.Name) + len(p.Input)
		case llm.Result:
			n += characters(p.Parts)
		case llm.Image:
			n += len(p.Data)
		}
	}
	return n
}

// stream emits a reply in pieces, as a vendor would, so that what shows streaming text can be tried with a
// script. The wait is spread over the pieces. With cut it stops in the middle.
func (m *model) stream(ctx context.Context, msg llm.Message, wait time.Duration, emit func(llm.Delta), cut bool) error {
	deltas := []llm.Delta{{}} // at work
	for i, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			for _, s := range splitForStreaming(p.Text) {
				deltas = append(deltas, llm.Delta{Part: i, Think: s})
			}
		case llm.Text:
			for _, s := range splitForStreaming(p.Text) {
				deltas = append(deltas, llm.Delta{Part: i, Text: s})
			}
		}
	}
	if cut {
		deltas = deltas[:(len(deltas)+1)/2]
	}
	wait = time.Duration(float64(wait) * m.pace / float64(len(deltas)))
	for _, d := range deltas {
		emit(d)
		if wait <= 0 {
			continue
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// splitForStreaming cuts a text into a few pieces, between words.
func splitForStreaming(text string) (out []string) {
	const few = 4
	for n := len(text)/few + 1; len(text) > n; {
		at := strings.IndexByte(text[n:], ' ')
		if at < 0 {
			break
		}
		out = append(out, text[:n+at])
		text = text[n+at:]
	}
	return append(out, text)
}
