package teammate

import (
	"os"
	"strings"
	"testing"

	"muster"
	"muster/internal/prompt"
	"muster/internal/tool/code"
	"muster/llm"
)

// The description of each tool is a file, and each file is the description of a tool.
func TestDescriptionsAreFiles(t *testing.T) {
	unused := map[string]bool{}
	entries, err := os.ReadDir("../prompt/tools")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		unused[strings.TrimSuffix(e.Name(), ".md")] = true
	}
	check := func(s llm.Spec) {
		delete(unused, s.Name)
		if s.Description != prompt.Tool(s.Name) {
			t.Errorf("%s is described as %q, and its file says %q", s.Name, s.Description, prompt.Tool(s.Name))
		}
	}
	for _, name := range []muster.Name{muster.Lead, "alice"} {
		live(t, name, func(l *life) {
			for _, s := range l.toolbox.get().specs {
				check(s)
			}
		})
	}
	for _, tool := range code.Tools(nil, nil, nil, code.Options{Patches: true}) { // some models get one more
		check(tool.Spec())
	}
	if len(unused) > 0 {
		t.Errorf("no tool has the descriptions %v", unused)
	}
}
