// Package importtest holds the house's rule, as a test: arrows point down only.
package importtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// floors from the ground up. A room may import rooms of lower floors; of its own floor only where peers says so.
var floors = [][]string{
	{"", "llm"},
	{"internal/editdist", "internal/failpoint", "internal/state", "internal/flat", "internal/testing/faultinject", "internal/testing/mutate",
		"internal/testing/tmuxtest", "internal/testing/wait"},
	{"internal/paths", "internal/config", "internal/durable", "internal/terminal", "llm/internal/wire"},
	{"store/file", "store/mem", "store/storetest", "llm/anthropic", "llm/openai", "llm/script", "llm/retry", "llm/llmtest",
		"internal/git", "internal/proc", "internal/testing/simfs"},
	{"journal", "internal/testing/gittest"},
	{"internal/view", "internal/corruption"},
	{"internal/board", "internal/mailbox", "internal/roster", "internal/transcript", "internal/worktree"},
	{"internal/requests", "internal/landing", "internal/outbox"},
	{"internal/workspace"},
	{"loop", "tool"},
	{"internal/prompt", "internal/tool/code", "internal/tool/agent"},
	{"internal/tool/teamtools", "agent"},
	{"internal/teammate"},
	{"team"},
	{"internal/chat", "internal/demo", "internal/testing/torture"},
	{"internal/cli"},
	{"cmd/muster", "cmd/muster-torture"},
	{"internal/e2e", "internal/docs", "internal/limits", "bench", "bench/bare"}, // they test or measure the program from outside
}

// peers are imports within one floor, or otherwise out of the ordinary, with the reason.
var peers = map[string]string{
	"internal/failpoint -> internal/testing/faultinject": "with the build tag failpoint only",
}

// standardOnly may import nothing but the standard library (and, for llm, nothing of ours).
var standardOnly = []string{"", "llm"}

// chooses a store or a model: only these may import an engine or a wire adapter.
var engines = []string{"store/file", "store/mem", "llm/anthropic", "llm/openai", "llm/script"}
var choosers = []string{"internal/cli", "internal/demo", "cmd/muster-torture"}

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

func room(path string) (string, bool) {
	if path == "muster" {
		return "", true
	}
	return strings.CutPrefix(path, "muster/")
}

func TestArrowsPointDown(t *testing.T) {
	floor := map[string]int{}
	for i, rooms := range floors {
		for _, r := range rooms {
			floor[r] = i
		}
	}
	for _, p := range packages(t) {
		from, ok := room(p.ImportPath)
		if !ok {
			continue
		}
		if _, known := floor[from]; !known && from != "internal/importtest" {
			t.Errorf("room %q is on no floor: add it to the table, or put its code where it belongs", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := room(imp)
			if !ours {
				continue
			}
			if floor[to] >= floor[from] && peers[from+" -> "+to] == "" {
				t.Errorf("%s imports %s, which is not below it", name(from), name(to))
			}
			if contains(engines, to) && !contains(choosers, from) {
				t.Errorf("%s imports %s: only %s choose a store or a model", name(from), name(to), strings.Join(choosers, ", "))
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

func TestGroundIsStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		from, ok := room(p.ImportPath)
		if !ok || !contains(standardOnly, from) {
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

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

func name(room string) string {
	if room == "" {
		return "muster (root)"
	}
	return room
}
