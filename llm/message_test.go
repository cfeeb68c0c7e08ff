package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
)

// genPart draws any part; a result holds texts and images only.
func genPart(inResult bool) *rapid.Generator[llm.Part] {
	return rapid.Custom(func(t *rapid.T) llm.Part {
		text := rapid.String()
		raw := rapid.Custom(func(t *rapid.T) json.RawMessage {
			return require.Value(json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "object")))(t)
		})
		kinds := 5
		if inResult {
			kinds = 2
		}
		switch rapid.IntRange(1, kinds).Draw(t, "kind") {
		case 1:
			return llm.Text{Text: text.Draw(t, "text")}
		case 2:
			return llm.Image{Media: "image/png", Data: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "data")}
		case 3:
			return llm.Thinking{Text: text.Draw(t, "think"), Provider: "p", Opaque: raw.Draw(t, "opaque")}
		case 4:
			return llm.Call{ID: text.Draw(t, "id"), Name: "n", Input: raw.Draw(t, "input"),
				Opaque: raw.Draw(t, "opaque")}
		default:
			return llm.Result{ID: text.Draw(t, "id"), IsError: rapid.Bool().Draw(t, "error"), Parts: genParts(t, true),
				Files: rapid.SliceOfN(text, 1, 2).Draw(t, "files")}
		}
	})
}

func genParts(t *rapid.T, inResult bool) []llm.Part {
	return rapid.SliceOfN(genPart(inResult), 1, 4).Draw(t, "parts")
}

// What is stored is read back as it was, and stored again with the same bytes.
func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := llm.Message{Role: llm.Assistant, Parts: genParts(t, false)}
		b := require.Value(json.Marshal(in))(t)
		var out llm.Message
		require.NoError(t, json.Unmarshal(b, &out))
		if d := cmp.Diff(in, out); d != "" {
			t.Fatal(d)
		}
		again, err := json.Marshal(out)
		if err != nil || string(again) != string(b) {
			t.Fatalf("stored again:\n%s\n%s\n%v", b, again, err)
		}
	})
}

// The stored form is what older transcripts hold: it does not change.
func TestStoredForm(t *testing.T) {
	m := llm.Message{Role: llm.User, Parts: []llm.Part{
		llm.Result{ID: "c1", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}, Files: []string{"f"}},
		llm.Text{Text: "hi"},
		llm.Image{Media: "image/png", Data: []byte("x")},
		llm.Thinking{Provider: "p"},
		llm.Call{ID: "c2", Name: "bash", Input: json.RawMessage(`{"a": 1}`)},
		llm.Call{ID: "c3", Name: "none"},
	}}
	const want = `{"role":"user","parts":[` +
		`{"type":"result","v":{"id":"c1","is_error":true,"files":["f"],"parts":[{"type":"text","v":{"text":"no"}}]}},` +
		`{"type":"text","v":{"text":"hi"}},` +
		`{"type":"image","v":{"media":"image/png","data":"eA=="}},` +
		`{"type":"thinking","v":{"provider":"p"}},` +
		`{"type":"call","v":{"id":"c2","name":"bash","input":{"a":1}}},` +
		`{"type":"call","v":{"id":"c3","name":"none","input":{}}}]}`
	b, err := json.Marshal(m)
	if err != nil || string(b) != want {
		t.Errorf("%v\n got %s\nwant %s", err, b, want)
	}
	b, err = json.Marshal(llm.Message{Role: llm.Assistant})
	if err != nil || string(b) != `{"role":"assistant","parts":[]}` {
		t.Errorf("an empty message: %s, %v", b, err)
	}
}

func TestUnknownPart(t *testing.T) {
	var m llm.Message
	err := json.Unmarshal([]byte(`{"role":"user","parts":[{"type":"hologram","v":{}}]}`), &m)
	if err == nil || !strings.Contains(err.Error(), "hologram") {
		t.Errorf("got %v", err)
	}
}

func TestInput(t *testing.T) {
	for in, want := range map[string]string{
		"":                             `{}`,
		" \n":                          `{}`,
		"null":                         `{}`,
		`""`:                           `{}`,
		`{"a": "<b>" }`:                `{"a":"\u003cb\u003e"}`,
		`"{\"a\":1}"`:                  `{"a":1}`,
		` {"n":12345678901234567890} `: `{"n":12345678901234567890}`,
	} {
		got, err := llm.Input([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Input(%q) = %s, %v; want %s", in, got, err, want)
			continue
		}
		if again, err := llm.Input(got); err != nil || string(again) != want {
			t.Errorf("Input twice of %q = %s, %v", in, again, err)
		}
		stored, err := json.Marshal(llm.Call{Input: got})
		if err != nil || !strings.Contains(string(stored), want) {
			t.Errorf("%q is stored as %s, %v", in, stored, err)
		}
	}
	for _, in := range []string{`{"a":`, `[1]`, `12`, `"x"`, `{} {}`, `{"a":1}}`, `"{\"a\":"`} {
		if got, err := llm.Input([]byte(in)); err == nil {
			t.Errorf("Input(%q) = %s, want an error", in, got)
		}
	}
}

func TestText(t *testing.T) {
	m := llm.Message{Parts: []llm.Part{llm.Text{Text: "a"}, llm.Thinking{Text: "no"}, llm.Call{ID: "1"},
		llm.Text{Text: "b"}, llm.Call{ID: "2"}}}
	if got := m.Text(); got != "a\nb" {
		t.Errorf("Text = %q", got)
	}
	if cs := m.Calls(); len(cs) != 2 || cs[0].ID != "1" || cs[1].ID != "2" {
		t.Errorf("Calls = %v", cs)
	}
	if got := llm.ErrorResult("no %d", 1); !got.IsError || got.Text() != "no 1" {
		t.Errorf("ErrorResult = %+v", got)
	}
}

func TestKindOf(t *testing.T) {
	cause := errors.New("x")
	err := fmt.Errorf("outer: %w", llm.Errorf(llm.Limited, "so: %w", cause))
	if llm.KindOf(err) != llm.Limited || !errors.Is(err, cause) {
		t.Errorf("kind %q of %v", llm.KindOf(err), err)
	}
	if llm.KindOf(cause) != "" {
		t.Error("a foreign error has a kind")
	}
	if s := (&llm.Error{Kind: llm.Overloaded, After: time.Second, Err: cause}).Error(); s != "overloaded: x" {
		t.Error(s)
	}
}
