package face

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/testing/require"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
	"muster/llm"
)

// TestOutputRows checks that an output stands below its call in rows that are cut, and harmless.
func TestOutputRows(t *testing.T) {
	got := strings.Join(OutputRows("ok\tmuster\n\n\x1b[2Jmuch longer than the row\n[exit 1]", 2, 20), "|")
	if want := "  ok    muster|  [2Jmuch longer...|  [exit 1]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEditRows checks the lines below a call that edits a file: the old before the new, wrapped to the width, and harmless.
func TestEditRows(t *testing.T) {
	input := require.Value(json.Marshal(map[string]any{"path": "a", "old_string": "same\nold\x1b[2J",
		"new_string": "same\n\tnew and much longer than the row is\nb\nc\nd"}))(t)
	e, ok := code.EditOf(llm.Call{Name: "edit_file", Input: input})
	if !ok || e.Counts() != "+4 -1" {
		t.Errorf("%v %v", ok, e)
	}
	if got, want := strings.Join(EditRows(view.Paint{}, e, 4, "", 2, 30), "\n"), `   same
  -old[2J
  +    new and much longer
       than the row is
  +b
  +c
  ... 1 more changed line`; got != want {
		t.Errorf("%s", got)
	}
	if got := EditRows(view.Paint{}, e, 4, "/open 3", 0, 80); got[len(got)-1] != "... 1 more changed line  /open 3" {
		t.Errorf("%q", got)
	}
	for isLight, want := range map[bool]string{false: "\x1b[38;5;253;48;5;52m-old[2J\x1b[0m", true: "\x1b[38;5;235;48;5;224m-old[2J\x1b[0m"} {
		p := view.Colours(nil)
		p.OnLight(isLight)
		got := EditRows(p, e, 1, "", 0, 30)[1]
		if !strings.HasPrefix(got, want) || text.Columns(ansi.Strip(got)) != 29 {
			t.Errorf("%q", got)
		}
	}
}
