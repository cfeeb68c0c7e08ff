package teammate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"muster"
	"muster/internal/prompt"
	"muster/internal/skills"
	"muster/internal/tool/agent"
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
	// With so many skills the list has not all of them.
	var many []skills.Skill
	for i := range 1000 {
		many = append(many, skills.Skill{Name: fmt.Sprint(i), Description: "one of many"})
	}
	for _, tool := range agent.SkillTools(many) {
		check(tool.Spec())
	}
	for _, name := range []string{"search_tools", "call_tool", "list_resources", "read_resource", "verdict"} {
		delete(unused, name) // of MCP servers: internal/mcp TestDescriptions; of reviewers: internal/landingagent
	}
	if len(unused) > 0 {
		t.Errorf("no tool has the descriptions %v", unused)
	}
}
