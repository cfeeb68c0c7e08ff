package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/store/mem"
)

func reader(t *testing.T, l muster.Log) *Transcript {
	t.Helper()
	return require.Value(Open(t.Context(), l, "alice"))(t)
}

// damagedEntries returns how many entries of alice's transcript cannot be read.
func damagedEntries(t interface{ Fatal(...any) }, l muster.Log) (n int) {
	for _, err := range Read(context.Background(), l, "alice", 0) {
		if errors.Is(err, muster.ErrCorrupt) {
			n++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func text(s string) []llm.Part { return []llm.Part{llm.Text{Text: s}} }

func reply(s string, ids ...string) llm.Reply {
	r := llm.Reply{Message: llm.Message{Parts: text(s)}, Stop: llm.StopEnd}
	for _, id := range ids {
		r.Stop = llm.StopTools
		r.Message.Parts = append(r.Message.Parts, llm.Call{ID: id, Name: "bash",
			Input: json.RawMessage(`{"command":"a < b && c > d"}`)})
	}
	return r
}

func result(id, s string) llm.Result { return llm.Result{ID: id, Parts: text(s)} }

// short is a conversation in short: one string a message.
func short(ms []llm.Message) (out []string) {
	for _, m := range ms {
		s := string(m.Role[:1])
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				s += " " + p.Text
			case llm.Call:
				s += " ?" + p.ID
			case llm.Result:
				s += " !" + p.ID
			}
		}
		out = append(out, s)
	}
	return out
}

func same(t *testing.T, got []llm.Message, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, short(got)); d != "" {
		t.Fatalf("the conversation is not as expected (-want +got):\n%s", d)
	}
}

func TestResultsComeFirstAndInTheOrderOfTheCalls(t *testing.T) {
	ctx, tr := t.Context(), reader(t, mem.New().Log())
	require.NoError(t, tr.User(ctx, text("go"), nil))
	require.NoError(t, tr.User(ctx, text("mail"), nil))
	require.NoError(t, tr.Reply(ctx, reply("look", "a", "b")))
	require.NoError(t, tr.Result(ctx, result("b", "2")))
	require.NoError(t, tr.User(ctx, text("late"), nil))
	same(t, tr.Messages(), "u go mail", "a look ?a ?b") // nothing after calls without all results
	if got := tr.Unanswered(); len(got) != 1 || got[0].ID != "a" {
		t.Fatalf("unanswered: %v", got)
	}
	require.NoError(t, tr.Result(ctx, result("a", "1")))
	require.NoError(t, tr.User(ctx, text("more"), nil))
	same(t, tr.Messages(), "u go mail", "a look ?a ?b", "u !a !b late more")
	if err := tr.Result(ctx, result("a", "another")); err != nil {
		t.Fatalf("a second answer must change nothing: %v", err)
	}
	if err := tr.Result(ctx, result("x", "?")); !errors.Is(err, muster.ErrInvalid) {
		t.Fatalf("a result without a call: %v", err)
	}
	require.NoError(t, tr.Reply(ctx, reply("next", "c")))
	if err := tr.Reply(ctx, reply("again")); !errors.Is(err, muster.ErrInvalid) {
		t.Fatalf("a reply before the answers: %v", err)
	}
	if got := tr.Messages(); len(got) != 4 {
		t.Fatalf("%d messages", len(got))
	}
}

func TestWhatCannotBeSentIsLeftOut(t *testing.T) {
	ctx, tr := t.Context(), reader(t, mem.New().Log())
	require.NoError(t, tr.User(ctx, text("go"), nil))
	cut := reply("cut", "a")
	cut.Stop = llm.StopMax
	require.NoError(t, tr.Reply(ctx, cut))
	if got := tr.Unanswered(); len(got) != 0 {
		t.Fatalf("calls of a cut reply are never run, but %v waits", got)
	}
	require.NoError(t, tr.User(ctx, text("smaller"), nil))
	require.NoError(t, tr.Reply(ctx, llm.Reply{Stop: llm.StopEnd}))
	require.NoError(t, tr.User(ctx, text("well"), nil))
	require.NoError(t, tr.Reply(ctx, llm.Reply{Message: llm.Message{Parts: text("paused")}, Stop: llm.StopPaused}))
	require.NoError(t, tr.Reply(ctx, reply("done")))
	require.NoError(t, tr.Mark(ctx, "a note"))
	same(t, tr.Messages(), "u go", "a cut", "u smaller well", "a paused done")
	if tr.LastMark() != "a note" {
		t.Fatalf("mark %q", tr.LastMark())
	}
}

func TestReopenedItIsTheSameByteForByte(t *testing.T) {
	s := mem.New()
	ctx, tr := t.Context(), reader(t, s.Log())
	require.NoError(t, tr.User(ctx, []llm.Part{llm.Text{Text: "<mail> \xff & \u2028"},
		llm.Image{Media: "image/png", Data: []byte{0, 1, 255}}}, nil))
	r := reply("think", "a")
	r.Message.Parts = append([]llm.Part{llm.Thinking{Text: "hm", Provider: "p",
		Opaque: json.RawMessage(`{"sig" : "<x>"}`)}}, r.Message.Parts...)
	r.Usage, r.Model = llm.Usage{Input: 3, Output: 4}, "m"
	require.NoError(t, tr.Reply(ctx, r))
	require.NoError(t, tr.Result(ctx, llm.Result{ID: "a", IsError: true, Files: []string{"/out"}, Parts: text("<reminder>")}))
	again := reader(t, s.Log())
	if d := cmp.Diff(tr.Messages(), again.Messages()); d != "" {
		t.Fatalf("resumed conversation differs:\n%s", d)
	}
	if again.Pos() != tr.Pos() || damagedEntries(t, s.Log()) != 0 {
		t.Fatalf("resumed at %d, not %d; %d damaged", again.Pos(), tr.Pos(), damagedEntries(t, s.Log()))
	}
	var kinds []Kind
	for e, err := range Read(ctx, s.Log(), "alice", 0) {
		require.NoError(t, err)
		kinds = append(kinds, e.Kind)
		if e.At == 0 || e.Kind == KindReply && (e.Usage.Output != 4 || e.Model != "m" || e.Stop != llm.StopTools) {
			t.Fatalf("entry %+v", e)
		}
	}
	if d := cmp.Diff([]Kind{KindUser, KindReply, KindResult}, kinds); d != "" {
		t.Fatal(d)
	}
}

