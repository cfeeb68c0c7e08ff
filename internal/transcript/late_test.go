package transcript

import (
	"errors"
	"testing"

	"muster"
	"muster/llm"
	"muster/store/mem"
)

// A process that hosted a member, was stopped, and wakes after another has taken the member over, writes nothing more.
func TestALateHostIsRefused(t *testing.T) {
	ctx, s := t.Context(), mem.New()
	open := func(s muster.Store) *Transcript {
		tr, err := Open(ctx, s.Log(), "alice")
		must(t, err)
		return tr
	}
	late := open(s)
	must(t, late.User(ctx, []llm.Part{llm.Text{Text: "hello"}}, nil))
	next := open(s.Handle())
	must(t, next.TakeOver(ctx, "host-2.1"))
	if err := late.Reply(ctx,
		llm.Reply{Message: llm.Message{Parts: []llm.Part{llm.Text{Text: "too late"}}}}); !errors.Is(err,
		muster.ErrFenced) {
		t.Fatalf("the late host wrote: %v", err)
	}
	must(t, next.Reply(ctx, llm.Reply{Message: llm.Message{Parts: []llm.Part{llm.Text{Text: "in time"}}}}))
	if n := len(open(s.Handle()).Messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
}
