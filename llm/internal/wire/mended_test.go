package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
)

// No field of a request has half of a surrogate pair, NUL or broken UTF-8 in it, neither directly nor in the arguments of
// a call, whose JSON is a string with two of the interfaces. Replies that came so, and were stored so, go out mended.
func TestTextOfRequestsIsUnicode(t *testing.T) {
	const half, bad = `\ud83d`, "nul \x00 and \xff\xfe"
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, a := range adapters {
		// The endpoint's own item, as it keeps it, comes back with the call.
		came := a.stream(t, says(llm.StopTools, llm.Text{Text: "x"}, llm.Call{ID: "c1", Name: "write", Input: raw(`{"content":"~"}`)}))
		escaped := half
		if a.name != "messages" || strings.Contains(came, `\"~`) { // JSON in a string
			escaped = `\` + half
		}
		n := streams(strings.ReplaceAll(came, "~", escaped))
		m := a.open(anthropic.Options{Model: "m", BaseURL: "http://h", Client: &http.Client{Transport: n},
			Extra: map[string]json.RawMessage{"extra": raw(`"` + half + `"`)}})
		first := require.Value(m.Reply(t.Context(), hello, nil))(t)
		if calls := first.Message.Calls(); len(calls) != 1 || calls[0].Malformed != "" {
			t.Fatalf("%s: %+v", a.name, first)
		}
		stored := require.Value(json.Marshal(first.Message))(t)
		var resumed llm.Message
		require.NoError(t, json.Unmarshal(stored, &resumed))
		for name, reply := range map[string]llm.Message{"at once": first.Message, "resumed": resumed} {
			r := llm.Request{System: []string{"system " + bad}, CacheKey: "key " + bad,
				Tools: []llm.Spec{{Name: "write", Description: "tool " + bad, Schema: raw(`{"type":"object","description":"` + half + `"}`)}},
				Messages: []llm.Message{user("user " + bad), reply,
					{Role: llm.User, Parts: llm.Parts{llm.Result{ID: "c1", Parts: llm.Parts{llm.Text{Text: "result " + bad}}}}},
					{Role: llm.Assistant, Parts: llm.Parts{llm.Thinking{Provider: "other", Text: bad}, llm.Text{Text: "said " + bad},
						llm.Call{ID: "c2", Name: "na\x00me", Input: raw(`{"` + half + `":"a\u0000b ` + half + ` \ud83d\ude00"}`)}}},
					{Role: llm.User, Parts: llm.Parts{llm.Result{ID: "c2", IsError: true, Parts: llm.Parts{llm.Text{Text: bad}}}}}}}
			require.Value(m.Reply(t.Context(), r, nil))(t)
			body := n.bodies[len(n.bodies)-1]
			text := strings.ReplaceAll(strings.ReplaceAll(body, `\\ud83d\\ude00`, ""), `\ud83d\ude00`, "")
			if lone := regexp.MustCompile(`\\u(d83d|de00|0000)|\xff`).FindString(text); lone != "" {
				t.Errorf("%s, %s: %q in %s", a.name, name, lone, body)
			}
			if !json.Valid([]byte(body)) || !strings.Contains(body, "ufffd") || len(text) == len(body) {
				t.Errorf("%s, %s: %s", a.name, name, body)
			}
		}
	}
}

// A request for which the account cannot pay is made once more with what it can pay for, with one note, and later
// requests are made so at once. A reply that is cut there is asked for with more, and kept if there is no more.
func TestAnAffordableReply(t *testing.T) {
	const only = `{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 29891. To increase, visit https://x/settings/credits"}}`
	for _, status := range []int{400, 402, 403} {
		for _, a := range adapters {
			body, limits, notes := a.stream(t, says(llm.StopEnd, llm.Text{Text: "x"})), []int{}, []string{}
			n := &network{answer: func(asked string) *http.Response {
				limit := a.longest(t, asked)
				if limits = append(limits, limit); limit == 0 || limit > 29891 {
					return answer(status, strings.NewReader(only))
				}
				return answer(200, strings.NewReader(body))
			}}
			m := a.open(anthropic.Options{Model: "m", BaseURL: "http://h", Client: &http.Client{Transport: n}})
			for range 2 {
				require.Value(m.Reply(t.Context(), hello, func(d llm.Delta) {
					if d.Note != "" {
						notes = append(notes, d.Note)
					}
				}))(t)
			}
			if !slices.Equal(limits, []int{a.limits[0], 29891, 29891}) || len(notes) != 1 ||
				notes[0] != "the account at h can pay for a reply of 29891 tokens only, so no longer ones are asked for: raise its credit or its limit" {
				t.Errorf("%s, %d: asked with %v, told %q", a.name, status, limits, notes)
			}
		}
	}
	for _, a := range adapters { // twice is enough
		asked := 0
		n := &network{answer: func(string) *http.Response { asked++; return answer(402, strings.NewReader(only)) }}
		if _, err := a.ask(t, n, hello); asked != 2 || llm.KindOf(err) != llm.Spent {
			t.Errorf("%s: asked %d times: %v", a.name, asked, err)
		}
		cut := a.stream(t, says(llm.StopMax, llm.Text{Text: "so far"}))
		asked = 0
		n = &network{answer: func(sent string) *http.Response {
			if asked++; a.longest(t, sent) == 29891 {
				return answer(200, strings.NewReader(cut))
			}
			return answer(402, strings.NewReader(only))
		}}
		if r, err := a.ask(t, n, hello); err != nil || r.Stop != llm.StopMax || asked != 3 {
			t.Errorf("%s: asked %d times: %v, %v", a.name, asked, r.Stop, err)
		}
	}
}

// A key that the server refuses is read again, and the request is made once more if it is another one. Nothing is said of
// the keys.
func TestARefusedKeyIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		renewed string
		err     error
		sent    []string
		says    string
	}{
		"another one":         {"new-key-0123456789", nil, []string{"old-key-0123456789", "new-key-0123456789"}, ""},
		"another wrong one":   {"bad-key-0123456789", nil, []string{"old-key-0123456789", "bad-key-0123456789"}, "denies access"},
		"the same":            {"old-key-0123456789", nil, []string{"old-key-0123456789"}, "denies access"},
		"it cannot be read":   {"", errors.New("/k: it is gone"), []string{"old-key-0123456789"}, "the key cannot be read again: /k: it is gone"},
		"nothing can be read": {"", nil, []string{"old-key-0123456789"}, "denies access"},
	} {
		for _, a := range adapters {
			header, _, _ := strings.Cut(a.key, ":")
			body, sent := a.stream(t, says(llm.StopEnd, llm.Text{Text: "x"})), []string{}
			n := &network{}
			n.answer = func(string) *http.Response {
				key := strings.TrimPrefix(n.last.Header.Get(header), "Bearer ")
				if sent = append(sent, key); key != "new-key-0123456789" {
					return answer(401, strings.NewReader(`{"error":{"message":"invalid key: `+key+`"}}`))
				}
				return answer(200, strings.NewReader(body))
			}
			m := a.open(anthropic.Options{Model: "m", BaseURL: "http://h", Key: "old-key-0123456789", Client: &http.Client{Transport: n},
				Renew: func(_ context.Context, refused string) (string, error) {
					if refused != "old-key-0123456789" {
						t.Errorf("%s: %q was refused", name, refused)
					}
					return c.renewed, c.err
				}})
			_, err := m.Reply(t.Context(), hello, nil)
			if !slices.Equal(sent, c.sent) || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) ||
				err != nil && strings.Contains(err.Error(), "0123456789") {
				t.Errorf("%s, %s: sent %q: %v", name, a.name, sent, err)
			}
			if c.says != "" {
				continue
			}
			require.Value(m.Reply(t.Context(), hello, nil))(t)
			if sent[len(sent)-1] != "new-key-0123456789" || len(sent) != 3 {
				t.Errorf("%s, %s: later %q", name, a.name, sent)
			}
		}
	}
}

