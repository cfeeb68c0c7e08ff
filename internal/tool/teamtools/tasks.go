package teamtools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// maxFound limits what one teammate can add to the work of all. It is how many tasks a teammate may create while it has
// one task in hand.
const maxFound = 5

// taskCreate puts a task on the board. The lead may create many tasks, a teammate only a few: see mayCreate.
func (k toolset) taskCreate() llm.Tool {
	type in struct {
		Subject     string   `json:"subject"`
		Description string   `json:"description,omitempty"`
		BlockedBy   []string `json:"blocked_by,omitempty" jsonschema:"ids or subjects of open tasks"`
		ClaimRole   string   `json:"claim_role,omitempty"`
		Priority    int      `json:"priority,omitempty"`
		RequirePlan bool     `json:"require_plan,omitempty"`
		Review      bool     `json:"review,omitempty"`
		Files       []string `json:"files,omitempty" jsonschema:"to change; globs too"`
		Claim       bool     `json:"claim,omitempty"`
	}
	return textTool("task_create",
		func(ctx context.Context, in in) (string, error) {
			me := k.caller.Me().Name
			if err := k.mayCreate(ctx, me); err != nil {
				return "", err
			}
			ids, err := k.resolve(ctx, in.BlockedBy)
			if err != nil {
				return "", err
			}
			t, err := k.Board.Create(ctx, board.Draft{Subject: in.Subject, Description: in.Description, BlockedBy: ids,
				Role: muster.RoleName(in.ClaimRole), Priority: in.Priority, RequirePlan: in.RequirePlan,
				Review: in.Review, Files: in.Files, CreatedBy: me})
			if err != nil || !in.Claim {
				return answer(err, "Task %s created.", prompt.TaskLine(t))
			}
			text, err := k.caller.Claim(ctx, t.ID)
			if e := new(muster.Error); errors.As(err, &e) {
				return fmt.Sprintf("Task %s created, but not claimed: %v", prompt.TaskLine(t), e), nil
			}
			return text, err
		})
}

// mayCreate refuses a member that floods the board: the lead when many tasks are open, a teammate when it has created
// a few since it claimed its task, or since it joined if it has none.
func (k toolset) mayCreate(ctx context.Context, me muster.Name) error {
	// A lead that gets many small tasks it did not plan loses sight of the goal.
	since := k.caller.Me().JoinedAt
	if t, ok := k.caller.CurrentTask(); ok {
		since = t.ClaimedAt
	}
	all, err := k.Board.List(ctx)
	n, open := 0, 0
	for _, t := range all {
		if t.Open() {
			open++
		}
		if t.CreatedBy == me && t.CreatedAt >= since {
			n++
		}
	}
	switch {
	case err != nil:
	case open >= maxOpen:
		err = muster.Errorf(muster.Invalid, "the board has %d open tasks, the limit: let some of them land first", open)
	case me != muster.Lead && n >= maxFound:
		err = muster.Errorf(muster.Invalid,
			"you have created %d tasks during this one, which is the limit: tell lead about further "+
				"work with send_message", n)
	}
	return err
}

// resolve finds the tasks that blockers name, by id or by the subject of an open task. Subjects let the calls of one
// reply build a graph of tasks whose ids are not known yet. A completed task of an earlier run is refused: the model
// has most likely confused its id with that of a new task.
func (k toolset) resolve(ctx context.Context, refs []string) ([]muster.TaskID, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	all, listErr := k.Board.List(ctx)
	run, err := k.Run(ctx)
	if err = cmp.Or(listErr, err); err != nil {
		return nil, err
	}
	var ids []muster.TaskID
	for _, ref := range refs {
		t, err := find(all, ref)
		if err != nil {
			return nil, err
		}
		if t.Status == muster.Completed && t.CreatedAt < run.StartedAt {
			return nil, muster.Errorf(muster.Invalid,
				"task %d (%s) is of an earlier run and done: leave it out, or name the task you mean by its subject",
				t.ID, t.Subject)
		}
		ids = append(ids, t.ID)
	}
	return ids, nil
}

