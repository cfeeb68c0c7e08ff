package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster"
	"muster/internal/compact"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/store/mem"
)

// wellFormed fails unless a provider would take the conversation.
func wellFormed(t *rapid.T, ms []llm.Message) {
	for i, m := range ms {
		if want := []llm.Role{llm.User, llm.Assistant}[i%2]; m.Role != want {
			t.Fatalf("message %d is the %s's: %v", i, m.Role, short(ms))
		}
		if len(m.Parts) == 0 {
			t.Fatalf("message %d is empty", i)
		}
		var calls []llm.Call
		if i > 0 {
			calls = ms[i-1].Calls()
		}
		for k, p := range m.Parts {
			r, is := p.(llm.Result)
			if is != (k < len(calls)) || is && r.ID != calls[k].ID {
				t.Fatalf("message %d does not answer the calls before it: %v", i, short(ms))
			}
		}
		if len(m.Parts) < len(calls) {
			t.Fatalf("message %d does not answer all calls before it: %v", i, short(ms))
		}
	}
}

// flat is a conversation part by part: what a provider's cache sees.
func flat(ms []llm.Message) (out []string) {
	for _, m := range ms {
		for _, p := range m.Parts {
			out = append(out, fmt.Sprintf("%s %T %+v", m.Role, p, p))
		}
	}
	return out
}

func TestConversationIsOnlyAppendedTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mem.New()
		ctx := context.Background()
		tr, err := Open(ctx, s.Log(), "alice")
		require.NoError(t, err)
		n := 0
		word := func() string { n++; return fmt.Sprint("w", n) }
		var before []string
		var given [][]llm.Message // what was handed out, and what it was then
		var was [][]string
		t.Repeat(map[string]func(*rapid.T){
			"user": func(*rapid.T) {
				require.NoError(t, tr.User(ctx, text(word()), []muster.MessageID{muster.MessageID(word())}))
			},
			"reply": func(rt *rapid.T) {
				for _, c := range tr.Unanswered() {
					require.NoError(t, tr.Result(ctx, result(c.ID, word())))
				}
				if len(tr.Messages()) == 0 {
					require.NoError(t, tr.User(ctx, text(word()), nil))
				}
				// the same twice, too
				ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(rt, "calls")
				r := reply(word(), ids...)
				r.Stop = rapid.SampledFrom([]llm.Stop{llm.StopEnd, llm.StopTools, llm.StopMax,
					llm.StopPaused}).Draw(rt, "stop")
				if rapid.Bool().Draw(rt, "empty") {
					r.Message.Parts = r.Message.Parts[1:]
				}
				require.NoError(t, tr.Reply(ctx, r))
			},
			"result": func(rt *rapid.T) {
				if open := tr.Unanswered(); len(open) > 0 {
					long := strings.Repeat(" long", rapid.SampledFrom([]int{0, 500}).Draw(rt, "length"))
					require.NoError(t, tr.Result(ctx, result(rapid.SampledFrom(open).Draw(rt, "call").ID, word()+long)))
				}
			},
			"mark": func(*rapid.T) { require.NoError(t, tr.Mark(ctx, word())) },
			"fresh": func(*rapid.T) {
				require.NoError(t, tr.Fresh(ctx, text(word()), []muster.MessageID{muster.MessageID(word())}))
				before = nil
			},
			"compress": func(rt *rapid.T) {
				tail, _ := compact.Tail(tr.Messages(), rapid.IntRange(0, 200).Draw(rt, "most"))
				err := tr.Compress(ctx, compact.Behind([]string{word()}, tail), nil, json.RawMessage(`{"a":"<b>"}`), "why")
				if open := tr.Unanswered(); (len(open) > 0) != errors.Is(err, muster.ErrInvalid) {
					t.Fatalf("with %d open calls: %v", len(open), err)
				}
				if err == nil {
					before = nil
				}
			},
			"clear": func(rt *rapid.T) {
				if len(tr.Unanswered()) > 0 {
					return
				}
				changes, _ := compact.Rules{Kept: rapid.IntRange(0, 300).Draw(rt, "kept")}.Clear(tr.Messages())
				require.NoError(t, tr.Clear(ctx, changes))
				if again, _ := (compact.Rules{}).Clear(tr.Messages()); len(changes) > 0 {
					before = nil
					if len(again) > 0 && slices.EqualFunc(changes, again, func(a, b compact.Change) bool {
						return a.Message == b.Message && a.Part == b.Part
					}) {
						t.Fatalf("what was cleared is cleared again: %v", again)
					}
				}
			},
			"reopen": func(*rapid.T) {
				again, err := Open(ctx, s.Handle().Log(), "alice")
				require.NoError(t, err)
				if d := cmp.Diff(tr.Messages(), again.Messages()); d != "" {
					t.Fatalf("resumed conversation differs:\n%s", d)
				}
				if d := cmp.Diff(tr.Unanswered(), again.Unanswered()); d != "" || again.Pos() != tr.Pos() ||
					string(again.State()) != string(tr.State()) {
					t.Fatalf("resumed elsewhere:\n%s", d)
				}
				tr = again
			},
			"": func(*rapid.T) {
				ms := tr.Messages()
				wellFormed(t, ms)
				now := flat(ms)
				if len(now) < len(before) || !slices.Equal(before, now[:len(before)]) {
					t.Fatalf("what was sent has changed:\n%v\n%v", before, now)
				}
				before = now
				given, was = append(given, ms), append(was, now)
				if len(given) > 3 {
					given, was = given[1:], was[1:]
				}
				for i, ms := range given {
					if !slices.Equal(flat(ms), was[i]) {
						t.Fatal("messages that were handed out have changed")
					}
				}
			},
		})
	})
}

