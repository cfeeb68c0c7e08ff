package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/settings.md")

// pageHead and pageFoot are what people have written of the page; what is between them is made of the table.
const (
	pageHead = `# Settings

Every setting of muster. This page is made of the table in internal/config/table.go:
` + "`go test ./internal/config -run TestPage -update`" + ` writes it.

A setting is looked for in this order; the first place that has it counts:

1. a flag, where it has one: ` + "`--teammates 2`" + `
2. the environment: ` + "`MUSTER_TEAMMATES=2`" + `
3. ` + "`muster.yaml`" + ` in the repository: ` + "`teammates: 2`" + `
4. your own ` + "`config.yaml`: on Linux `~/.config/muster/config.yaml`, on macOS\n" +
		"   `~/Library/Application Support/muster/config.yaml`, on Windows `%AppData%\\muster\\config.yaml`" + `
5. the default

` + "`muster config`" + ` prints what holds here, and where each value comes from. In a file, a dot is a level:
` + "`landing.jobs` is `landing: {jobs: 2}`" + `. A setting that does not exist is an error with its line.

The last column says what becomes of a value in ` + "`muster.yaml`" + `, which comes from whoever made the repository:

| | |
|---|---|
| counts | it does no harm, and counts at once |
| lowers | it counts if it is lower than what would hold without it |
| trust | it is left out until you have seen it: ` + "`muster trust`" + ` |
| trust first | no run begins until you have seen it, or say another by a flag or a variable |
| refused | only your own file, the environment and a flag may have it |

`
	pageFoot = `
## Settings with parts

| in a file | may stand in ` + "`muster.yaml`" + ` | page |
|---|---|---|
| ` + "`checks`" + `: several checks with names | trust first | [checks.md](checks.md) |
| ` + "`roles`" + `: model, effort, reply and fallback of one role | trust | [models.md](models.md) |
| ` + "`hooks`" + `: commands at moments of the work | trust | [hooks.md](hooks.md) |
| ` + "`permissions`" + `: what members may do, and what you are asked about | only to forbid | [permissions.md](permissions.md) |
| ` + "`mcp_servers`" + `: servers whose tools members have | trust | [mcp.md](mcp.md) |
| ` + "`endpoints`" + `: model servers of your own | refused | [models-and-settings.md](models-and-settings.md#endpoints-of-your-own) |
| ` + "`models`" + `: limits and prices of models | refused | [models.md](models.md) |

## The environment beside the settings

| variable | is |
|---|---|
| ` + "`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`" + ` and those of other vendors | the key of a model server: [models.md](models.md) |
| ` + "`ANTHROPIC_BASE_URL`, `OPENAI_BASE_URL`" + ` | another address of that server |
| ` + "`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`" + ` | the way to it |
| ` + "`MUSTER_LOG`, `MUSTER_LOG_FILE`" + ` | how much is logged, and where: [models-and-settings.md](models-and-settings.md#a-log) |
| ` + "`NO_COLOR`, `TERM`" + ` | no colour; with ` + "`TERM=dumb`" + ` plain lines |
| ` + "`XDG_CONFIG_HOME`, `XDG_STATE_HOME`, `XDG_CACHE_HOME`" + ` | where your own file, the trust and the log, and the caches lie |
`
)

// TestPage checks that docs/settings.md has all settings as they are; -update writes it.
func TestPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(pageHead)
	flags := flagsOfCommands(t)
	page.WriteString("| name | kind | default | meaning | flag and variable | in `muster.yaml` |\n" +
		"|---|---|---|---|---|---|\n")
	for _, s := range Table() {
		names := "`" + s.Env() + "`"
		if flags[s.Flag()] {
			names = "`--" + s.Flag() + "` " + names
		}
		value := ""
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, kind(s), value,
			strings.ReplaceAll(s.About, "|", `\|`), names, ruleWord[s.inRepository])
	}
	page.WriteString(pageFoot)
	file := filepath.Join("..", "..", "docs", "settings.md")
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(page.String(), string(got)); d != "" {
		t.Errorf("docs/settings.md is not what the table says; go test ./internal/config -run TestPage -update writes it:\n%s", d)
	}
}

// ruleWord says in the page's words when a value in a repository counts.
var ruleWord = map[rule]string{needsTrust: "trust", stopsRuns: "trust first", mayLower: "lowers", counts: "counts",
	isRefused: "refused"}

// kind says what values a setting takes.
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
	case *Checks, *Names, *Models:
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

// flagsOfCommands returns the names of all flags that the commands declare, as in f.String("model", ...).
func flagsOfCommands(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "cli", "*.go"))
	if err != nil || len(files) < 10 {
		t.Fatalf("files of the commands: %q, %v", files, err)
	}
	found := map[string]bool{}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			method, isMethod := call.Fun.(*ast.SelectorExpr)
			name, isText := call.Args[0].(*ast.BasicLit)
			if isMethod && isText && (method.Sel.Name == "String" || method.Sel.Name == "Int" || method.Sel.Name == "Bool") {
				if text, err := strconv.Unquote(name.Value); err == nil {
					found[text] = true
				}
			}
			return true
		})
	}
	return found
}
