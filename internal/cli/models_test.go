package cli

import (
	"testing"

	"muster/internal/config"
	"muster/internal/testing/require"
)

// A model is refused images only when it is known to take none.
func TestWhoTakesNoImages(t *testing.T) {
	s, _, err := config.Load(config.Options{})
	require.NoError(t, err)
	environ := []string{"ZAI_API_KEY=x", "ANTHROPIC_API_KEY=x", "OPENAI_API_KEY=x"}
	for model, want := range map[string]bool{"zai/glm-5.2": true, "anthropic/claude-opus-5": false,
		"openai/some-model-of-tomorrow": false, "no/such": false, "script/x.yaml": false} {
		if got := takesNoImages(s, model, environ); got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
}
