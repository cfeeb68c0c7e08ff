package script

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"muster/llm"
)

const provider = "script"

// model plays a script.
type model struct {
	script *Script
	pace   float64
	mu     sync.Mutex
	failed map[occasion]int // how often a turn has failed; the conversation does not tell
}

// occasion is a turn at its place in one member's conversation.
type occasion struct {
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
	w := m.script.follow(me, r)
	t, _ := w.turn()
	if t == nil {
		t = &turn{say: "Nothing more to say.", stop: llm.StopEnd}
	}
	reply, err := w.reply(t, r)
	if err != nil {
		return llm.Reply{}, llm.Errorf(llm.BadRequest, "%s:%d: %s says nothing: %w", m.script.file, t.line, me, err)
	}
	failure := m.failure(occasion{r.CacheKey, t, w.played})
	if failure != nil && failure.kind != llm.Incomplete {
		return llm.Reply{}, rehearsed(failure)
	}
	if err := m.stream(ctx, reply.Message, t.wait, emit, failure != nil); err != nil {
		return llm.Reply{}, err
	}
	if failure != nil {
		return llm.Reply{}, rehearsed(failure)
	}
	return reply, nil
}

// speaker is who a request's key stands for.
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
		return "", llm.Errorf(llm.BadRequest, "%s: the request does not say who speaks, and the script has several speakers", s.file)
	}
	return name, nil
}

// failure is the error that a turn ends in this time, nil if it has failed often enough.
func (m *model) failure(o occasion) *failure {
	if o.turn.fail == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed[o] >= o.turn.fail.times {
		return nil
	}
	m.failed[o]++
	return o.turn.fail
}

func rehearsed(f *failure) *llm.Error {
	e := llm.Errorf(f.kind, "rehearsed by the script")
	e.After = f.after
	return e
}

// reply makes the reply of a turn, with its values filled in.
func (w *walk) reply(t *turn, r llm.Request) (reply llm.Reply, err error) {
	msg := llm.Message{Role: llm.Assistant}
	if t.think != "" {
		text, _, err := w.fill(t.think)
		if err != nil {
			return reply, err
		}
		msg.Parts = append(msg.Parts, llm.Thinking{Text: text, Provider: provider})
	}
	if t.say != "" {
		text, _, err := w.fill(t.say)
		if err != nil {
			return reply, err
		}
		msg.Parts = append(msg.Parts, llm.Text{Text: text})
	}
	for i, c := range t.calls {
		v, err := w.fillAll(c.input)
		if err != nil {
			return reply, err
		}
		input, err := json.Marshal(v)
		if err != nil {
			return reply, fmt.Errorf("the input of %s has no JSON form: %w", c.tool, err)
		}
		msg.Parts = append(msg.Parts, llm.Call{ID: w.callID(r, i), Name: c.tool, Input: input})
	}
	return llm.Reply{Message: msg, Stop: t.stop, Usage: usage(r, msg), Model: provider}, nil
}

// callID is the same whenever the same request is asked, and another in every other place.
func (w *walk) callID(r llm.Request, i int) string {
	h := fnv.New64a()
	h.Write([]byte(r.CacheKey))
	for _, text := range w.heard {
		h.Write([]byte{0})
		h.Write([]byte(text))
	}
	return fmt.Sprintf("call_%d_%d_%08x", w.played, i, uint32(h.Sum64()))
}

// usage is an estimate: four characters a token, and everything up to the last reply read from a cache.
func usage(r llm.Request, said llm.Message) llm.Usage {
	old := 0
	for _, s := range r.System {
		old += utf8.RuneCountInString(s)
	}
	for _, t := range r.Tools {
		old += utf8.RuneCountInString(t.Name) + utf8.RuneCountInString(t.Description) + len(t.Schema)
	}
	fresh := old
	old = 0
	for _, m := range r.Messages {
		if m.Role == llm.Assistant { // what was before it was sent before
			old += fresh
			fresh = 0
		}
		fresh += size(m.Parts)
	}
	return llm.Usage{Input: tokens(fresh), CacheRead: tokens(old), Output: tokens(size(said.Parts))}
}

func tokens(characters int) int { return (characters + 3) / 4 }

func size(parts []llm.Part) (n int) {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += utf8.RuneCountInString(p.Text)
		case llm.Thinking:
			n += utf8.RuneCountInString(p.Text)
		case llm.Call:
			n += len(p.Name) + len(p.Input)
		case llm.Result:
			n += size(p.Parts)
		case llm.Image:
			n += len(p.Data)
		}
	}
	return n
}

// stream shows a reply in pieces, the wait spread over them. cut: it breaks off in the middle.
func (m *model) stream(ctx context.Context, msg llm.Message, wait time.Duration, emit func(llm.Delta), cut bool) error {
	deltas := []llm.Delta{{}} // at work
	for i, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			for _, s := range pieces(p.Text) {
				deltas = append(deltas, llm.Delta{Part: i, Think: s})
			}
		case llm.Text:
			for _, s := range pieces(p.Text) {
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

// pieces cuts a text into a few, between words.
func pieces(text string) (out []string) {
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
