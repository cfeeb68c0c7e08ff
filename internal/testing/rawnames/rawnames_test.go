package rawnames_test

import (
	"testing"

	"muster/internal/testing/rawnames"
)

func TestFind(t *testing.T) {
	for _, raw := range []string{"needs_attention", "plan_approval_request", "(awaiting_tasks)", "task.completed", "<auto-claimed>",
		"</mail>", `<mail from="lead">`, `task_update{status:"pending"}`, "no_tool_use"} {
		if len(rawnames.Find("a "+raw+" b")) != 1 {
			t.Errorf("%s: %v", raw, rawnames.Find(raw))
		}
	}
	if found := rawnames.Find("needs you, plan of alice for 1, bash, complete_task, the task in progress <b> a < b"); len(found) > 0 {
		t.Error(found)
	}
}
