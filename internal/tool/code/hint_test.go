package code

import (
	"testing"

	"muster"
)

// Whatever a tool for files is refused for, its model reads what to do instead.
func TestTheModelReadsTheHint(t *testing.T) {
	k := newKit(t)
	k.place.err = muster.Errorf(muster.Fenced, "task 3 was taken from you").WithHint("claim another")
	for name, input := range map[string]in{
		"bash":       {"command": "true"},
		"read_file":  {"path": "a"},
		"write_file": {"path": "a", "content": "x"},
		"edit_file":  {"path": "a", "old_text": "x", "new_text": "y"},
		"glob":       {"pattern": "*"},
		"grep":       {"pattern": "x"},
	} {
		same(t, name, k.sorry(name, input), "task 3 was taken from you: claim another")
	}
}

// What the runtime acts on is said by each tool of itself.
func TestToolsSayWhatTheRuntimeMustKnow(t *testing.T) {
	plan := map[string]bool{"bash": true, "write_file": true, "edit_file": true}
	for _, tl := range newKit(t).tools {
		if s := tl.Spec(); s.NeedsPlan != plan[s.Name] || s.Polls != (s.Name == "check_background") {
			t.Errorf("%s: NeedsPlan %v, Polls %v", s.Name, s.NeedsPlan, s.Polls)
		}
	}
}
