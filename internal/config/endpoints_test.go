package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
)

const ownServers = `
model: work/big/model
endpoints:
  work: {url: "https://gateway.example/v1", key_env: WORK_KEY}
  filed:
    url: http://h/x
    api: anthropic
    key_file: keys/filed
    headers: {X-Team: red, Authorization: "Bearer $OTHER_TOKEN", Count: 5}
    extra_body: {temperature: 0.5, store: null, a: {b: [1, true, x]}}
  vendor: {url: "https://api.openai.com/v1", key_env: WORK_KEY}
  query: {url: "http://h/v1?key=in-the-query-0123456789", api: openai-responses}
  bare: {url: http://localhost:11434/v1}
`

func TestEndpoints(t *testing.T) {
	o := place(t, "", ownServers)
	keys := filepath.Join(filepath.Dir(UserFile(o.UserDir)), "keys")
	if err := errors.Join(os.Mkdir(keys, 0o700),
		os.WriteFile(filepath.Join(keys, "filed"), []byte("key-of-a-file\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	o.Environ = []string{"WORK_KEY=key-of-work", "OTHER_TOKEN=token-of-a-header", "OPENAI_API_KEY=vendor", "ANTHROPIC_API_KEY=vendor"}
	s, vs, err := Load(o)
	if err != nil || s.Model != "work/big/model" || s.UserModel != s.Model {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, c := range []struct {
		model string
		want  Choice
		key   string
	}{
		{"work/big/model", Choice{OpenAIChat, "big/model", "https://gateway.example/v1"}, "key-of-work"},
		{"filed/m@latest", Choice{Anthropic, "m@latest", "http://h/x"}, "key-of-a-file"},
		{"vendor/m", Choice{OpenAIResponses, "m", "https://api.openai.com/v1"}, "key-of-work"},
		{"bare/m", Choice{OpenAIChat, "m", "http://localhost:11434/v1"}, ""},
		{"openai/m", Choice{OpenAIResponses, "m", ""}, "vendor"},
		{"anthropic/m@http://h", Choice{Anthropic, "m", "http://h"}, "vendor"},
	} {
		got, access, err := s.Endpoints.Choose(c.model, o.Environ)
		if err != nil || got != c.want || access.Key != c.key {
			t.Errorf("%s: %+v, %+v, %v", c.model, got, access, err)
		}
	}
	_, access, _ := s.Endpoints.Choose("filed/m", o.Environ)
	if h := access.Header; len(h) != 3 || h["X-Team"] != "red" || h["Authorization"] != "Bearer token-of-a-header" || h["Count"] != "5" {
		t.Errorf("headers %v", h)
	}
	if x := access.Extra; string(x["temperature"]) != "0.5" || string(x["store"]) != "null" || string(x["a"]) != `{"b":[1,true,"x"]}` {
		t.Errorf("fields %s", x)
	}
	for _, model := range []string{"work/", "work/m@http://h/v1", "wrok/m"} {
		if _, _, err := s.Endpoints.Choose(model, o.Environ); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", model, err)
		}
	}
	secrets := s.Endpoints.Secrets()
	for _, want := range []string{"key-of-work", "key-of-a-file", "token-of-a-header", "in-the-query-0123456789"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%q is not among the secrets %q", want, secrets)
		}
		for _, v := range vs {
			if strings.Contains(v.Value+v.Description, want) {
				t.Errorf("%+v", v)
			}
		}
	}
	if v := value(t, vs, "endpoints.query"); v.Value != "http://h/v1?..." || !strings.HasPrefix(string(v.Source), "user config") {
		t.Errorf("%+v", v)
	}
	if got := ReadEndpoints(o).Secrets(); len(got) != len(secrets) {
		t.Errorf("read alone: %q", got)
	}
}

// An endpoint whose key is missing is an error only of the models that it would serve.
func TestEndpointsWithoutTheirKey(t *testing.T) {
	o := place(t, "", "endpoints:\n  a: {url: http://h, key_env: A_KEY}\n  b: {url: http://h, key_file: none}\n"+
		"  c: {url: http://h, headers: {X-K: $C_TOKEN}}\n  d: {url: http://h, headers: {X-K: $HOME}}\n")
	s, vs, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "the endpoint a cannot be used: A_KEY is not set", "b": "the endpoint b cannot be used: cannot read",
		"c": "the endpoint c cannot be used: C_TOKEN is not set", "d": "the endpoint d cannot be used: HOME may be seen by commands"} {
		_, _, err := s.Endpoints.Choose(name+"/m", o.Environ)
		if !errors.Is(err, muster.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if v := value(t, vs, "endpoints."+name); !strings.Contains(v.Description, want) {
			t.Errorf("%+v", v)
		}
	}
}

func TestMistakesInEndpoints(t *testing.T) {
	for text, want := range map[string]string{
		"endpoints: [a]\n":                                                ":1:12: endpoints are expected here",
		"endpoints: {openai: {url: http://h}}\n":                          "has the name of a provider",
		"endpoints: {replay: {url: http://h}}\n":                          "has the name of a provider",
		"endpoints: {a b: {url: http://h}}\n":                             "needs a name of letters",
		"endpoints: {a/b: {url: http://h}}\n":                             "needs a name of letters",
		"endpoints:\n  a: {key_env: A_KEY}\n":                             ":2:3: the endpoint a needs a url",
		"endpoints: {a: {url: ftp://h}}\n":                                "needs a url",
		"endpoints: {a: {url: http://me:secret@h}}\n":                     "has a name or a key in its url",
		"endpoints: {a: {url: http://h, api: gemini}}\n":                  "has an api that is not",
		"endpoints: {a: {url: http://h, key: secret}}\n":                  "has a key in the file",
		"endpoints: {a: {url: http://h, api_key: secret}}\n":              "has a key in the file",
		"endpoints: {a: {url: http://h, key_env: A_KEY, key_file: b}}\n":  "has both",
		"endpoints: {a: {url: http://h, headers: {a: [b]}}}\n":            "another kind of value",
		"endpoints: {a: {url: http://h, extra_body: {x: .inf}}}\n":        "the field x of extra_body cannot be sent",
		"endpoints: {a: {ulr: http://h}}\n":                               `unknown field "ulr"`,
		"endpoints: {a: {url: http://h}, a: {url: http://h}}\n":           "already defined",
		"endpoints: {a: http://h}\n":                                      "config.yaml:1:",
		"endpionts: {a: {url: http://h}}\n":                               "(did you mean endpoints?)",
		"endpoints: {a: {url: http://h}}\nmodel: b/x\n":                   `:2:8: there is no provider "b", and no endpoint of yours`,
		"endpoints: {a: {url: http://h}}\nmodel: a/x@http://elsewhere/\n": ":2:8: a model of your endpoint a is named a/MODEL",
	} {
		_, _, err := Load(place(t, "", text))
		if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"endpoints:\n", "endpoints: {}\n"} {
		if _, _, err := Load(place(t, "", text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A repository has no endpoints of its own, and may name one of the user's, once the user trusts it.
func TestARepositoryNamesAnEndpoint(t *testing.T) {
	const own = "endpoints: {work: {url: http://h/v1}}\nmodel: openai/mine\n"
	_, _, err := Load(place(t, "endpoints: {work: {url: http://evil}}\n", own))
	if err == nil || !strings.HasPrefix(err.Error(), "muster.yaml:1:1: a repository may not set endpoints") {
		t.Errorf("%v", err)
	}
	o := place(t, "model: work/big\n", own)
	if s, _, err := Load(o); err != nil || s.Model != "work/big" {
		t.Errorf("trusted: %s, %v", s.Model, err)
	}
	for repo, held := range map[string]string{"model: work/big\n": "work/big", "model: theirs/big\n": "theirs/big"} {
		o := place(t, repo, own)
		o.Trusts = nil
		s, vs, err := Load(o)
		if w := value(t, vs, "model").Withheld; err != nil || s.Model != "openai/mine" || w == nil || w.Value != held {
			t.Errorf("not trusted: %s, %+v, %v", s.Model, w, err)
		}
	}
	// A run says that it is missing. Other commands need no model.
	o = place(t, "model: theirs/big\n", own)
	s, vs, err := Load(o)
	if v := value(t, vs, "model"); err != nil || v.Value != "theirs/big" || v.Source != FromRepository {
		t.Errorf("trusted: %+v, %v", v, err)
	}
	if _, _, err := s.Endpoints.Choose(s.Model, nil); err == nil || muster.HintOf(err) == "" ||
		!strings.HasPrefix(err.Error(), `there is no provider "theirs", and no endpoint of yours`) {
		t.Errorf("%v", err)
	}
	o.Flags = map[string]string{"model": "work/other"}
	if s, _, err := Load(o); err != nil || s.Model != "work/other" {
		t.Errorf("overridden: %s, %v", s.Model, err)
	}
}
