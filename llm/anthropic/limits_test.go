package anthropic_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
)

// The limit of a reply is the user's, else that of the model, else 32,000. A 400 that names a smaller one is obeyed at
// once, and remembered.
func TestLimit(t *testing.T) {
	known, _ := catalogue.Lookup("anthropic", "claude-opus-5")
	for _, c := range []struct {
		o           anthropic.Options
		first, then int
	}{
		{anthropic.Options{}, 32000, 32000},
		{anthropic.Options{MaxTokens: 500}, 500, 500},
		{anthropic.Options{Known: known}, 128000, 64000},
	} {
		v := serve(t, func(w http.ResponseWriter, r *http.Request) {})
		answer := streaming(turn("end_turn", text(0, "Hi")))
		handler := v.Config.Handler
		v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			if limitOf(t, v.asked(len(v.bodies)-1)) > 64000 {
				http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 128000 > 64000, `+
					`which is the maximum allowed number of output tokens for the model"}}`, http.StatusBadRequest)
				return
			}
			answer(w, r)
		})
		m := v.model(c.o)
		for range 2 {
			if _, err := m.Reply(t.Context(), llm.Request{Messages: []llm.Message{user("hi")}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if first, last := limitOf(t, v.asked(0)), limitOf(t, v.asked(len(v.bodies)-1)); first != c.first || last != c.then {
			t.Errorf("%+v: asked with %d and then %d, want %d and %d", c.o.MaxTokens, first, last, c.first, c.then)
		}
		if extra := len(v.bodies) - 2; extra != 0 && (c.first == c.then || extra != 1) {
			t.Errorf("%d requests too many", extra)
		}
	}
}

func limitOf(t *testing.T, body []byte) int {
	var q struct {
		N int `json:"max_tokens"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		t.Fatal(err)
	}
	return q.N
}

// A reply that is cut is asked for again with a longer limit, unless somebody has set the limit. A cut call never runs.
func TestACutReplyIsAskedForAgain(t *testing.T) {
	cut := turn("max_tokens", text(0, "so far"), call(1, "t1", "write", `{"path":"a"}`))
	whole := turn("tool_use", text(0, "so far"), call(1, "t1", "write", `{"path":"a","content":"b"}`))
	for _, c := range []struct {
		o      anthropic.Options
		asked  int
		limits []int
	}{
		{anthropic.Options{}, 0, []int{32000, 64000}},
		{anthropic.Options{Known: catalogue.Model{MaxOutput: 50000, Window: 120000}}, 0, []int{30000, 50000}},
		{anthropic.Options{MaxTokens: 700}, 0, []int{700}},
		{anthropic.Options{}, 900, []int{900}},
	} {
		var limits []int
		v := serve(t, nil)
		v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q struct {
				Limit int `json:"max_tokens"`
			}
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				t.Error(err)
			}
			if limits = append(limits, q.Limit); len(limits) == 1 {
				streaming(cut)(w, r)
				return
			}
			streaming(whole)(w, r)
		})
		shown := ""
		r, err := v.model(c.o).Reply(t.Context(), llm.Request{Messages: []llm.Message{user("hi")}, MaxTokens: c.asked},
			func(d llm.Delta) {
				if shown += d.Text; d.Again {
					shown = ""
				}
			})
		if err != nil || !slices.Equal(limits, c.limits) || shown != "so far" {
			t.Errorf("%+v: asked with %v, shown %q: %v", c.o, limits, shown, err)
		}
		if n := len(r.Message.Calls()); n != len(limits)-1 {
			t.Errorf("%+v: %d calls run", c.o, n)
		}
	}
}
