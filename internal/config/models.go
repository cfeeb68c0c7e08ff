package config

import (
	"net/url"
	"slices"
	"strings"

	"muster"
)

// The providers that a model's name can begin with.
const (
	Anthropic       = "anthropic"
	OpenAI          = "openai" // Responses at the vendor's endpoint, Chat Completions at any other
	OpenAIChat      = "openai-chat"
	OpenAIResponses = "openai-responses"
	Script          = "script" // a rehearsal read from a file
	Replay          = "replay" // a recorded run
)

// The models that are taken when none is named, by whose key is set.
const (
	anthropicDefault = "anthropic/claude-sonnet-5"
	openAIDefault    = "openai/gpt-5.5"
)

const howNamed = "a model is named like anthropic/claude-sonnet-5, openai/gpt-5.5, openai/qwen3@http://localhost:11434/v1 or script/FILE"

// ParseModel takes a model's name apart: provider/model or provider/model@URL. Of script/FILE the model is the file.
// Errors are Invalid.
func ParseModel(s string) (provider, model, endpoint string, err error) {
	provider, model, ok := strings.Cut(s, "/")
	switch {
	case !ok || strings.ContainsAny(provider, ":@ "):
		return "", "", "", muster.Errorf(muster.Invalid, "%s is not a model's name: %s", quote(withoutQuery(s)), howNamed)
	case provider == Replay:
		return "", "", "", muster.Errorf(muster.Invalid, "a recorded run cannot be replayed yet: %s comes with a later version", quote(s))
	case !slices.Contains(providers(), provider):
		return "", "", "", muster.Errorf(muster.Invalid, "there is no provider %s%s: %s", quote(provider), like(provider, providers()), howNamed)
	case provider == Script:
		if model == "" {
			return "", "", "", muster.Errorf(muster.Invalid, "script/ needs a file: script/FILE")
		}
		return provider, model, "", nil
	}
	if name, at, ok := cutEndpoint(model); ok {
		u, err := url.Parse(at)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return "", "", "", muster.Errorf(muster.Invalid, "the endpoint after the @ of model %s is not a URL such as http://localhost:11434/v1", quote(name))
		case u.User != nil:
			return "", "", "", muster.Errorf(muster.Invalid, "the endpoint of model %s has a name or a key in its URL: leave it out and set OPENAI_API_KEY or ANTHROPIC_API_KEY", quote(name))
		}
		model, endpoint = name, at
	}
	if model == "" {
		return "", "", "", muster.Errorf(muster.Invalid, "%s names no model: %s", quote(provider+"/"), howNamed)
	}
	return provider, model, endpoint, nil
}

// cutEndpoint splits at the @ of an endpoint. An @ before something that is no address belongs to the model's name.
func cutEndpoint(model string) (name, endpoint string, ok bool) {
	name, endpoint, ok = strings.Cut(model, "@")
	return name, endpoint, ok && strings.ContainsAny(endpoint, ":/")
}

func providers() []string {
	return []string{Anthropic, OpenAI, OpenAIChat, OpenAIResponses, Script, Replay}
}

// Choice is a model as an adapter needs it.
type Choice struct {
	Provider string // Anthropic, OpenAIChat, OpenAIResponses or Script
	Name     string // the model, or the script's file
	URL      string // the endpoint; "" is the vendor's
}

// Choose makes a choice of a model's name and the environment: "" is the model whose key is set, ANTHROPIC_BASE_URL
// and OPENAI_BASE_URL are endpoints, and the vendors' own endpoints need a key. Errors are Invalid.
func Choose(name string, environ []string) (Choice, error) {
	env := environment(environ)
	if name == "" {
		if name, _ = modelByKey(env); name == "" {
			return Choice{}, noKey("ANTHROPIC_API_KEY")
		}
	}
	provider, model, at, err := ParseModel(name)
	if err != nil {
		return Choice{}, err
	}
	c := Choice{Provider: provider, Name: model, URL: at}
	key, base, vendor := "OPENAI_API_KEY", "OPENAI_BASE_URL", "api.openai.com"
	switch provider {
	case Script:
		return c, nil
	case Anthropic:
		key, base, vendor = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "api.anthropic.com"
	}
	if c.URL == "" {
		c.URL = env[base]
	}
	own := c.URL == "" || hostOf(c.URL) == vendor
	if provider == OpenAI {
		c.Provider = OpenAIChat
		if own {
			c.Provider = OpenAIResponses
		}
	}
	if own && env[key] == "" {
		return Choice{}, noKey(key)
	}
	return c, nil
}

func noKey(key string) error {
	return muster.Errorf(muster.Invalid, "%s is not set (a model without a key: --model openai/qwen3@http://localhost:11434/v1)", key)
}

// modelByKey is the model to take when none is named, and where that comes from.
func modelByKey(env map[string]string) (model, source string) {
	switch {
	case env["ANTHROPIC_API_KEY"] != "":
		return anthropicDefault, "env ANTHROPIC_API_KEY"
	case env["OPENAI_API_KEY"] != "":
		return openAIDefault, "env OPENAI_API_KEY"
	}
	return "", "default"
}

func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// withoutQuery leaves out what may be a secret: the query of an endpoint, and whatever stands before its host's @.
func withoutQuery(model string) string {
	name, endpoint, ok := cutEndpoint(model)
	if !ok {
		return model
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return name + "@..."
	}
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = "..."
	}
	return name + "@" + u.String()
}
