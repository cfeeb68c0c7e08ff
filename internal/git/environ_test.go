package git

import (
	"slices"
	"testing"
)

// Commands of agents can read the environment of a git that runs, and filters get it.
func TestGitGetsNoKey(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "ANTHROPIC_API_KEY=k", "GITHUB_TOKEN=github-0123456789", "HTTPS_PROXY=http://me:password@p", "LC_ALL=x",
		"GIT_DIR=/x", "COPY=github-0123456789", "GIT_CONFIG_GLOBAL=/g", "MY_SETTING=1"})
	if want := []string{"PATH=/bin", "GIT_CONFIG_GLOBAL=/g", "MY_SETTING=1", "LC_ALL=C"}; !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q first", got, want)
	}
}
