package redact

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/llm"
)

// says is a model that answers with a reply, which it streams in pieces of n bytes, or with an error.
type says struct {
	reply llm.Reply
	n     int
	err   error
}

func (m says) Reply(_ context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	for i, p := range m.reply.Message.Parts {
		for text := p.(llm.Text).Text; m.n > 0 && text != ""; {
			n := min(m.n, len(text))
			emit(llm.Delta{Part: i, Text: text[:n]})
			emit(llm.Delta{Part: i})
			text = text[n:]
		}
	}
	return m.reply, m.err
}

func TestAModelThatRepeatsAKey(t *testing.T) {
	s := New(key)
	texts := llm.Parts{llm.Text{Text: "it is " + key}, llm.Text{Text: key + "!"}, llm.Text{Text: "sk-ant"}}
	for n := 1; n < 60; n++ {
		shown := map[int]string{}
		r, err := s.Model(says{llm.Reply{Message: llm.Message{Parts: texts}}, n, nil}).Reply(t.Context(), llm.Request{},
			func(d llm.Delta) { shown[d.Part] += d.Text })
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"it is " + Mark, Mark + "!", "sk-ant"} {
			if shown[i] != want || r.Message.Parts[i].(llm.Text).Text != want {
				t.Errorf("pieces of %d: %q was shown, and %q kept", n, shown[i], r.Message.Parts[i])
			}
		}
	}
	if texts.Text() == s.Parts(texts).Text() || !strings.Contains(texts.Text(), key) {
		t.Error("the model's own reply has changed")
	}
}

func TestACallWithAKey(t *testing.T) {
	s := New(key, "0123456789")
	escaped := `{"command":"echo \u0073` + key[1:] + ` > f","n":12345678901234567890}`
	for in, want := range map[string]string{
		`{"command":"echo ` + key + `"}`: `{"command":"echo [secret]"}`,
		escaped:                          `{"command":"echo [secret] \u003e f","n":12345678901234567890}`,
		`{"` + key + `":[{"a":"\u0030123456789"}]}`:           `{"[secret]":[{"a":"[secret]"}]}`,
		`{"a":"\u003cno key\u003e"}`:                          `{"a":"\u003cno key\u003e"}`,
		`{"a":0123456789,` + strings.Repeat(" ", 3) + `"b":1`: `{"a":0123456789,   "b":1`, // no JSON, and no string
	} {
		p, _ := s.part(llm.Call{ID: "1", Name: "bash", Input: json.RawMessage(in)})
		if got := string(p.(llm.Call).Input); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
	signed := llm.Thinking{Text: "the key is " + key, Provider: "p", Opaque: json.RawMessage(`{"signature":"x"}`)}
	if p, _ := s.part(signed); p.(llm.Thinking).Text != "the key is "+Mark || p.(llm.Thinking).Opaque != nil {
		t.Errorf("thinking: %+v", p)
	}
}

func TestErrorsWithoutKeys(t *testing.T) {
	s := New(key)
	cause := errors.New("401: " + key)
	_, err := s.Model(says{err: &llm.Error{Kind: llm.Limited, After: time.Second, Status: 401, Err: cause}}).
		Reply(t.Context(), llm.Request{}, func(llm.Delta) {})
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Limited || e.After != time.Second || err.Error() != "limited: 401: "+Mark ||
		!errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	plain := muster.Errorf(muster.Held, "no")
	if got := s.Error(plain); got != error(plain) || s.Error(nil) != nil { //nolint:errorlint // the very same
		t.Error("an error without a key has changed")
	}
}

func TestRecordsStayJSON(t *testing.T) {
	secret := `a"quote\and<more>of it 12345`
	s := New(secret)
	data, err := json.MarshalIndent(map[string]string{"x": "before " + secret + " after", "y": secret[1:]}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(s.record(data), &got); err != nil || got["x"] != "before "+Mark+" after" ||
		strings.Contains(got["y"], "12345") {
		t.Errorf("%q, %v", got, err)
	}
}
