package openai_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/openai"
)

// What a request says about the length of the reply and about reasoning.
func TestLimitAndEffort(t *testing.T) {
	known := func(provider, name string) catalogue.Model {
		m, ok := catalogue.Lookup(provider, name)
		if !ok {
			t.Fatalf("%s/%s is not known", provider, name)
		}
		return m
	}
	for _, c := range []struct {
		name     string
		o        openai.Options
		isVendor bool
		asked    int // MaxTokens of the request
		limit    int // 0: none is sent
		effort   string
	}{
		{name: "an unknown server and model"},
		{name: "the user wants both", o: openai.Options{MaxTokens: 900, Effort: "high"}, limit: 900, effort: "high"},
		{name: "the request has its own limit", o: openai.Options{MaxTokens: 900}, asked: 700, limit: 700},
		{name: "a known model elsewhere", o: openai.Options{Known: known("xai", "grok-4.7")}, limit: 125000, effort: "medium"},
		{name: "a level that it lacks", o: openai.Options{Known: known("mistral", "mistral-small-2603"), Effort: "low"},
			limit: 64000, effort: "high"},
		{name: "the vendor allows all", o: openai.Options{Known: known("openai", "gpt-5.5")}, isVendor: true, effort: "medium"},
		{name: "more than the model can", o: openai.Options{Known: known("openai", "gpt-5.5")}, isVendor: true,
			asked: 500000, limit: 128000, effort: "medium"},
		{name: "a model that does not think", o: openai.Options{Known: known("qwen", "qwen3-coder-plus")}, limit: 65536},
	} {
		for api, body := range map[openai.API]string{
			openai.Chat: completion("stop"), openai.Responses: response(completed, "")} {
			v := serve(t, streaming(body))
			c.o.API = api
			m := v.model(c.o)
			if c.isVendor {
				m = v.vendor(t, c.o)
			}
			if _, err := m.Reply(t.Context(), llm.Request{Messages: []llm.Message{user("hi")}, MaxTokens: c.asked}, nil); err != nil {
				t.Fatal(err)
			}
			var q struct {
				A         int                     `json:"max_tokens"`
				B         int                     `json:"max_completion_tokens"`
				C         int                     `json:"max_output_tokens"`
				Effort    string                  `json:"reasoning_effort"`
				Reasoning struct{ Effort string } `json:"reasoning"`
			}
			if err := json.Unmarshal(v.asked(0), &q); err != nil {
				t.Fatal(err)
			}
			if got := q.A + q.B + q.C; got != c.limit || q.Effort+q.Reasoning.Effort != c.effort {
				t.Errorf("%s, %s: a limit of %d and effort %q, want %d and %q", c.name, api, got,
					q.Effort+q.Reasoning.Effort, c.limit, c.effort)
			}
		}
	}
}

// A 400 that names the longest reply is obeyed at once, and remembered.
func TestObeysNamedMaximum(t *testing.T) {
	for api, body := range map[openai.API]string{openai.Chat: completion("stop"), openai.Responses: response(completed, "")} {
		limits := []int{}
		v := serve(t, nil)
		v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q struct {
				A int `json:"max_tokens"`
				B int `json:"max_output_tokens"`
			}
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				t.Error(err)
			}
			if limits = append(limits, q.A+q.B); q.A+q.B > 8192 {
				http.Error(w, `{"error":{"message":"max_tokens is too large: 20000. At most 8192 output tokens are supported."}}`, 400)
				return
			}
			streaming(body)(w, r)
		})
		m := v.model(openai.Options{API: api, MaxTokens: 20000})
		for range 2 {
			if _, _, err := ask(t, m); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(limits, []int{20000, 8192, 8192}) {
			t.Errorf("%s: asked with %v", api, limits)
		}
	}
}

// A reply that is cut is asked for again with a longer limit, unless somebody has set the limit. A cut call never runs.
func TestACutReplyIsAskedForAgain(t *testing.T) {
	calls := map[openai.API][2]string{
		openai.Chat: {completion("length", content("so far"), piece(0, "a", "n", `{}`)),
			completion("tool_calls", content("so far"), piece(0, "a", "n", `{}`))},
		openai.Responses: {response(incomplete, `"incomplete_details":{"reason":"max_output_tokens"},`, callA), response(completed, "", callA)},
	}
	for api, bodies := range calls {
		for _, c := range []struct {
			o      openai.Options
			limits []int
		}{
			{openai.Options{}, []int{0, 32000}},
			{openai.Options{Known: catalogue.Model{Name: "m", MaxOutput: 50000, Window: 120000}}, []int{30000, 50000}},
			{openai.Options{Known: catalogue.Model{Name: "m", MaxOutput: 30000}}, []int{30000}},
			{openai.Options{MaxTokens: 700}, []int{700}},
		} {
			var limits []int
			v := serve(t, nil)
			v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var q struct {
					A int `json:"max_tokens"`
					B int `json:"max_output_tokens"`
				}
				if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
					t.Error(err)
				}
				limits = append(limits, q.A+q.B)
				streaming(bodies[min(len(limits), 2)-1])(w, r)
			})
			c.o.API = api
			r, _, err := ask(t, v.model(c.o))
			if err != nil || !slices.Equal(limits, c.limits) {
				t.Errorf("%s, %+v: asked with %v: %v", api, c.o, limits, err)
			}
			if n := len(r.Message.Calls()); n != len(limits)-1 {
				t.Errorf("%s, %+v: %d calls run", api, c.o, n)
			}
		}
	}
}
