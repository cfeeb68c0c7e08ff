package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/llm/catalogue"
)

const ownModels = `
models:
  work/big:
    window: 200000
    max_output: 16000
    price: {input: 1.5, output: 6}
    temperature: 0.2
    headers: {X-Model: big, X-Token: $BIG_TOKEN}
    extra_body: {top_k: 5}
    quirks: [short-ids]
  openai/gpt-5.5: {max_output: 9000}
  openai/qwen3: {endpoint: work, images: false}
  openai/routed: {endpoint: xai}
endpoints:
  work: {url: "https://gateway.example/v1", headers: {X-Team: red, X-Model: any}, extra_body: {temperature: 1, store: null}}
`

func TestModelSettings(t *testing.T) {
	o := place(t, "", ownModels)
	o.Environ = []string{"OPENAI_API_KEY=key-of-openai", "XAI_API_KEY=key-of-xai", "BIG_TOKEN=token-of-big"}
	s, _, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	big, access, err := s.Endpoints.Choose("work/big", o.Environ)
	if err != nil || big.URL != "https://gateway.example/v1" || access.Header["X-Model"] != "big" || access.Header["X-Team"] != "red" ||
		access.Header["X-Token"] != "token-of-big" ||
		string(access.Extra["temperature"]) != "0.2" || string(access.Extra["top_k"]) != "5" || string(access.Extra["store"]) != "null" {
		t.Errorf("%+v, %+v, %v", big, access, err)
	}
	if k := s.Endpoints.Known("work/big", big); k.Window != 200000 || k.MaxOutput != 16000 || k.Prices[0].Output != 6 || !k.Images ||
		!slices.Equal(k.Quirks, []string{"short-ids"}) {
		t.Errorf("%+v", k)
	}
	if !slices.Contains(s.Endpoints.Secrets(), "token-of-big") {
		t.Error("the token in a header is not secret")
	}
	// Another model of the endpoint has nothing of it.
	if c, access, _ := s.Endpoints.Choose("work/other", o.Environ); string(access.Extra["temperature"]) != "1" ||
		access.Header["X-Model"] != "any" || s.Endpoints.Known("work/other", c).Name != "" {
		t.Errorf("%+v, %+v", c, access)
	}
	// What the user does not say stays.
	c, _, _ := s.Endpoints.Choose("openai/gpt-5.5", o.Environ)
	if k := s.Endpoints.Known("openai/gpt-5.5", c); k.MaxOutput != 9000 || k.Window != 1050000 || !k.Images {
		t.Errorf("%+v", k)
	}
	// Another endpoint serves a model, with its own key.
	c, access, err = s.Endpoints.Choose("openai/qwen3", o.Environ)
	if err != nil || c.URL != "https://gateway.example/v1" || c.Name != "qwen3" || access.Key != "" || s.Endpoints.Known("openai/qwen3", c).Images {
		t.Errorf("%+v, %+v, %v", c, access, err)
	}
	c, access, err = s.Endpoints.Choose("openai/routed", o.Environ)
	if err != nil || c.URL != "https://api.x.ai/v1" || access.Key != "key-of-xai" {
		t.Errorf("%+v, %+v, %v", c, access, err)
	}
	all := s.Endpoints.Models(catalogue.All())
	if len(all) != len(catalogue.All())+3 || !slices.ContainsFunc(all, func(m catalogue.Model) bool {
		return m.Provider == "work" && m.Name == "big" && m.Window == 200000
	}) {
		t.Errorf("%d models listed", len(all))
	}
}

func TestModelSettingsWrong(t *testing.T) {
	for in, want := range map[string]string{
		"models: 5":                                      "models are expected here",
		"models: {gpt: {window: 5}}":                     "is not named as --model names it",
		"models: {nobody/x: {window: 5}}":                "is not named as --model names it",
		"models: {openai/x: {windw: 5}}":                 "unknown field",
		"models: {openai/x: {window: big}}":              "another kind of value",
		"models: {openai/x: {window: -5}}":               "negative number of tokens",
		"models: {openai/x: {window: 5, max_output: 6}}": "larger than its window",
		"models: {openai/x: {temperature: 3}}":           "not between 0 and 2",
		"models: {openai/x: {quirks: [odd]}}":            "there are empty-content",
		"models: {openai/x: {endpoint: nobody}}":         "neither yours nor a vendor's",
		"models: {openai/x: {price: {input: -1}}}":       "negative price",
	} {
		_, _, err := Load(place(t, "", in))
		if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	if _, _, err := Load(place(t, "models: {openai/x: {window: 5}}", "")); err == nil || !strings.Contains(err.Error(), "a repository may not set models") {
		t.Errorf("of a repository: %v", err)
	}
}
