package teammate

import (
	"context"
	"fmt"

	"muster"
	"muster/internal/permissions"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

// scratchView looks at what a member without a task has changed where its tools run: nothing lands from there. The
// member is told after the command that has changed something, and once more when it stops.
type scratchView struct {
	name       muster.Name
	isConfined bool // its commands only read there
	run        func(context.Context) (muster.Run, error)
	worktrees  Lanes
	tasks      holder
	diary      *diary
	told       guarded[scratchTold]
}

// scratchTold is what the member was told of its changes. It is kept in memory only: to be told again does no harm.
type scratchTold struct {
	after  string // the files that a command's result has named last
	atStop bool   // a reminder was given, and there were changes ever since
}

// maxScratchFiles is how many files are named.
const maxScratchFiles = 8

// changes names the files that the member has changed in its scratch checkout; "" when there are none, when the member
// has a task, and so works in a lane, or when its commands are confined.
func (v *scratchView) changes(ctx context.Context) string {
	if _, ok := v.tasks.CurrentTask(); ok || v.isConfined {
		return ""
	}
	run, err := v.run(ctx)
	var files []string
	if err == nil {
		// By the record: to ask the Lander for the target would put back one that the member has just moved.
		files, err = v.worktrees.ScratchChanges(ctx, v.name, run.MayBeAt())
	}
	if err != nil { // the end of the run looks again
		v.diary.dropped(ctx, "looking at the scratch checkout", err)
		return ""
	}
	return text.EscapeTags(text.List(files, maxScratchFiles))
}

// around runs a call and adds to its result what it has changed in the scratch checkout. Only commands can: the tools
// that write files refuse to.
func (v *scratchView) around(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	if c.Name != "bash" && c.Name != "subagent" || err != nil || c.Name == "bash" && onlyReads(c) {
		return r, err
	}
	files := v.changes(ctx)
	isNews := false
	v.told.change(func(t *scratchTold) {
		isNews = files != "" && files != t.after
		t.after = files
	})
	if isNews {
		r.Parts = append(r.Parts, llm.Text{Text: fmt.Sprintf("\n[Nothing that you change here lands: it is a view "+
			"of what has landed. You have changed %s. To have that land: task_create, claim_task, and change it in "+
			"the task's lane.]", files)})
	}
	return r, err
}

// onlyReads reports whether a command is known to change nothing: to look after it would cost a git process.
func onlyReads(c llm.Call) bool {
	plan := permissions.Policy{Mode: permissions.Plan}
	return plan.Decide(permissions.NewCall(c.Name, c.Input, "", nil), nil).Action == permissions.Allow
}

// reminder is what a member reads that stops with changes in its scratch checkout; "" when there are none, or when it
// was reminded of them.
func (v *scratchView) reminder(ctx context.Context) string {
	files := v.changes(ctx)
	isNews := false
	v.told.change(func(t *scratchTold) { isNews, t.atStop = files != "" && !t.atStop, files != "" })
	if !isNews {
		return ""
	}
	return fmt.Sprintf("You have changed %s where nothing lands. If it should land: task_create, claim_task, and "+
		"change it in the task's lane. If not, take it back (git checkout, git clean). If you just end again, it "+
		"is put aside, and the run does not count as done.", files)
}