// A header that cannot be sent is no trouble of the network: it is refused at once, by its name.
func TestHeadersThatCannotBeSent(t *testing.T) {
	for name, o := range map[string]anthropic.Options{
		"a line end":        {Key: "sk-0123456789abcdef\nsk-0123456789abcdef"},
		"NUL":               {Key: "sk-0123456789abcdef\x00"},
		"not ASCII":         {Key: "sk-0123456789abcdef–x"},
		"a header":          {Header: map[string]string{"X-Team": "red\r\nX-Evil: 0123456789"}},
		"a name":            {Header: map[string]string{"X Team": "red"}},
		"a key in a header": {Header: map[string]string{"Authorization": "Bearer “0123456789abcdef”"}},
	} {
		for _, a := range adapters {
			n := streams("")
			o.Model, o.BaseURL, o.Client = "m", "http://h", &http.Client{Transport: n}
			_, err := a.open(o).Reply(t.Context(), hello, nil)
			if llm.KindOf(err) != llm.BadRequest || n.last != nil || strings.Contains(err.Error(), "0123456789") ||
				!strings.Contains(err.Error(), "header") {
				t.Errorf("%s, %s: %v", a.name, name, err)
			}
		}
	}
	n := streams(adapters[0].stream(t, says(llm.StopEnd, llm.Text{Text: "x"})))
	o := anthropic.Options{Model: "m", BaseURL: "http://h", Client: &http.Client{Transport: n}, Key: "k", IsBearer: true,
		Header: map[string]string{"X-Team": "Büro"}}
	require.Value(anthropic.New(o).Reply(t.Context(), hello, nil))(t)
	if h := n.last.Header; h.Get("Authorization") != "Bearer k" || h.Get("X-Api-Key") != "" || h.Get("X-Team") != "Büro" {
		t.Errorf("%v", h)
	}
}