// find finds the one task that ref names, by its subject, or by its id, as 7 or #7.
func find(all []muster.Task, ref string) (muster.Task, error) {
	text := strings.TrimPrefix(strings.TrimSpace(ref), "#")
	id, err := strconv.Atoi(text)
	var hits []muster.Task
	for _, t := range all {
		if err == nil && t.ID == muster.TaskID(id) {
			return t, nil
		}
		if err != nil && t.Open() && strings.EqualFold(t.Subject, text) {
			hits = append(hits, t)
		}
	}
	switch {
	case err == nil:
		return muster.Task{}, muster.Errorf(muster.NotFound,
			"there is no task %d: create the blocker first, or name it by its subject", id)
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return muster.Task{}, muster.Errorf(muster.Invalid,
			"%d open tasks have the subject %q: name the one you mean by its id (task_list)", len(hits), text)
	}
	return muster.Task{}, muster.Errorf(muster.NotFound,
		"no open task has the subject %q: create the blocker first (calls of one reply run in order)", text)
}

// taskList lists the tasks with a status and an owner, or all of them. It polls: a model may look at the board as often
// as it likes, and is not taken for one in a loop.
func (k toolset) taskList() llm.Tool {
	type in struct {
		TaskID muster.TaskID `json:"task_id,omitempty" jsonschema:"this task alone, with all its fields"`
		Status string        `json:"status,omitempty"`
		Owner  string        `json:"owner,omitempty"`
	}
	return textTool("task_list",
		func(ctx context.Context, in in) (string, error) {
			all, err := k.Board.List(ctx)
			return answerLines(all, err, "No such tasks.", func(t muster.Task) string {
				if in.Status != "" && in.Status != string(t.Status) || in.Owner != "" && in.Owner != string(t.Owner) {
					return ""
				}
				return prompt.TaskLine(t)
			})
		}, tool.ReadOnly(), tool.Polls())
}

// taskID is the input of the tools that only name a task.
type taskID struct {
	TaskID muster.TaskID `json:"task_id"`
}

// taskGet shows the whole record of a task, with the tasks that wait for it. These are not stored; the board derives
// them from what each task waits for.
func (k toolset) taskGet() llm.Tool {
	return textTool("task_get", func(ctx context.Context, in taskID) (string, error) {
		t, err := k.Board.Get(ctx, in.TaskID)
		if err == nil {
			t, err = k.Board.WithBlocks(ctx, t)
		}
		if err != nil {
			return "", err
		}
		data, err := muster.Encode(t)
		return string(data), err
	}, tool.ReadOnly())
}

// claimTask claims a task for the caller. The result is the briefing that the owner of a task reads. A call that
// was cut off is not made again: a restarted member finds its claim on the board, and is given the briefing at its
// next rest.
func (k toolset) claimTask() llm.Tool {
	type in struct {
		TaskID muster.TaskID `json:"task_id,omitempty" jsonschema:"default: the next one that is ready"`
	}
	return textTool("claim_task",
		func(ctx context.Context, in in) (string, error) { return k.caller.Claim(ctx, in.TaskID) })
}

// completeTask lands the caller's task. After a crash the records tell whether it has landed; if not, the call
// continues with the landing.
func (k toolset) completeTask() llm.Tool {
	type in struct {
		TaskID  muster.TaskID `json:"task_id,omitempty" jsonschema:"default: your task"`
		Summary string        `json:"summary" jsonschema:"what was done; becomes the commit's body"`
	}
	complete := resultTool("complete_task",
		func(ctx context.Context, in in) (llm.Result, error) {
			return k.caller.Complete(ctx, in.TaskID, in.Summary)
		}, tool.NeedsPlan())
	return tool.Recoverable(complete, func(ctx context.Context, in in, resume bool) (llm.Result, bool, error) {
		// The landing may have been decided before the crash. Then only the answer was lost.
		if r, ok := k.caller.Completed(ctx, in.TaskID); ok {
			return r, true, nil
		}
		if _, ok := k.caller.CurrentTask(); !ok || !resume {
			return llm.Result{}, false, nil
		}
		r, err := k.caller.Complete(ctx, in.TaskID, in.Summary)
		return r, true, err
	})
}

