package cli

import (
	"path/filepath"

	"muster"
	"muster/internal/config"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/openai"
	"muster/llm/script"
)

// model makes the model that a name and the environment say.
func (a *App) model(name string, s config.Settings) (llm.Model, error) {
	c, err := config.Choose(name, a.Env)
	if err != nil {
		return nil, err
	}
	switch c.Provider {
	case config.Anthropic:
		return anthropic.New(anthropic.Options{Model: c.Name, BaseURL: c.URL, Key: a.env("ANTHROPIC_API_KEY"), MaxTokens: s.MaxTokens, Effort: s.Effort}), nil
	case config.OpenAIChat, config.OpenAIResponses:
		api := openai.Chat
		if c.Provider == config.OpenAIResponses {
			api = openai.Responses
		}
		return openai.New(openai.Options{Model: c.Name, BaseURL: c.URL, Key: a.env("OPENAI_API_KEY"), API: api, MaxTokens: s.MaxTokens, Effort: s.Effort}), nil
	case config.Script:
		file := c.Name
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.at(), file)
		}
		words, err := script.Load(file)
		if err != nil {
			return nil, err
		}
		return words.Model(), nil
	}
	return nil, muster.Errorf(muster.Invalid, "there is no provider %q", c.Provider)
}
