//go:build linux

package hostile

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/tier"
)

// greedy are commands that take more of the machine than a command may, and what the member reads of it.
var greedy = map[string][2]string{
	// A bomb stops at some 8,000 processes by itself, so that a limit that fails does not take the machine down. Its
	// processes sleep for a time that no other test uses: what is left of them is found by it.
	"fork bomb":           {`b() { [ $1 -gt 12 ] || { b $(($1+1)) & b $(($1+1)) & }; sleep 9173; }; b 0 2>/dev/null; sleep 9173`, "its limit of 300 processes"},
	"bomb that leaves":    {`(setsid sh -c 'b() { [ $1 -gt 12 ] || { b $(($1+1)) & b $(($1+1)) & }; sleep 9173; }; b 0' >/dev/null 2>&1 &); sleep 9173`, "its limit of 300 processes"},
	"memory":              {`dd if=/dev/zero of=/dev/null bs=1500M`, "its limit of 600 MB of memory"},
	"memory in many":      {`for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=/dev/null bs=100M & done; wait`, "its limit of 600 MB of memory"},
	"output":              {`head -c 5G /dev/zero | tr '\0' x`, "printed more than 100 MB"},
	"output of lines":     {`yes | head -c 5G`, "printed more than 100 MB"},
	"a large file":        {`dd if=/dev/zero of=large bs=1M count=500; wc -c large`, "104857600 large"},
	"a file with holes":   {`truncate -s 50G holes; test ! -s holes && echo refused`, "refused"},
	"directory in memory": {`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do dd if=/dev/zero of=/tmp/$i bs=1M count=99; done 2>&1 | tail -1; echo ended`, ""},
}

// What a command takes of the machine harms neither the other members nor muster: each greedy command ends, its member
// reads why, and what another does meanwhile lands.
func TestGreedyCommands(t *testing.T) {
	tier.All(t)
	asEachUser(t, beGreedy) // nobody can make no control group: muster counts
}

// beGreedy has one member take what it can get, while another does its work.
func beGreedy(t *testing.T, w *escapeWorld) {
	turns := []any{turn("task_create", map[string]any{"subject": "modest"}), // which alice takes by herself
		turn("spawn_teammate", map[string]any{"name": "alice", "role": "coder", "prompt": "modest"})}
	var modest []any
	for _, name := range slices.Sorted(maps.Keys(greedy)) {
		turns = append(turns, bash("echo 'tried ["+name+"]'\n"+greedy[name][0]))
		modest = append(modest, bash("echo beside "+name+" >> modest.txt; seq 3 | xargs -n 1 echo; git add modest.txt; git commit -qm more; wc -l modest.txt"))
	}
	turns = working(append(turns, bash("git clean -fdq; git reset -q --hard; echo good > b.txt"))...)
	modest = append(modest, turn("complete_task", map[string]any{"task_id": 2, "summary": "Works."}), done)
	model, err := json.Marshal(map[string]any{"speakers": map[string]any{"lead": turns, "alice": modest}})
	w.must(err)
	w.env = append(w.env, "MUSTER_RESOURCES_PROCESSES=300", "MUSTER_RESOURCES_MEMORY=600MB", "MUSTER_RESOURCES_FILE_SIZE=100MB")
	out := w.plays(model, "--teammates", "1")
	if landed := w.git("ls-tree", "--name-only", "muster/t"); !strings.Contains(landed, "b.txt") || !strings.Contains(landed, "modest.txt") {
		t.Errorf("landed: %s\n%s", landed, out)
	}
	said := w.transcript()
	for name, c := range greedy {
		_, after, tried := strings.Cut(said, "tried ["+name+"]\\n")
		if end := strings.Index(after, "tried ["); end > 0 {
			after = after[:end]
		}
		if !tried || !strings.Contains(after, c[1]) {
			t.Errorf("%s: tried %v, and told:\n%.1000s", name, tried, after)
		}
	}
	if left, _ := exec.Command("pgrep", "-af", "sleep 917[3]").Output(); len(left) > 0 { // without one it exits with 1
		t.Errorf("still there: %.1000s", left)
	}
}
