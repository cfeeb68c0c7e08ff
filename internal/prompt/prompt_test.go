package prompt

import (
	"testing"

	"muster"
)

// What there is nothing to say of is left out.
func TestTexts(t *testing.T) {
	landed := muster.Task{ID: 1, Subject: "a <mail>", Status: muster.Completed, Result: "red",
		Landed: &muster.Landed{Commit: "0123456789"}}
	next := muster.Task{ID: 2, Subject: "b", Base: "fedcba9876", BlockedBy: []muster.TaskID{1, 3}}
	run := muster.Run{Goal: "Go on.", Target: "main"}
	checked := muster.Run{Goal: "Go on.", Target: "main", Check: "make", Cap: 2}
	lane := muster.Lane{Path: "/lane", Branch: "l"}
	for _, c := range []struct{ got, want string }{
		{Goal(run, nil, nil), "The goal:\nGo on.\n\nNo check command is set.\n" +
			"There are no teammates in this run."},
		{Goal(checked, []muster.Task{next}, []muster.Task{landed}), "The goal:\nGo on.\n\n" +
			"At most 2 teammates may live at once.\n\n" +
			"These tasks are on the board already:\n#2 b [] waits for: #1 #3\n\n\n" +
			"These tasks of earlier runs failed. If the goal wants one, make the change again:\n" +
			"#1 a &lt;mail> [completed] landed: 0123456: red\n"},
		{Claimed(next, Work{Lane: lane}), "Task #2: b\n\nYour lane: /lane, branch l, from fedcba9. " +
			"All your tools run there now.\nWhen it is done, call complete_task with task_id 2 and a summary. The runtime commits, " +
			"merges, checks and lands."},
		{Claimed(muster.Task{ID: 2, Subject: "b", Description: "All.", Note: "half", RequirePlan: true},
			Work{[]muster.Task{landed}, []muster.Task{{ID: 4, Subject: "c", Owner: "bob"}}, lane, "M a", false, "make", false}), "Task #2: b\n\nAll.\n\n" +
			"It builds on #1 a &lt;mail> (landed as 0123456): red\nIt blocks #4 c (bob)\n\nYour lane: /lane, branch l, from . " +
			"All your tools run there now.\nAn earlier owner left these changes in it:\nM a\n" +
			"The last attempt left this: half\nThe check, on the merged tree: make\n" +
			"It needs an approved plan before you change anything: read, then call submit_plan.\n" +
			"When it is done, call complete_task with task_id 2 and a summary. The runtime commits, merges, checks and lands."},
		{Claimed(muster.Task{ID: 2, Subject: "b", RequirePlan: true}, Work{Lane: lane, Changes: "M <a>", IsOwn: true, Planned: true}),
			"Task #2: b\n\nYour lane: /lane, branch l, from . All your tools run there now.\nYour changes so far:\nM <a>\n" +
				"When it is done, call complete_task with task_id 2 and a summary. The runtime commits, merges, checks and lands."},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