// releaseTask gives the caller's task back to the board. The reason becomes a note for the next owner.
func (k toolset) releaseTask() llm.Tool {
	type in struct {
		TaskID muster.TaskID `json:"task_id,omitempty" jsonschema:"default: your task"`
		Reason string        `json:"reason" jsonschema:"the next owner reads it"`
	}
	return textTool("release_task",
		func(ctx context.Context, in in) (string, error) {
			if t, ok := k.caller.CurrentTask(); ok && in.TaskID == 0 {
				in.TaskID = t.ID
			}
			return answer(k.caller.Release(ctx, in.TaskID, in.Reason), "Task %d is back on the board.", in.TaskID)
		})
}

// taskUpdate changes a task, makes one pending again, or deletes one. Fields that are not given stay as they are, which
// is why they are pointers.
func (k toolset) taskUpdate() llm.Tool {
	type in struct {
		TaskID          muster.TaskID `json:"task_id"`
		Subject         *string       `json:"subject,omitempty"`
		Description     *string       `json:"description,omitempty"`
		AddBlockedBy    []string      `json:"add_blocked_by,omitempty"`
		RemoveBlockedBy []string      `json:"remove_blocked_by,omitempty"`
		ClaimRole       *string       `json:"claim_role,omitempty"`
		Priority        *int          `json:"priority,omitempty"`
		Status          string        `json:"status,omitempty" jsonschema:"pending: try it again; deleted: remove it"`
	}
	return textTool("task_update",
		func(ctx context.Context, in in) (string, error) {
			// A task is completed only by its landing, so the status can be set to nothing else.
			if in.Status == "deleted" {
				return answer(k.Board.Delete(ctx, in.TaskID, false), "Task %d is deleted.", in.TaskID)
			}
			if in.Status != "" && in.Status != string(muster.Pending) {
				return "", muster.Errorf(muster.Invalid,
					"status can be set to pending or deleted; a task is completed by its owner with complete_task")
			}
			retry := in.Status != ""
			if retry {
				taken, err := takeBack(ctx, k, in.TaskID)
				if err != nil {
					return "", err
				}
				retry = !taken
			}
			add, addErr := k.resolve(ctx, in.AddBlockedBy)
			remove, err := k.resolve(ctx, in.RemoveBlockedBy)
			if err = cmp.Or(addErr, err); err != nil {
				return "", err
			}
			if in.ClaimRole != nil {
				in.ClaimRole = new(muster.RoleName(*in.ClaimRole))
			}
			t, err := k.Board.Update(ctx, in.TaskID,
				board.Patch{Subject: in.Subject, Description: in.Description, Role: in.ClaimRole,
					Priority: in.Priority, AddBlockers: add, RemoveBlockers: remove, Retry: retry})
			return answer(err, "%s", prompt.TaskLine(t))
		})
}

// takeBack puts a task back on the board that somebody outside the team holds, or nobody although it is in progress. It
// returns false for any other task: a member gives its task back itself.
func takeBack(ctx context.Context, k toolset, id muster.TaskID) (bool, error) {
	t, err := k.Board.Get(ctx, id)
	if err != nil || !t.Claimed() || t.Owner == muster.Lead {
		return false, err
	}
	if t.Owner != "" {
		if _, err := k.Roster.Find(ctx, t.Owner); !errors.Is(err, muster.ErrNotFound) {
			return false, err
		}
	}
	return true, k.Revoke(ctx, t, "the lead took it back")
}
