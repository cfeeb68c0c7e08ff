package proc

import (
	"slices"
	"testing"
)

func TestWithhold(t *testing.T) {
	env := []string{"PATH=/bin", "ANTHROPIC_API_KEY=k", "ANTHROPIC_AUTH_TOKEN=t", "OPENAI_API_KEY=k", "MUSTER_MODEL=m", "MUSTER_X=", "GIT_DIR=/x",
		"GIT_INDEX_FILE=/x", "GIT_AUTHOR_NAME=a", "OPENAI_API_KEY_NOTE=n"}
	was := slices.Clone(env)
	if got := Withhold(env); !slices.Equal(got, []string{"PATH=/bin", "GIT_AUTHOR_NAME=a", "OPENAI_API_KEY_NOTE=n"}) {
		t.Errorf("left: %q", got)
	}
	if !slices.Equal(env, was) {
		t.Error("the caller's list has changed")
	}
}
