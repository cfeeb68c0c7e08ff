package anthropic_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/internal/wiretest"
)

// marks returns where the marks for the cache stand in a request, in the order in which the vendor reads it, each with
// how long it asks to keep.
func marks(t *testing.T, body string) (found []string) {
	t.Helper()
	type piece struct {
		Cache *struct{ TTL string } `json:"cache_control"`
	}
	var q struct {
		Tools, System []piece
		Messages      []struct{ Content []piece }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &q))
	look := func(where string, of []piece) {
		for i, p := range of {
			if p.Cache != nil {
				found = append(found, strings.TrimSuffix(fmt.Sprintf("%s.%d %s", where, i, p.Cache.TTL), " "))
			}
		}
	}
	look("tools", q.Tools)
	look("system", q.System)
	for i, m := range q.Messages {
		look(fmt.Sprint(i), m.Content)
	}
	return found
}

func TestCacheBreakpoints(t *testing.T) {
	say := func(texts ...string) llm.Message {
		m := llm.Message{Role: llm.User}
		for _, s := range texts {
			m.Parts = append(m.Parts, llm.Text{Text: s})
		}
		return m
	}
	// A round of 25 calls is longer than the 20 blocks that the vendor looks back.
	calls, results := llm.Message{Role: llm.Assistant}, llm.Message{Role: llm.User}
	for i := range 25 {
		id := fmt.Sprintf("c%d", i)
		calls.Parts = append(calls.Parts, llm.Call{ID: id, Name: "n"})
		results.Parts = append(results.Parts, llm.Result{ID: id})
	}
	two, tools := []string{"all", "role"}, []llm.Spec{{Name: "n"}, {Name: "m"}}
	round := []llm.Message{say("facts", "name"), calls, results}
	long := slices.Concat(round, []llm.Message{{Role: llm.Assistant, Parts: calls.Parts[:1]}, say("Go on.")})
	known := catalogue.Model{Provider: "anthropic", Name: "m", Images: true}
	for name, c := range map[string]struct {
		request llm.Request
		known   catalogue.Model
		want    string
	}{
		"the first request":      {llm.Request{System: two, Tools: tools, Messages: round[:1]}, known, "system.0 0.0 0.1"},
		"after a round of calls": {llm.Request{System: two, Tools: tools, Messages: round}, known, "system.0 0.0 0.1 2.24"},
		"later":                  {llm.Request{System: two, Messages: long}, known, "system.0 0.0 2.24 4.0"},
		"one part":               {llm.Request{System: two, Messages: []llm.Message{say("x")}}, known, "system.0 system.1 0.0"},
		"an image first": {llm.Request{System: two, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{
			llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}, llm.Text{Text: "x"}}}}}, known, "system.0 system.1 0.1"},
		"without a prompt": {llm.Request{Tools: tools, Messages: []llm.Message{say("x")}}, known, "tools.1 0.0"},
		"an hour": {llm.Request{System: two, Messages: long, CacheLong: true}, known,
			"system.0 1h 0.0 1h 2.24 1h 4.0 1h"},
		"an hour of a server that is not known": {llm.Request{System: two, Messages: long, CacheLong: true}, catalogue.Model{},
			"system.0 0.0 2.24 4.0"},
	} {
		v := serve(wiretest.Stream(turn("end_turn", text(0, "x"))))
		require.Value(v.model(anthropic.Options{Known: c.known}).Reply(t.Context(), c.request, nil))(t)
		if got := strings.Join(marks(t, v.Sent()), " "); got != c.want {
			t.Errorf("%s: the marks stand at %s, want %s", name, got, c.want)
		}
	}
}
