package journal

import (
	"fmt"
	"strings"

	"muster"
)

// Trouble counts what members have tried in vain, by the events of a run.
type Trouble struct {
	Refused    int // calls that a rule, a hook, the user or the runtime has refused
	NotStarted int // commands that could not start
}

// Add counts one event.
func (t *Trouble) Add(e muster.Event) {
	switch {
	case e.Kind == TaskRefused,
		e.Kind == PermissionDecided && e.Text("outcome") == "denied",
		e.Kind == HookRan && e.Text("hook") == "PreToolUse" && e.Text("outcome") == "blocked":
		t.Refused++
	case e.Kind == ToolEnded && e.Fields["not_started"] == true:
		t.NotStarted++
	}
}

// String returns the counts in a line, "" where there is nothing to say.
func (t Trouble) String() string {
	var parts []string
	for _, x := range []struct {
		n    int
		what [2]string
	}{
		{t.Refused, [2]string{"call was refused", "calls were refused"}},
		{t.NotStarted, [2]string{"command could not start", "commands could not start"}},
	} {
		switch {
		case x.n == 1:
			parts = append(parts, "1 "+x.what[0])
		case x.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what[1]))
		}
	}
	return strings.Join(parts, ", ")
}
