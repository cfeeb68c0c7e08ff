package config

import (
	"net/url"
	"slices"
	"strings"
)

// vendor is a vendor's own endpoint, whose models are named NAME/MODEL without any settings.
type vendor struct {
	name string // as package catalogue has it, too
	api  string // Anthropic, OpenAIChat or OpenAIResponses
	host string // of url; every URL with it leads to the vendor
	url  string // "" is the adapter's own
	// keys are the variables that may have the key. Messages name the first. Another one may be meant for another
	// service, so it does not choose a model when none is named.
	keys  []string
	model string // that is taken when none is named and the first key is set; "" is none
}

// vendors are the vendors, in the order in which a key decides.
var vendors = []vendor{
	{Anthropic, Anthropic, "api.anthropic.com", "", []string{"ANTHROPIC_API_KEY"}, "claude-sonnet-5"},
	{OpenAI, OpenAIResponses, "api.openai.com", "", []string{"OPENAI_API_KEY"}, "gpt-5.5"},
	{"deepseek", OpenAIChat, "api.deepseek.com", "https://api.deepseek.com/v1",
		[]string{"DEEPSEEK_API_KEY"}, "deepseek-v4-pro"},
	{"zai", OpenAIChat, "api.z.ai", "https://api.z.ai/api/paas/v4",
		[]string{"ZAI_API_KEY", "Z_AI_API_KEY", "ZHIPU_API_KEY"}, "glm-5.3"},
	{"moonshot", OpenAIChat, "api.moonshot.ai", "https://api.moonshot.ai/v1",
		[]string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}, "kimi-k3"},
	{"minimax", OpenAIChat, "api.minimax.io", "https://api.minimax.io/v1", []string{"MINIMAX_API_KEY"}, "MiniMax-M3"},
	{"qwen", OpenAIChat, "dashscope-intl.aliyuncs.com", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
		[]string{"DASHSCOPE_API_KEY", "QWEN_API_KEY"}, "qwen3.8-max"},
	{"mistral", OpenAIChat, "api.mistral.ai", "https://api.mistral.ai/v1",
		[]string{"MISTRAL_API_KEY"}, "mistral-medium-2604"},
	{"xai", OpenAIChat, "api.x.ai", "https://api.x.ai/v1", []string{"XAI_API_KEY"}, "grok-4.7"},
	{"openrouter", OpenAIChat, "openrouter.ai", "https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}, ""},
	{"gemini", OpenAIChat, "generativelanguage.googleapis.com",
		"https://generativelanguage.googleapis.com/v1beta/openai", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		"gemini-4-argon"},
}

// vendorOf returns the vendor that a provider belongs to. The kinds of OpenAI's interface belong to one.
func vendorOf(provider string) (vendor, bool) {
	if provider == OpenAIChat || provider == OpenAIResponses {
		provider = OpenAI
	}
	return findVendor(func(v vendor) bool { return v.name == provider })
}

// findVendor returns the first vendor for which is returns true.
func findVendor(is func(vendor) bool) (vendor, bool) {
	if i := slices.IndexFunc(vendors, is); i >= 0 {
		return vendors[i], true
	}
	return vendor{}, false
}

// isAt reports whether a URL, or "" for none, leads to the vendor's own host.
func (v vendor) isAt(at string) bool {
	u, err := url.Parse(at)
	return at == "" || err == nil && u.Hostname() == v.host
}

// access returns the key of the vendor, with the variable that has it. The token is stronger than the keys.
func (v vendor) access(env map[string]string) Access {
	for _, name := range append([]string{v.token()}, v.keys...) {
		if key := trimKey(env[name]); key != "" {
			return Access{Key: key, KeyName: name, IsBearer: name == v.token()}
		}
	}
	return Access{KeyName: strings.Join(v.keys[:min(1, len(v.keys))], "")}
}

// token is the name of the variable that may have a bearer token. Only Anthropic's interface has another header for
// keys.
func (v vendor) token() string {
	if v.api != Anthropic {
		return ""
	}
	return strings.ToUpper(v.name) + "_AUTH_TOKEN"
}

// baseURL is the name of the variable that has another URL for the vendor's endpoint.
func (v vendor) baseURL() string { return strings.ToUpper(v.name) + "_BASE_URL" }

// providerNames are the names that a model's name can begin with, apart from the user's endpoints.
func providerNames() []string {
	names := slices.Clone(providers)
	for _, v := range vendors {
		if !slices.Contains(names, v.name) {
			names = append(names, v.name)
		}
	}
	return names
}

// Vendor returns the name of the vendor whose models c's endpoint serves, as package catalogue has it. A server that is
// not known is taken for one that serves those of the provider: a proxy does, and any other has models of other names.
func (c Choice) Vendor() string {
	v, ok := findVendor(func(v vendor) bool { return c.URL != "" && v.isAt(c.URL) })
	if !ok {
		v, _ = vendorOf(c.Provider)
	}
	return v.name
}

// API returns which interface c's endpoint has: Anthropic, OpenAIChat, OpenAIResponses or Script.
func (c Choice) API() string {
	if v, ok := vendorOf(c.Provider); ok && c.Provider == v.name {
		return v.api
	}
	return c.Provider
}
