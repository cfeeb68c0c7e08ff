package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
)

var update = flag.Bool("update", false, "write docs/settings.md")

// TestPage checks that the table of docs/settings.md has all settings as they are; -update writes it.
func TestPage(t *testing.T) {
	const head = "| name | kind | default | meaning | flag and variable | in `muster.yaml` |\n|---|---|---|---|---|---|\n"
	var table strings.Builder
	for _, s := range Table() {
		names := "`" + s.Env() + "`"
		if s.Usage != "" {
			names = "`--" + s.Flag() + "` " + names
		}
		value := ""
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, kind(s), value,
			strings.ReplaceAll(s.About, "|", `\|`), names, ruleWord[s.inRepository])
	}
	file := filepath.Join("..", "..", "docs", "settings.md")
	page := require.Value(os.ReadFile(file))(t)
	before, rest, hasTable := strings.Cut(string(page), head)
	got, after, isEnded := strings.Cut(rest, "\n\n")
	if !hasTable || !isEnded {
		t.Fatal("docs/settings.md has no table of settings")
	}
	if got += "\n"; *update {
		require.NoError(t, os.WriteFile(file, []byte(before+head+table.String()+"\n"+after), 0o644))
	} else if d := cmp.Diff(table.String(), got); d != "" {
		t.Errorf("docs/settings.md is not what the table says; go test ./internal/config -run TestPage -update writes it:\n%s", d)
	}
}

// ruleWord says in the page's words when a value in a repository counts.
var ruleWord = map[rule]string{needsTrust: "trust", stopsRuns: "trust first", mayLower: "lowers", counts: "counts",
	isRefused: "refused"}

func kind(s Setting) string {
	switch s.to.(type) {
	case *int:
		if s.most > 0 {
			return fmt.Sprintf("number, %d to %d", s.least, s.most)
		}
		return fmt.Sprintf("number, from %d", s.least)
	case *bool:
		return "`true`, `false`"
	case *time.Duration:
		if least := time.Duration(s.least); least > time.Millisecond {
			return "duration, from " + least.String()
		}
		return "duration"
	case *Checks, *names, *[]string:
		return "list"
	}
	var words []string
	for _, w := range s.words {
		if w != "" {
			words = append(words, "`"+w+"`")
		}
	}
	if len(words) == 0 {
		return "text"
	}
	return strings.Join(words, ", ")
}