func TestASecondWriterIsRefused(t *testing.T) {
	s := mem.New()
	ctx := t.Context()
	old, new := reader(t, s.Log()), reader(t, s.Handle().Log())
	require.NoError(t, new.User(ctx, text("mine"), nil))
	err := old.User(ctx, text("too late"), nil)
	if !errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrStale) {
		t.Fatalf("a late writer got %v", err)
	}
	if len(old.Messages()) != 0 {
		t.Fatal("what was refused is in the conversation")
	}
	require.NoError(t, new.User(ctx, text("still mine"), nil))
	same(t, reader(t, s.Log()).Messages(), "u mine still mine")
	// Who takes a member over refuses the process that hosted it, before it has anything to say.
	next := reader(t, s.Handle().Log())
	require.NoError(t, next.TakeOver(ctx, "host-2.1"))
	if err := new.Reply(ctx, reply("too late")); !errors.Is(err, muster.ErrFenced) {
		t.Fatalf("the late host wrote: %v", err)
	}
	require.NoError(t, next.Reply(ctx, reply("in time")))
	same(t, reader(t, s.Log()).Messages(), "u mine still mine", "a in time")
}

func letter(i int) (text string, mail []muster.Message) {
	return fmt.Sprintf("<mail>mail %d</mail>", i), []muster.Message{{ID: muster.MessageID(fmt.Sprint("m", i)), From: "bob",
		Type: muster.MailMessage, At: float64(i + 1), Content: fmt.Sprint("mail ", i)}}
}

func contents(ms []muster.Message) (out []string) {
	for _, m := range ms {
		out = append(out, fmt.Sprintf("%s %s %.0f %s", m.From, m.Type, m.At, m.Content))
	}
	return out
}

func TestDeliveredMail(t *testing.T) {
	s := mem.New()
	ctx, tr := t.Context(), reader(t, s.Log())
	for i := range 25 {
		line, mail := letter(i)
		require.NoError(t, tr.Deliver(ctx, line, mail))
		switch i {
		case 12:
			require.NoError(t, tr.Fresh(ctx, text("anew"), nil))
		case 14:
			require.NoError(t, tr.Compress(ctx, []llm.Message{{Role: llm.User, Parts: text("shorter")}}, nil, nil, "a test"))
		}
	}
	require.NoError(t, tr.User(ctx, text("told of a claim"), []muster.MessageID{"claim-3"}))
	var want []string
	for i := 5; i < 25; i++ {
		want = append(want, fmt.Sprintf("bob message %d mail %d", i+1, i))
	}
	check := func(tr *Transcript) {
		t.Helper()
		for i := range 25 {
			if !tr.Delivered(muster.MessageID(fmt.Sprint("m", i))) {
				t.Fatalf("mail %d is not known as delivered", i)
			}
		}
		if !tr.Delivered("claim-3") || tr.Delivered("m25") || tr.Delivered("") {
			t.Fatal("wrong ids count as delivered")
		}
	}
	for _, n := range []int{99, 2, 0} {
		last := require.Value(LastDelivered(ctx, s.Log(), "alice", n))(t)
		if d := cmp.Diff(want[20-min(n, 20):], contents(last), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("last %d delivered (-want +got):\n%s", n, d)
		}
	}
	check(tr)
	check(reader(t, s.Log()))
	if d := cmp.Diff(reader(t, s.Log()).Messages(), tr.Messages()); d != "" {
		t.Fatal(d)
	}
}

func TestAnswersMayComeAtOnce(t *testing.T) {
	s := mem.New()
	ctx, tr := t.Context(), reader(t, s.Log())
	require.NoError(t, tr.User(ctx, text("go"), nil))
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprint("c", i))
	}
	require.NoError(t, tr.Reply(ctx, reply("look", ids...)))
	var g sync.WaitGroup
	errs := make(chan error, len(ids))
	for _, id := range ids {
		g.Go(func() { errs <- tr.Result(ctx, result(id, id)) })
	}
	for range 10 {
		g.Go(func() { tr.Messages(); tr.Unanswered() })
	}
	g.Wait()
	for range ids {
		require.NoError(t, <-errs)
	}
	last := tr.Messages()[2]
	for i, p := range last.Parts {
		if p.(llm.Result).ID != ids[i] {
			t.Fatalf("result %d answers %s", i, p.(llm.Result).ID)
		}
	}
}

func TestUnwritable(t *testing.T) {
	ctx, tr := t.Context(), reader(t, mem.New().Log())
	require.NoError(t, tr.User(ctx, text("go"), nil))
	bad := reply("x", "a")
	bad.Message.Parts[1] = llm.Call{ID: "a", Name: "bash", Input: json.RawMessage(`{"command":`)}
	if err := tr.Reply(ctx, bad); !errors.Is(err, muster.ErrInvalid) {
		t.Fatalf("a call whose input is no JSON: %v", err)
	}
	same(t, tr.Messages(), "u go")
}
