package config

import (
	"errors"
	"testing"

	"muster"
	"muster/llm/catalogue"
)

// Each vendor is asked at its own endpoint, by the interface that it has, with its own key and no other.
func TestVendors(t *testing.T) {
	for _, c := range []struct{ model, api, url, key string }{
		{"deepseek/deepseek-flash", OpenAIChat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
		{"zai/glm-5.2", OpenAIChat, "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"},
		{"zai/glm-5.2", OpenAIChat, "https://api.z.ai/api/paas/v4", "ZHIPU_API_KEY"},
		{"moonshot/kimi-k3", OpenAIChat, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"},
		{"minimax/MiniMax-M3", OpenAIChat, "https://api.minimax.io/v1", "MINIMAX_API_KEY"},
		{"qwen/qwen3.8-max", OpenAIChat, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"},
		{"mistral/mistral-small-2603", OpenAIChat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
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
	if err != nil {
		t.Fatal(err)
	}
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
