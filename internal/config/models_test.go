package config

import (
	"errors"
	"strings"
	"testing"

	"muster"
)

func TestParseModel(t *testing.T) {
	for _, c := range []struct{ in, provider, model, url string }{
		{"anthropic/claude-sonnet-5", "anthropic", "claude-sonnet-5", ""},
		{"openai/gpt-5.5", "openai", "gpt-5.5", ""},
		{"openai/qwen3@http://localhost:11434/v1", "openai", "qwen3", "http://localhost:11434/v1"},
		{"openai-chat/meta/llama@https://h/v1", "openai-chat", "meta/llama", "https://h/v1"},
		{"openai-responses/x", "openai-responses", "x", ""},
		{"anthropic/claude@20250514", "anthropic", "claude@20250514", ""},
		{"script/a@b/c.yaml", "script", "a@b/c.yaml", ""},
		{"script//abs/x.yaml", "script", "/abs/x.yaml", ""},
	} {
		got, err := ParseModel(c.in)
		if err != nil || got != (Choice{c.provider, c.model, c.url}) {
			t.Errorf("%s: %+v, %v", c.in, got, err)
		}
	}
	for in, want := range map[string]string{
		"claude-sonnet-5":            "is not a model's name",
		"":                           "is not a model's name",
		"antropic/x":                 "(did you mean anthropic?)",
		"anthropic/":                 "names no model",
		"openai/@http://h/v1":        "names no model",
		"openai/x@localhost:1234/v1": "is not a URL",
		"openai/x@ftp://h/v1":        "is not a URL",
		"openai/x@http://k@h/v1":     "leave it out",
		"script/":                    "needs a file",
		"replay/x":                   "comes with a later version",
		"http://h/v1":                "is not a model's name",
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
		{name: "openai/qwen3@http://a/v1", environ: "OPENAI_BASE_URL=http://h/v1",
			want: Choice{"openai-chat", "qwen3", "http://a/v1"}},
		{name: "openai-chat/x", environ: "OPENAI_API_KEY=k", want: Choice{"openai-chat", "x", ""}},
		{name: "openai-responses/x@http://h/v1", want: Choice{"openai-responses", "x", "http://h/v1"}},
		{name: "anthropic/x", environ: "ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=http://p",
			want: Choice{"anthropic", "x", "http://p"}},
		{name: "script/a.yaml", want: Choice{"script", "a.yaml", ""}},
		{environ: "OPENAI_API_KEY=k", want: Choice{"openai-responses", "gpt-5.5", ""}},
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
