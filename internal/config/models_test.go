package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/testing/require"
	"muster/llm/catalogue"
)

func TestParseModel(t *testing.T) {
	for _, c := range []struct{ in, provider, model, url string }{
		{"anthropic/claude-sonnet-5", "anthropic", "claude-sonnet-5", ""},
		{"openai/qwen3@http://localhost:11434/v1", "openai", "qwen3", "http://localhost:11434/v1"},
		{"openai-chat/meta/llama@https://h/v1", "openai-chat", "meta/llama", "https://h/v1"},
		{"openai-responses/x", "openai-responses", "x", ""},
		{"anthropic/claude@20250514", "anthropic", "claude@20250514", ""},
		{"script/a@b/c.yaml", "script", "a@b/c.yaml", ""},
	} {
		got, err := ParseModel(c.in)
		if err != nil || got != (Choice{c.provider, c.model, c.url}) {
			t.Errorf("%s: %+v, %v", c.in, got, err)
		}
	}
	for in, want := range map[string]string{
		"claude-sonnet-5":            "is not a model's name (did you mean anthropic/claude-sonnet-5",
		"Sonnet":                     "(did you mean anthropic/claude-sonnet-5-5 or anthropic/claude-sonnet-5 or",
		"gtp-5.5":                    "(did you mean openai/gpt-5.5 or",
		"gpt":                        "(did you mean openai/gpt-",
		"x":                          "is not a model's name: a model is named like",
		"":                           "is not a model's name",
		"antropic/x":                 "(did you mean anthropic?)",
		"anthropic/":                 "names no model",
		"openai/@http://h/v1":        "names no model",
		"openai/x@localhost:1234/v1": "is not a URL",
		"openai/x@http://k@h/v1":     "leave it out",
		"script/":                    "needs a file",
	} {
		if _, err := ParseModel(in); !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name, environ string
		want          Choice
		wrong         string
	}{
		{name: "openai/gpt-5.5", environ: "OPENAI_API_KEY=k", want: Choice{"openai-responses", "gpt-5.5", ""}},
		{name: "openai/gpt-5.5@https://api.openai.com/v1", environ: "OPENAI_API_KEY=k",
			want: Choice{"openai-responses", "gpt-5.5", "https://api.openai.com/v1"}},
		{name: "openai/qwen3@http://localhost:11434/v1",
			want: Choice{"openai-chat", "qwen3", "http://localhost:11434/v1"}},
		{name: "openai/qwen3", environ: "OPENAI_BASE_URL=http://h/v1",
			want: Choice{"openai-chat", "qwen3", "http://h/v1"}},
		{name: "openai-chat/x", environ: "OPENAI_API_KEY=k", want: Choice{"openai-chat", "x", ""}},
		{name: "openai-responses/x@http://h/v1", want: Choice{"openai-responses", "x", "http://h/v1"}},
		{name: "anthropic/x", environ: "ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=http://p",
			want: Choice{"anthropic", "x", "http://p"}},
		{environ: "OPENAI_API_KEY=k", want: Choice{"openai-responses", "gpt-5.5", ""}},
		{environ: "ANTHROPIC_AUTH_TOKEN=k OPENAI_API_KEY=k", want: Choice{"anthropic", "claude-sonnet-5", ""}},
		{name: "anthropic/x", environ: "ANTHROPIC_AUTH_TOKEN=k ANTHROPIC_BASE_URL=http://p",
			want: Choice{"anthropic", "x", "http://p"}},
		{wrong: "no vendor's key is set, such as ANTHROPIC_API_KEY or OPENAI_API_KEY " +
			"(a model without a key: --model openai/qwen3@http://localhost:11434/v1)"},
		{name: "anthropic/x", environ: "OPENAI_API_KEY=k", wrong: "ANTHROPIC_API_KEY is not set"},
		{name: "openai/x", wrong: "OPENAI_API_KEY is not set"},
		{name: "openai/x@https://api.openai.com/v1", wrong: "OPENAI_API_KEY is not set"},
		{name: "nope", wrong: `"nope" is not a model's name`},
	} {
		got, err := Choose(c.name, strings.Fields(c.environ))
		switch {
		case c.wrong != "":
			if !errors.Is(err, muster.ErrInvalid) || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%s: got %v, want %s", c.name, err, c.wrong)
			}
		case err != nil || got != c.want:
			t.Errorf("%s with %s: got %+v, %v", c.name, c.environ, got, err)
		}
	}
}

