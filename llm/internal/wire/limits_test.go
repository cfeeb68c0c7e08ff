package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/testing/tier"
	"muster/llm"
)

// TestCheckJSON: brackets and commas in strings do not count, and what is cut off is no trouble.
func TestCheckJSON(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"ordinary":             {`{"a":[1,2,{"b":"c"}]}`, ""},
		"nothing":              {"", ""},
		"deep":                 {strings.Repeat("[", MaxDepth+1), "is nested deeper than 100 levels"},
		"deep enough":          {strings.Repeat("[", MaxDepth), ""},
		"wide":                 {"[" + strings.Repeat("1,", MaxValues) + "1]", "has more than 100000 values"},
		"brackets in a string": {`{"a":"` + strings.Repeat("[,", MaxValues) + `"}`, ""},
		"after a quote":        {`{"a":"\"` + strings.Repeat("[,", MaxValues) + `\\"}`, ""},
		"a string without end": {`{"a":"` + strings.Repeat("[", MaxDepth+1), ""},
		"an escape at the end": {`{"a":"\`, ""},
		"after a backslash":    {`{"a":"\\","b":` + strings.Repeat("[", MaxDepth+1), "is nested deeper than 100 levels"},
	} {
		if got := checkJSON([]byte(c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestCallsHaveOneIDEach: whatever ids a server gives, no two calls of a conversation have the same, none is lost, and
// none runs twice.
func TestCallsHaveOneIDEach(t *testing.T) {
	before := llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Call{ID: "old", Name: "a", Input: json.RawMessage(`{}`)}}}
	call := func(id, name, input string) llm.Part {
		return llm.Call{ID: id, Name: name, Input: json.RawMessage(input), Opaque: json.RawMessage(`{}`)}
	}
	for name, c := range map[string]struct {
		calls []llm.Part
		want  string
	}{
		"their own":              {[]llm.Part{call("x", "a", `{}`), call("y", "a", `{}`)}, "x y"},
		"the same call":          {[]llm.Part{call("x", "a", `{"b":1}`), call("x", "a", `{"b": 1}`)}, "x"},
		"another call":           {[]llm.Part{call("x", "a", `{"b":1}`), call("x", "a", `{"b":2}`)}, "x call_1_2"},
		"none":                   {[]llm.Part{call("", "a", `{}`), call("", "a", `{}`)}, "call_1_1 call_1_2"},
		"one that we would make": {[]llm.Part{call("call_1_2", "a", `{}`), call("", "b", `{}`)}, "call_1_2 call_1_3"},
		"malformed":              {[]llm.Part{call("x", "a", `{"b":`), call("x", "a", `{"b":,`)}, "x call_1_2"},
		"one of an older call":   {[]llm.Part{call("old", "a", `{}`)}, "call_1_1"},
	} {
		x := NewExchange(Peer{}, llm.Request{Messages: []llm.Message{before}}, nil)
		r, _, err := x.Finish(llm.Reply{Stop: llm.StopEnd}, c.calls)
		var got []string
		for _, made := range r.Message.Calls() {
			got = append(got, made.ID)
			if strings.HasPrefix(made.ID, "call_1_") && made.ID != "call_1_2" && made.Opaque != nil {
				t.Errorf("%s: %s keeps what names it by another id", name, made.ID)
			}
		}
		if s := strings.Join(got, " "); s != c.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", name, s, err, c.want)
		}
	}
}

// TestRepliesAreBounded: a reply with too many calls, or too large ones, runs none of them, and an endless answer is left.
func TestRepliesAreBounded(t *testing.T) {
	many := make([]llm.Part, MaxCalls+1)
	for i := range many {
		many[i] = llm.Call{ID: fmt.Sprint(i), Name: "a", Input: json.RawMessage(`{}`)}
	}
	input := func(bytes int) []llm.Part {
		text := json.RawMessage(`{"a":"` + strings.Repeat("x", bytes-len(`{"a":""}`)) + `"}`)
		return []llm.Part{llm.Call{ID: "x", Name: "a", Input: text}}
	}
	for name, c := range map[string]struct {
		calls []llm.Part
		run   int
	}{
		"calls": {many[:MaxCalls], MaxCalls}, "too many calls": {many, 0},
		"a large call": {input(MaxInput), 1}, "a call that is too large": {input(MaxInput + 1), 0},
		"a long name":     {[]llm.Part{llm.Call{ID: "x", Name: strings.Repeat("a", maxID+1)}}, 0},
		"a deep argument": {[]llm.Part{llm.Call{ID: "x", Name: "a", Input: json.RawMessage(strings.Repeat("[", MaxDepth+1))}}, 0},
	} {
		x := NewExchange(Peer{}, llm.Request{}, nil)
		r, _, err := x.Finish(llm.Reply{Stop: llm.StopEnd}, c.calls)
		if err != nil || len(r.Message.Calls()) != c.run || (r.Stop == llm.StopMax) != (c.run == 0) || x.IsCut(r) {
			t.Errorf("%s: %d calls run, %s, %v", name, len(r.Message.Calls()), r.Stop, err)
		}
	}
	bodies := map[string]string{"a deep event": "data: " + strings.Repeat("[", MaxDepth+1) + "\n\n"}
	if tier.IsAll() {
		bodies["many events"] = strings.Repeat("data: 1\n\n", MaxEvents+1)
	}
	for name, body := range bodies {
		x := NewExchange(Peer{URL: "http://h"}, llm.Request{}, nil)
		_, err := x.Post(t.Context(), &http.Client{Transport: answers{body, "text/event-stream"}}, "http://h/", nil, struct{}{}, endlessReader{})
		if llm.KindOf(err) != llm.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if x := NewExchange(Peer{}, llm.Request{}, nil); x.Keep(MaxReply) != nil || x.Keep(1) == nil {
		t.Error("the bytes of a reply are not counted")
	}
}

// endlessReader takes events without an end.
type endlessReader struct{}

func (endlessReader) Event([]byte) (bool, error)      { return false, nil }
func (endlessReader) Reply() (llm.Reply, bool, error) { return llm.Reply{}, false, nil }

// TestLongWaitIsTold: a time to come back that is too far is told, with its date, and shortened.
func TestLongWaitIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no midnight comes in between
		p := Peer{URL: "http://h/v1", Model: "m"}
		date := time.Now().Add(365 * 24 * time.Hour).Format("2006-01-02")
		for status, kind := range map[int]llm.Kind{429: llm.Limited, 503: llm.Overloaded} {
			e := p.errorForResponse(status, http.Header{"Retry-After": {"31536000"}}, nil)
			if e.Kind != kind || e.After != MaxWait || !strings.Contains(e.Error(), "it asks to wait until "+date) {
				t.Errorf("%d: %v, after %v", status, e, e.After)
			}
		}
		if e := p.errorForResponse(429, http.Header{"Retry-After": {"60"}}, nil); strings.Contains(e.Error(), "asks to wait") {
			t.Error(e)
		}
	})
}

// answers is a network on which every request has one answer.
type answers struct{ body, media string }

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {a.media}},
		Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// TestUsageIsClamped: no number of a server can turn a sum around.
func TestUsageIsClamped(t *testing.T) {
	got := clampUsage(llm.Usage{Input: -5, Output: 1 << 62, CacheRead: 7})
	if want := (llm.Usage{Output: maxTokens, CacheRead: 7}); got != want {
		t.Error(fmt.Sprint(got))
	}
}