// damaged is a log in which some records cannot be read.
type damaged struct {
	muster.Log
	bad   map[muster.Pos]bool
	place bool // whether the place of a bad record is known
}

func (d damaged) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		for r, err := range d.Log.Read(ctx, stream, after) {
			if d.bad[r.Pos] {
				r, err = muster.Record{Pos: r.Pos}, muster.Errorf(muster.Corrupt, "a bad checksum")
				if !d.place {
					r.Pos = 0
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestADamagedTranscriptGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mem.New()
		ctx := context.Background()
		tr, err := Open(ctx, s.Log(), "alice")
		require.NoError(t, err)
		turns := rapid.IntRange(1, 6).Draw(t, "turns")
		for i := range turns {
			line, mail := letter(i)
			require.NoError(t, tr.Deliver(ctx, line, mail))
			var calls []string
			for k := range rapid.IntRange(0, 3).Draw(t, "calls") {
				calls = append(calls, fmt.Sprint(i, "-", k))
			}
			require.NoError(t, tr.Reply(ctx, reply("r", calls...)))
			for _, id := range calls {
				require.NoError(t, tr.Result(ctx, result(id, id+strings.Repeat(" long", 100))))
			}
			switch rapid.IntRange(0, 3).Draw(t, "shorten") {
			case 0:
				changes, _ := compact.Rules{}.Clear(tr.Messages())
				require.NoError(t, tr.Clear(ctx, changes))
			case 1:
				tail, _ := compact.Tail(tr.Messages(), 100)
				require.NoError(t, tr.Compress(ctx, compact.Behind([]string{"shorter"}, tail), nil, nil, "why"))
			}
		}
		bad := map[muster.Pos]bool{}
		for p := range tr.Pos() {
			if rapid.Bool().Draw(t, "bad") {
				bad[p+1] = true
			}
		}
		log := damaged{s.Log(), bad, rapid.Bool().Draw(t, "place")}
		again, err := Open(ctx, log, "alice")
		require.NoError(t, err)
		if n := damagedEntries(t, log); n != len(bad) {
			t.Fatalf("%d entries are damaged, not %d", n, len(bad))
		}
		wellFormed(t, again.Messages())
		for _, c := range again.Unanswered() {
			require.NoError(t, again.Result(ctx, result(c.ID, "unknown")))
		}
		require.NoError(t, again.User(ctx, text("go on"), nil)) // and it is not fenced from its own log
		require.NoError(t, again.Reply(ctx, reply("yes", "z")))
		require.NoError(t, again.Result(ctx, result("z", "z")))
		ms := again.Messages()
		wellFormed(t, ms)
		if got := short(ms); got[len(got)-1] != "u !z" {
			t.Fatalf("%v", got)
		}
	})
}

func TestForeignEntriesAreSetAside(t *testing.T) {
	s := mem.New()
	tr := reader(t, s.Log())
	require.NoError(t, tr.User(t.Context(), text("go"), nil))
	for _, line := range []string{`{"kind":"poem"}`, `{"kind":"user"}`,
		`{"kind":"result","message":{"role":"user","parts":[]}}`, `{"role":"user","content":"hi"}`, `{"kind":7}`} {
		require.Value(s.Log().Append(t.Context(), Stream("alice"), muster.Anywhere, []byte(line)))(t)
	}
	again := reader(t, s.Log())
	if n := damagedEntries(t, s.Log()); n != 5 {
		t.Fatalf("%d damaged", n)
	}
	require.NoError(t, again.User(t.Context(), text("on"), nil))
	same(t, again.Messages(), "u go on")
}
