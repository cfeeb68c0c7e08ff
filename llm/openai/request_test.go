package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/llm"
	"muster/llm/catalogue"
	"muster/llm/openai"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares the request with a file: a change of it empties every cache.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(got), "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the request is not that of %s:\n%s", file, b.String())
	}
}

var request = llm.Request{
	System: []string{"You are a <member>.", "", "The repository."},
	Tools: []llm.Spec{
		{Name: "zeta", Description: "last letter first",
			Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}`)},
		{Name: "alpha"},
	},
	Messages: []llm.Message{
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Do it."},
			llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}},
		{Role: llm.Assistant, Parts: []llm.Part{
			llm.Thinking{Text: "hm", Provider: "anthropic",
				Opaque: json.RawMessage(`{"type":"thinking","signature":"sig"}`)},
			llm.Text{Text: "Two things."},
			llm.Call{ID: "t1", Name: "zeta", Input: json.RawMessage(`{"z":"1","a":2}`)},
			llm.Call{ID: "t2", Name: "alpha", Input: json.RawMessage(`{}`)},
		}},
		{Role: llm.User, Parts: []llm.Part{
			llm.Result{ID: "t1", Parts: []llm.Part{llm.Text{Text: "done"},
				llm.Image{Media: "image/jpeg", Data: []byte("\xff\xd8\xff")}}},
			llm.Result{ID: "t2", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}},
			llm.Text{Text: "<inbox>[]</inbox>"},
		}},
		{Role: llm.Assistant},
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Go on."}, llm.Text{Text: "Now."}}},
	},
	MaxTokens: 1234,
	CacheKey:  "alice@team",
}

func TestRequest(t *testing.T) {
	v := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "responses") {
			streaming(response(completed, "", saysHi))(w, r)
			return
		}
		streaming(completion("stop"))(w, r)
	})
	for i, c := range []struct {
		file  string
		model llm.Model
	}{
		{"chat.json", v.model(openai.Options{})},
		{"chat_vendor.json", v.vendor(t, openai.Options{API: openai.Chat, Effort: "low"})},
		{"responses.json", v.vendor(t, openai.Options{Effort: "high"})},
	} {
		if _, err := c.model.Reply(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
		golden(t, c.file, v.asked(i))
	}
	// Models from before reasoning refuse to be asked for it.
	if _, err := v.vendor(t, openai.Options{Model: "gpt-4.1"}).Reply(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	if s := string(v.asked(3)); strings.Contains(s, "encrypted_content") || !strings.Contains(s, `"store":false`) {
		t.Error(s)
	}
}

// The key of the cache is that of all who begin alike, and goes to the servers that know it; the others get the agent's.
func TestCacheKey(t *testing.T) {
	v := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "responses") {
			streaming(response(completed, "", saysHi))(w, r)
			return
		}
		streaming(completion("stop"))(w, r)
	})
	shared, long := request, request
	shared.CacheGroup, long.CacheGroup = "team/coder", strings.Repeat("team/", 20)
	few := catalogue.Model{Quirks: []string{"few-fields"}}
	for i, c := range []struct {
		model   llm.Model
		request llm.Request
		want    string
	}{
		{v.vendor(t, openai.Options{API: openai.Chat}), shared, "team/coder "},
		{v.vendor(t, openai.Options{API: openai.Chat}), request, "alice@team "},
		{v.vendor(t, openai.Options{}), shared, "team/coder "},
		{v.vendor(t, openai.Options{}), long, "team_team_team_team_team_team_team_team_team_team_team_"},
		{v.model(openai.Options{API: openai.Chat}), shared, " alice@team"},
		{v.model(openai.Options{API: openai.Chat, Known: catalogue.Model{Provider: "moonshot"}}), shared, "team/coder "},
		{v.model(openai.Options{API: openai.Chat, Known: catalogue.Model{Quirks: []string{"prompt-cache-key"}}}), shared,
			"team/coder "},
		{v.model(openai.Options{API: openai.Chat, Known: few}), shared, " "},
		{v.model(openai.Options{API: openai.Responses}), shared, "team/coder alice@team"},
		{v.model(openai.Options{API: openai.Responses, Known: few}), shared, " "},
	} {
		if _, err := c.model.Reply(t.Context(), c.request, nil); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Key  string `json:"prompt_cache_key"`
			User string
		}
		if err := json.Unmarshal(v.asked(i), &sent); err != nil {
			t.Fatal(err)
		}
		if got := sent.Key + " " + sent.User; !strings.HasPrefix(got, c.want) || len(sent.Key) > 64 {
			t.Errorf("%d: sent %q, want %q", i, got, c.want)
		}
	}
}

func TestNothingToSend(t *testing.T) {
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		m := openai.New(openai.Options{Model: "m", API: api})
		if _, err := m.Reply(t.Context(), llm.Request{System: []string{"s"}}, nil); llm.KindOf(err) != llm.BadRequest {
			t.Errorf("%s: %v", api, err)
		}
	}
}

// A longer conversation begins with the bytes of a shorter one.
func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		api         openai.API
		body        string
		from, until string
	}{
		{openai.Chat, completion("stop"), `"messages":[`, `],"model":`},
		{openai.Responses, response(completed, ""), `"input":[`, `],"model":`},
	} {
		v := serve(t, streaming(c.body))
		m := v.model(openai.Options{API: c.api})
		n := 0
		rapid.Check(t, func(t *rapid.T) {
			r := llm.Request{System: []string{"s"}, Tools: []llm.Spec{{Name: "n"}}}
			before := ""
			for i := range rapid.IntRange(1, 5).Draw(t, "rounds") {
				parts := []llm.Part{llm.Text{Text: rapid.StringN(1, 20, -1).Draw(t, "text") + "."}}
				if i > 0 {
					call := llm.Call{ID: rapid.StringMatching(`[a-z.:]{1,6}`).Draw(t, "id"), Name: "n",
						Input: json.RawMessage(`{"a":"]"}`)}
					said := rapid.StringN(0, 10, -1).Draw(t, "said")
					r.Messages = append(r.Messages,
						llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: said}, call}})
					shown := append(parts, llm.Image{Media: "image/png", Data: []byte{1}})
					parts = append([]llm.Part{llm.Result{ID: call.ID,
						Parts: shown[:rapid.IntRange(1, 2).Draw(t, "images")]}}, parts...)
				}
				r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: parts})
				if _, err := m.Reply(t.Context(), r, nil); err != nil {
					t.Fatal(err)
				}
				_, now, ok := strings.Cut(string(v.asked(n)), c.from)
				now, _, done := strings.Cut(now, c.until)
				n++
				if !ok || !done {
					t.Fatalf("no messages found in %s", v.asked(n-1))
				}
				if !strings.HasPrefix(now, before) {
					t.Fatalf("no prefix:\n%s\n%s", before, now)
				}
				before = now
			}
		})
	}
}

// Header and Extra of Options reach the server.
func TestHeaderAndExtra(t *testing.T) {
	for api, body := range map[openai.API]string{openai.Chat: completion("stop"), openai.Responses: response(completed, "")} {
		v := serve(t, streaming(body))
		m := v.model(openai.Options{API: api, Header: map[string]string{"X-Team": "red"},
			Extra: map[string]json.RawMessage{"top_k": json.RawMessage("5")}})
		if _, err := m.Reply(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
		if v.last.Header.Get("X-Team") != "red" || !bytes.Contains(v.asked(0), []byte(`"top_k":5`)) {
			t.Errorf("%s: %v\n%s", api, v.last.Header, v.asked(0))
		}
	}
}
