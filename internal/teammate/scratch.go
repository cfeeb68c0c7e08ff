package teammate

import (
	"context"
	"fmt"

	"muster/internal/permissions"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

// scratchView looks at what a member without a task has changed where its tools run: nothing lands from there. The
// member is told after the command, and once more when it stops.
type scratchView struct {
	claims     *claims
	isConfined bool // its commands only read there
	told       guarded[scratchTold]
}

type scratchTold struct {
	after  string // the files that a command's result has named last
	atStop bool   // a reminder was given, and there were changes ever since
}

const maxScratchFiles = 8

// changes names what the member has changed in its scratch checkout; "" if it has a lane, or cannot write.
func (v *scratchView) changes(ctx context.Context) string {
	if _, ok := v.claims.CurrentTask(); ok || v.isConfined {
		return ""
	}
	run, err := v.claims.run(ctx)
	var files []string
	if err == nil {
		// By the record: to ask the Lander for the target would put back one that the member has just moved.
		files, err = v.claims.worktrees.ScratchChanges(ctx, v.claims.name, run.MayBeAt())
	}
	if err != nil { // the end of the run looks again
		v.claims.diary.dropped(ctx, "looking at the scratch checkout", err)
		return ""
	}
	return text.EscapeTags(text.List(files, maxScratchFiles))
}

// around adds to the result of a call what it has changed in the scratch checkout. Only commands can.
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

// reminder is what a member reads that stops with changes in its scratch checkout, once.
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
