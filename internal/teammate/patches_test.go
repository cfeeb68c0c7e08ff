package teammate

import "testing"

// Only models that were trained on apply_patch read of it.
func TestWhoKnowsPatches(t *testing.T) {
	for model, want := range map[string]bool{"openai/gpt-5.1": true, "gpt-5-codex": true, "openrouter/openai/GPT-4.1": true,
		"anthropic/claude-opus-4-5": false, "deepseek/deepseek-chat": false, "script/gpt-x.yaml/other": false, "": false} {
		if got := knowsPatches(model); got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
}
