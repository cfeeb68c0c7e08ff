// Package importtest tests the import graph: each package belongs to a layer and imports only packages of lower layers.
// Where a package is cut into parts, it tests which part uses which.
package importtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers lists all packages, the lowest layer first. A package may import packages of lower layers, and others only
// where exceptions says so.
var layers = [][]string{
	{"", "llm"},
	{"internal/highlight", "internal/lazyregexp", "internal/proxies"},
	{"internal/text"},
	{"internal/cgroup", "internal/difflines", "internal/landlock", "internal/clock", "internal/compact", "internal/detach", "internal/testing/tier", "internal/testing/require", "internal/testing/tapped", "llm/internal/wiretest", "internal/testing/gittest",
		"llm/catalogue"},
	{"internal/editdist", "internal/failpoint", "internal/lineedit", "internal/markdown", "internal/state", "internal/leftovers", "internal/redact", "internal/secrets", "internal/shellcommands", "internal/yamldoc",
		"internal/testing/faultinject", "internal/testing/oauthtest", "internal/testing/tmuxtest",
		"internal/testing/program", "internal/testing/rawnames", "internal/testing/wait"},
	{"internal/durable", "internal/spend", "internal/textmatch"},
	{"internal/paths", "internal/config", "internal/detect", "internal/failures", "internal/terminal", "internal/frontmatter", "llm/internal/wire",
		"llm/repair"},
	{"internal/proc"},
	{"store/file", "store/mem", "store/storetest", "llm/anthropic", "llm/openai", "llm/script", "llm/retry", "llm/llmtest",
		"internal/git", "internal/trust", "internal/testing/simfs", "internal/live", "internal/agentfiles", "internal/ports", "internal/permissions"},
	{"journal", "internal/sandbox", "internal/setup", "internal/toolsettings"},
	{"internal/treediff", "internal/localfiles", "internal/toolchains", "internal/view", "internal/corruption", "internal/hooks", "internal/testing/scripts"},
	{"internal/hiddenpaths", "internal/board", "internal/mailbox", "internal/roster", "internal/transcript", "internal/worktree",
		"internal/check"},
	{"internal/requests", "internal/landing", "internal/outbox", "internal/memory", "internal/playbook",
		"internal/delivery", "internal/collision"},
	{"internal/workspace", "internal/confined", "internal/launchers"},
	{"loop", "tool", "internal/skills", "internal/roles", "internal/instructions"},
	{"internal/prompt", "internal/commands"},
	{"internal/tool/code", "internal/tool/agent", "internal/mcp"},
	{"internal/tool/teamtools", "internal/landingagent", "agent"},
	{"internal/teammate"},
	{"team"},
	{"internal/chat", "internal/demo", "internal/drill", "internal/face", "internal/printed"},
	{"internal/watch", "internal/web"},
	{"internal/cli"},
	{"internal/testing/torture"},
	{"cmd/muster", "cmd/muster-torture"},
	// These test or measure the program from outside.
	{"internal/e2e", "internal/hostile", "internal/docs", "internal/limits"},
}

// exceptions are imports of a package that is not in a lower layer, each with the reason.
var exceptions = map[string]string{
	"internal/failpoint -> internal/testing/faultinject": "with the build tag failpoint only",
}

// standardOnly may import nothing but the standard library (and, for llm, nothing of ours).
var standardOnly = []string{"", "llm"}

// implementations are the stores and models. Only importers may choose one of them; all other packages use the
// interfaces.
var (
	implementations = []string{"store/file", "store/mem", "llm/anthropic", "llm/openai", "llm/script"}
	importers       = []string{"internal/cli", "internal/demo", "internal/testing/torture"}
)

// commands may not import services: what a command shows or changes, it asks of the API of package team.
var (
	commands = []string{"internal/cli", "internal/chat", "internal/face", "internal/watch", "internal/web"}
	services = []string{"internal/board", "internal/mailbox", "internal/roster", "internal/requests", "internal/worktree",
		"internal/landing", "internal/outbox", "internal/transcript", "internal/git", "internal/corruption",
		"internal/teammate", "internal/delivery", "internal/check"}
)

// pkg is what is read of go list's output.
type pkg struct {
	ImportPath string
	Imports    []string
}

// packages lists all packages as they are with failpoints: without the build tag some imports are missing.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags=failpoint", "-json=ImportPath,Imports", "muster/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages found: the test looks at the wrong place", len(all))
	}
	return all
}

// relative returns an import path without the module's name; ok is false for a package of another module.
func relative(path string) (rel string, ok bool) {
	if path == "muster" {
		return "", true
	}
	return strings.CutPrefix(path, "muster/")
}

// TestImportsPointDown checks that each package imports only packages of lower layers.
func TestImportsPointDown(t *testing.T) {
	layer := map[string]int{}
	for i, list := range layers {
		for _, p := range list {
			layer[p] = i
		}
	}
	for _, p := range packages(t) {
		from, ok := relative(p.ImportPath)
		if !ok {
			continue
		}
		if _, known := layer[from]; !known && from != "internal/importtest" {
			t.Errorf("package %q is in no layer: add it to the table, or put its code where it belongs", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := relative(imp)
			if !ours {
				continue
			}
			if layer[to] >= layer[from] && exceptions[from+" -> "+to] == "" {
				t.Errorf("%s imports %s, which is not in a lower layer", name(from), name(to))
			}
			if slices.Contains(commands, from) && slices.Contains(services, to) {
				t.Errorf("%s imports %s: commands use the API of package team", name(from), name(to))
			}
			if slices.Contains(implementations, to) && !slices.Contains(importers, from) {
				t.Errorf("%s imports %s: only %s choose a store or a model", name(from), name(to),
					strings.Join(importers, ", "))
			}
		}
	}
}

// TestInstalledProgramHasNoTestSupport checks that nothing of internal/testing is linked into the program that people
// install. The same program with failpoints must have some of it, or the test looks for the wrong thing.
func TestInstalledProgramHasNoTestSupport(t *testing.T) {
	for _, tags := range []string{"", "failpoint"} {
		out, err := exec.Command("go", "list", "-deps", "-tags="+tags, "muster/cmd/muster").Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		var found []string
		for path := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(path, "muster/internal/testing/") {
				found = append(found, path)
			}
		}
		if hasSome := len(found) > 0; hasSome != (tags == "failpoint") {
			t.Errorf("with the build tags %q cmd/muster links %v", tags, found)
		}
	}
}

// TestLowestLayerImportsStandardLibraryOnly checks the packages in standardOnly.
func TestLowestLayerImportsStandardLibraryOnly(t *testing.T) {
	for _, p := range packages(t) {
		from, ok := relative(p.ImportPath)
		if !ok || !slices.Contains(standardOnly, from) {
			continue
		}
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if strings.Contains(first, ".") || first == "muster" {
				t.Errorf("%s imports %s: it may use the standard library only", name(from), imp)
			}
		}
	}
}

// name returns what errors call a package.
func name(rel string) string {
	if rel == "" {
		return "muster (root)"
	}
	return rel
}