func TestStoredHasNoSecret(t *testing.T) {
	for in, want := range map[string]string{
		"openai/x":                              "openai/x",
		"openai/x@https://h:1/v1?key=secret#x":  "openai/x@https://h:1/v1",
		"openai/x@https://me:secret@h/v1":       "openai/x@https://h/v1",
		"openai/x@https://me@h/v1?":             "openai/x@https://h/v1",
		"script/a@b/c?d":                        "script/a@b/c?d",
		"anthropic/claude@20250514":             "anthropic/claude@20250514",
		"openai/x@https://me:se%zzcret@h/v1?k=": "openai/x",
		"script//dir/a@b.yaml":                  "script//dir/a@b.yaml",
	} {
		if got := Stored(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// Each vendor is asked at its own endpoint, by the interface that it has, with its own key and no other.
func TestVendors(t *testing.T) {
	for _, c := range []struct{ model, api, url, key string }{
		{"deepseek/deepseek-flash", OpenAIChat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
		{"zai/glm-5.2", OpenAIChat, "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"},
		{"zai/glm-5.2", OpenAIChat, "https://api.z.ai/api/paas/v4", "ZHIPU_API_KEY"},
		{"qwen/qwen3.8-max", OpenAIChat, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"},
		{"xai/grok-4.7", OpenAIChat, "https://api.x.ai/v1", "XAI_API_KEY"},
		{"openrouter/anthropic/claude-opus-5", OpenAIChat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
		{"gemini/gemini-4-argon", OpenAIChat, "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"},
		{"gemini/gemini-4-argon", OpenAIChat, "https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"},
		{"openai/gpt-6-sol", OpenAIResponses, "", "OPENAI_API_KEY"},
		{"anthropic/claude-opus-5", Anthropic, "", "ANTHROPIC_API_KEY"},
	} {
		var none Endpoints
		got, access, err := none.Choose(c.model, []string{c.key + "=right", "SOME_API_KEY=wrong"})
		if err != nil || got.API() != c.api || got.URL != c.url || access.Key != "right" {
			t.Errorf("%s: %+v (%s), key %q, %v", c.model, got, got.API(), access.Key, err)
		}
		if _, ok := catalogue.Lookup(got.Vendor(), got.Name); !ok {
			t.Errorf("%s is not in the catalogue of %q", c.model, got.Vendor())
		}
		if _, _, err := none.Choose(c.model, []string{"SOME_API_KEY=wrong"}); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s without a key: %v", c.model, err)
		}
		if p, _ := ParseModel(c.model); p.Server() != "" {
			t.Errorf("%s needs the user's word for the server %q", c.model, p.Server())
		}
	}
}

// ANTHROPIC_AUTH_TOKEN is a bearer token, as Claude Code has it, and stronger than ANTHROPIC_API_KEY. Keys lose what
// copying leaves at their ends; one that no header can hold is an error with the name of its variable.
func TestKeysOfTheEnvironment(t *testing.T) {
	const key = "sk-0123456789abcdef"
	for name, c := range map[string]struct {
		environ []string
		want    Access
		wrong   string
	}{
		"a token":           {[]string{"ANTHROPIC_AUTH_TOKEN=" + key}, Access{Key: key, KeyName: "ANTHROPIC_AUTH_TOKEN", IsBearer: true}, ""},
		"both":              {[]string{"ANTHROPIC_API_KEY=no", "ANTHROPIC_AUTH_TOKEN=" + key}, Access{Key: key, KeyName: "ANTHROPIC_AUTH_TOKEN", IsBearer: true}, ""},
		"an empty token":    {[]string{"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_AUTH_TOKEN= "}, Access{Key: key, KeyName: "ANTHROPIC_API_KEY"}, ""},
		"a line end":        {[]string{"ANTHROPIC_API_KEY=" + key + "\n"}, Access{Key: key, KeyName: "ANTHROPIC_API_KEY"}, ""},
		"blanks":            {[]string{"ANTHROPIC_API_KEY= \t" + key + " \r\n"}, Access{Key: key, KeyName: "ANTHROPIC_API_KEY"}, ""},
		"a byte order mark": {[]string{"ANTHROPIC_API_KEY=\ufeff" + key + "\u200b\u00a0"}, Access{Key: key, KeyName: "ANTHROPIC_API_KEY"}, ""},
		"two lines":         {[]string{"ANTHROPIC_API_KEY=" + key + "\n" + key}, Access{}, "the key in ANTHROPIC_API_KEY cannot be sent"},
		"NUL":               {[]string{"ANTHROPIC_API_KEY=" + key + "\x00x"}, Access{}, "the key in ANTHROPIC_API_KEY cannot be sent"},
		"a dash of prose":   {[]string{"ANTHROPIC_AUTH_TOKEN=sk–" + key}, Access{}, "the key in ANTHROPIC_AUTH_TOKEN cannot be sent"},
		"curly quotes":      {[]string{"ANTHROPIC_API_KEY=“" + key + "”"}, Access{}, "the key in ANTHROPIC_API_KEY cannot be sent"},
		"only blanks":       {[]string{"ANTHROPIC_API_KEY= \n"}, Access{}, "ANTHROPIC_API_KEY is not set"},
	} {
		_, access, err := Endpoints{}.Choose("anthropic/m", c.environ)
		if c.wrong != "" {
			if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "0123456789") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if d := cmp.Diff(c.want, access); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// A vendor's models are known as such at another address of its server, at a proxy, and at an endpoint of its name.
func TestVendorElsewhere(t *testing.T) {
	for _, c := range []struct{ model, variable, url, vendor string }{
		{"deepseek/m@http://localhost:1/v1", "", "http://localhost:1/v1", "deepseek"},
		{"deepseek/m", "DEEPSEEK_BASE_URL=http://localhost:1/v1", "http://localhost:1/v1", "deepseek"},
		{"openai/m@https://api.deepseek.com/beta", "", "https://api.deepseek.com/beta", "deepseek"},
		{"anthropic/m@https://proxy.example", "", "https://proxy.example", "anthropic"},
		{"openai-chat/m@https://proxy.example", "", "https://proxy.example", "openai"},
	} {
		got, err := Choose(c.model, []string{c.variable})
		if err != nil || got.URL != c.url || got.Vendor() != c.vendor {
			t.Errorf("%s: %+v of %q, %v", c.model, got, got.Vendor(), err)
		}
	}
	o := place(t, "", "endpoints:\n  zai: {url: http://localhost:1/v4}\n")
	s, _, err := Load(o)
	require.NoError(t, err)
	got, access, err := s.Endpoints.Choose("zai/glm-5.2", []string{"ZAI_API_KEY=vendor"})
	if err != nil || got.URL != "http://localhost:1/v4" || got.Vendor() != "zai" || got.API() != OpenAIChat || access.Key != "" {
		t.Errorf("an endpoint with the name of a vendor: %+v of %q with key %q, %v", got, got.Vendor(), access.Key, err)
	}
}

// The models that a key chooses are known.
func TestDefaultModels(t *testing.T) {
	for _, v := range vendors {
		model, source := modelByKey(map[string]string{v.keys[0]: "k"})
		if v.model == "" {
			continue
		}
		if _, ok := catalogue.Lookup(v.name, v.model); !ok || model != v.name+"/"+v.model || source != fromEnv(v.keys[0]) {
			t.Errorf("%s: %q from %q", v.name, model, source)
		}
	}
	if model, _ := modelByKey(map[string]string{"GOOGLE_API_KEY": "maps"}); model != "" {
		t.Errorf("a key that may be for maps chooses %s", model)
	}
}

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
		"  c: {url: http://h, headers: {X-K: $C_TOKEN}}\n  d: {url: http://h, headers: {X-K: $HOME}}\n"+
		"  e: {url: http://h, key_env: E_KEY}\n  f: {url: http://h, headers: {X-K: $E_KEY}}\n"+
		"  g: {url: http://h, headers: {X-K: \"a\\nb\"}}\n  h: {url: http://h, headers: {X K: a}}\n")
	o.Environ = append(o.Environ, "E_KEY=sk-0123\n456789")
	s, vs, err := Load(o)
	require.NoError(t, err)
	for name, want := range map[string]string{"a": "the endpoint a cannot be used: A_KEY is not set", "b": "the endpoint b cannot be used: cannot read",
		"c": "the endpoint c cannot be used: C_TOKEN is not set", "d": "the endpoint d cannot be used: HOME may be seen by commands",
		"e": "the endpoint e cannot be used: the key in E_KEY cannot be sent", "f": "the endpoint f cannot be used: the key in E_KEY cannot be sent",
		"g": `the endpoint g cannot be used: the header "X-K" cannot be sent`, "h": `the endpoint h cannot be used: the header "X K" cannot be sent`,
	} {
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
		"endpoints: {a b: {url: http://h}}\n":                             "needs a name of letters",
		"endpoints:\n  a: {key_env: A_KEY}\n":                             ":2:3: the endpoint a needs a url",
		"endpoints: {a: {url: ftp://h}}\n":                                "needs a url",
		"endpoints: {a: {url: http://me:secret@h}}\n":                     "has a name or a key in its url",
		"endpoints: {a: {url: http://h, api: gemini}}\n":                  "has an api that is not",
		"endpoints: {a: {url: http://h, key: secret}}\n":                  "has a key in the file",
		"endpoints: {a: {url: http://h, key_env: A_KEY, key_file: b}}\n":  "has both",
		"endpoints: {a: {url: http://h, headers: {a: [b]}}}\n":            "another kind of value",
		"endpoints: {a: {url: http://h, extra_body: {x: .inf}}}\n":        "the field x of extra_body cannot be sent",
		"endpoints: {a: {ulr: http://h}}\n":                               `unknown field "ulr"`,
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
	require.NoError(t, err)
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
		"models: {openai/x: {windw: 5}}":                 "unknown field",
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
