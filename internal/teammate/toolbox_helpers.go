package teammate

import (
	"context"
	"errors"
	"sync"
	"time"

	"muster"
	"muster/internal/text"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// helpers starts the helpers of a member: its subagents, and the reviewers of its work. Each helper has a name, a
// transcript and a cost of its own. The context of its calls carries it, so that the wrappers of models and tools know
// whose calls they are.
type helpers struct {
	diary *diary
	log   muster.Log

	mu   sync.Mutex
	last map[string]int // the highest number that a role has used in this process
}

type helper struct {
	diary      *diary
	name, role string
	talk       *transcript.Transcript
	turns      int // the loop takes one turn after the other
}

type helperKey struct{}

// helperOf returns the helper whose call it is, nil for a call of the member itself.
func helperOf(ctx context.Context) *helper {
	h, _ := ctx.Value(helperKey{}).(*helper)
	return h
}

// begin starts a helper of a role and returns the context in which it works. about says in a line what it is to do.
// Invariant: the helper's transcript exists before its first event, and belongs to no other helper.
func (x *helpers) begin(ctx context.Context, role, model, about string) (_ context.Context, end func(), err error) {
	h := &helper{diary: x.diary, role: role}
	for isNew := false; !isNew; {
		name := muster.HelperName(x.diary.name, role, x.next(role))
		h.name = string(name)
		if h.talk, err = transcript.Open(ctx, x.log, name); err != nil {
			return ctx, nil, err
		}
		if h.talk.Pos() > 0 { // of an earlier process
			continue
		}
		err = h.talk.Mark(ctx, about)
		if isNew = err == nil; err != nil && !errors.Is(err, muster.ErrFenced) {
			return ctx, nil, err
		}
	}
	began := time.Now()
	h.event(ctx, journal.AgentStarted, map[string]any{"model": model, "text": text.CutBytes(text.OneLine(about), 120)})
	return context.WithValue(ctx, helperKey{}, h), func() {
		x.diary.dropped(ctx, "ending a helper's transcript", h.answerOpen(context.WithoutCancel(ctx)))
		h.event(ctx, journal.AgentEnded, map[string]any{"turns": h.turns, "seconds": seconds(time.Since(began))})
	}, nil
}

func (x *helpers) next(role string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last == nil {
		x.last = map[string]int{}
	}
	x.last[role]++
	return x.last[role]
}

func (h *helper) event(ctx context.Context, kind string, fields map[string]any) {
	h.diary.event(ctx, kind, h.sign(fields))
}

// sign adds to the fields of an event whose it is. Without a helper it is the member's, and nothing is added.
func (h *helper) sign(fields map[string]any) map[string]any {
	if h != nil {
		fields["subagent"], fields["agent"], fields["role"] = true, h.name, h.role
	}
	return fields
}

// heard writes what was added to the conversation since the last reply.
func (h *helper) heard(ctx context.Context, messages []llm.Message) error {
	had := h.talk.Messages()
	if len(had) > 0 && (len(messages) < len(had) || len(messages[0].Parts) < len(had[0].Parts)) {
		if err := h.answerOpen(ctx); err != nil {
			return err
		}
		if len(messages) == 1 { // it begins again
			return h.talk.Fresh(ctx, messages[0].Parts, nil)
		}
		return h.talk.Compress(ctx, messages, nil, nil, "it has grown too long")
	}
	for i, m := range messages[max(len(had)-1, 0):] {
		parts := m.Parts
		if i == 0 && len(had) > 0 {
			parts = parts[min(len(parts), len(had[len(had)-1].Parts)):]
		}
		var said llm.Parts
		for _, p := range parts {
			if r, isResult := p.(llm.Result); isResult {
				if err := h.talk.Result(ctx, r); err != nil {
					return err
				}
				continue
			}
			said = append(said, p)
		}
		if len(said) == 0 {
			continue
		}
		if err := h.talk.User(ctx, said, nil); err != nil {
			return err
		}
	}
	return nil
}

// answerOpen answers the calls of the last reply whose results no request has had. Nothing reads the conversation any
// more but people.
func (h *helper) answerOpen(ctx context.Context) error {
	for _, c := range h.talk.Unanswered() {
		result := llm.Result{ID: c.ID, Parts: llm.Parts{llm.Text{Text: "(the agent has ended)"}}}
		if err := h.talk.Result(ctx, result); err != nil {
			return err
		}
	}
	return nil
}

// helperModel is a model that helpers ask. It keeps their conversations, and tells what each turn has cost. Everything
// that a helper hears is in its next request, so that helpers need no conversation of their own kind.
type helperModel struct{ llm.Model }

// Reply asks the model for the helper of the context.
func (m helperModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	h := helperOf(ctx)
	if err := h.heard(ctx, r.Messages); err != nil {
		return llm.Reply{}, err
	}
	began := time.Now()
	r.Agent, r.Role = h.name, h.role
	reply, err := m.Model.Reply(ctx, r, emit)
	if err != nil {
		return reply, err
	}
	h.turns++
	err = h.talk.Reply(ctx, reply)
	// The event is written even if the record fails, because the reply is paid in any case.
	h.diary.replied(ctx, reply, h.sign(map[string]any{"turn": h.turns, "seconds": seconds(time.Since(began))}))
	return reply, err
}
