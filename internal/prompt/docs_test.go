package prompt

import (
	"os"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// Each rule has its reason in docs/prompts.md, in a row that begins as the rule does, and no row is of a rule that went.
func TestEachRuleHasItsReason(t *testing.T) {
	page := require.Value(os.ReadFile("../../docs/prompts.md"))(t)
	var rows []string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.HasPrefix(cells[1], "-") {
			if rule := strings.TrimSpace(cells[1]); rule != "rule" {
				rows = append(rows, rule)
			}
		}
	}
	if len(rows) < 20 {
		t.Fatalf("the page has %d rules", len(rows))
	}
	var rules []string
	for _, name := range []string{"lead.md", "team.md", "teammate.md"} {
		for line := range strings.Lines(read(name)) {
			rule, isRule := strings.CutPrefix(line, "- ")
			if isRule || strings.HasPrefix(line, "Trust:") || strings.HasPrefix(line, "Be brief") {
				rules = append(rules, rule)
			}
		}
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(rule, row) }) {
			t.Errorf("docs/prompts.md has no reason of the rule %.40q", rule)
		}
	}
	for _, row := range rows {
		if !slices.ContainsFunc(rules, func(rule string) bool { return strings.HasPrefix(rule, row) }) {
			t.Errorf("no prompt has the rule %q of docs/prompts.md", row)
		}
	}
}
