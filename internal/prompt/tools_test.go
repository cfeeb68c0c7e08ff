package prompt

import (
	"strings"
	"testing"

	"muster/internal/hooks"
)

// A matcher of a hook can name every tool.
func TestHooksKnowEveryTool(t *testing.T) {
	entries, err := files.ReadDir("tools")
	if err != nil || len(entries) == 0 {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".md"); !hooks.IsTool(name) {
			t.Errorf("package hooks does not know the tool %s", name)
		}
	}
}
