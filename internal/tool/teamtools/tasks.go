package teamtools

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// maxFound is how many tasks a teammate may create while it has one task in hand.
const maxFound = 5

func (k toolset) taskCreate() llm.Tool {
	type in struct {
		Subject     string `json:"subject"`
		Description string `json:"description,omitempty"`
		BlockedBy   []any  `json:"blocked_by,omitempty" jsonschema:"ids, or subjects of open tasks"`
		ClaimRole   string `json:"claim_role,omitempty" jsonschema:"only this role may claim it"`
		Priority    int    `json:"priority,omitempty" jsonschema:"higher goes first"`
		RequirePlan bool   `json:"require_plan,omitempty"`
	}
	return tool.Func("task_create", "Put a task on the board. Idle teammates claim it once its blockers have landed.",
		func(ctx context.Context, in in) (string, error) {
			me := k.caller.Me().Name
			if me != muster.Lead {
				if err := k.mayCreate(ctx, me); err != nil {
					return "", tool.Classify(err)
				}
			}
			ids, err := k.resolve(ctx, in.BlockedBy)
			if err != nil {
				return "", tool.Classify(err)
			}
			t, err := k.Board.Create(ctx, board.Draft{Subject: in.Subject, Description: in.Description, BlockedBy: ids,
				Role: in.ClaimRole, Priority: in.Priority, RequirePlan: in.RequirePlan, CreatedBy: me})
			if err != nil {
				return "", tool.Classify(err)
			}
			return "Task " + prompt.TaskLine(t) + " created.", nil
		})
}

// mayCreate refuses a teammate that floods the board.
func (k toolset) mayCreate(ctx context.Context, me muster.Name) error {
	since := k.caller.Me().JoinedAt
	if t, ok := k.caller.CurrentTask(); ok {
		since = t.ClaimedAt
	}
	all, err := k.Board.List(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, t := range all {
		if t.CreatedBy == me && t.CreatedAt >= since {
			n++
		}
	}
	if n >= maxFound {
		return muster.Errorf(muster.Invalid, "you have created %d tasks while at this one, which is the most a teammate may: tell lead what else there is", n)
	}
	return nil
}

// resolve reads blockers: ids, or subjects of open tasks, so that one reply can build a graph.
func (k toolset) resolve(ctx context.Context, refs []any) ([]muster.TaskID, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	all, err := k.Board.List(ctx)
	if err != nil {
		return nil, err
	}
	run, err := k.Run(ctx)
	if err != nil {
		return nil, err
	}
	var ids []muster.TaskID
	for _, ref := range refs {
		t, err := find(all, ref)
		if err != nil {
			return nil, err
		}
		if t.Status == muster.Completed && t.CreatedAt < run.StartedAt {
			return nil, muster.Errorf(muster.Invalid, "task %d (%s) is of an earlier run and done: leave it out, or name the task you mean by its subject", t.ID, t.Subject)
		}
		ids = append(ids, t.ID)
	}
	return ids, nil
}

func find(all []muster.Task, ref any) (muster.Task, error) {
	text := ""
	switch v := ref.(type) {
	case float64:
		text = strconv.Itoa(int(v))
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimPrefix(strings.TrimSpace(v), "#")
	}
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
		return muster.Task{}, muster.Errorf(muster.NotFound, "there is no task %d: create the blocker first, or name it by its subject", id)
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return muster.Task{}, muster.Errorf(muster.Invalid, "%d open tasks have the subject %q: name the one you mean by its id (task_list)", len(hits), text)
	}
	return muster.Task{}, muster.Errorf(muster.NotFound, "no open task has the subject %q: create the blocker first (calls of one reply run in order)", text)
}

func (k toolset) taskList() llm.Tool {
	type in struct {
		Status string `json:"status,omitempty"`
		Owner  string `json:"owner,omitempty"`
	}
	return tool.Func("task_list", "The board: every task with status, owner and what it waits for.",
		func(ctx context.Context, in in) (string, error) {
			all, err := k.Board.List(ctx)
			if err != nil {
				return "", tool.Classify(err)
			}
			var lines []string
			for _, t := range all {
				if (in.Status == "" || in.Status == string(t.Status)) && (in.Owner == "" || in.Owner == string(t.Owner)) {
					lines = append(lines, prompt.TaskLine(t))
				}
			}
			if lines == nil {
				return "No such tasks.", nil
			}
			return strings.Join(lines, "\n"), nil
		}, tool.ReadOnly(), tool.Polls())
}

func (k toolset) taskGet() llm.Tool {
	type in struct {
		TaskID muster.TaskID `json:"task_id"`
	}
	return tool.Func("task_get", "One task, whole.", func(ctx context.Context, in in) (string, error) {
		t, err := k.Board.Get(ctx, in.TaskID)
		if err == nil {
			t, err = k.Board.WithBlocks(ctx, t)
		}
		if err != nil {
			return "", tool.Classify(err)
		}
		data, err := muster.Encode(t)
		return string(data), tool.Classify(err)
	}, tool.ReadOnly())
}

func (k toolset) claimTask() llm.Tool {
	type in struct {
		TaskID muster.TaskID `json:"task_id"`
	}
	return tool.Func("claim_task", "Take a task that is ready and nobody's; its lane becomes the place where your tools run.",
		func(ctx context.Context, in in) (string, error) {
			text, err := k.caller.Claim(ctx, in.TaskID)
			return text, tool.Classify(err)
		})
}

func (k toolset) completeTask() llm.Tool {
	type in struct {
		TaskID  muster.TaskID `json:"task_id"`
		Summary string        `json:"summary" jsonschema:"what was done; becomes the commit's body"`
	}
	complete := tool.New("complete_task", "Finish your task: commits, merges, checks and lands it. Returns the commit, or why it came back.",
		func(ctx context.Context, in in) (llm.Result, error) {
			r, err := k.caller.Complete(ctx, in.TaskID, in.Summary)
			return toResult(r, err)
		}, tool.NeedsPlan())
	return tool.Recoverable(complete, func(ctx context.Context, in in, resume bool) (llm.Result, bool, error) {
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

func (k toolset) releaseTask() llm.Tool {
	type in struct {
		TaskID muster.TaskID `json:"task_id"`
		Reason string        `json:"reason" jsonschema:"why you cannot do it; the next owner reads it"`
	}
	return tool.Func("release_task", "Give your task back to the board because you cannot do it. Its lane is kept for the next owner.",
		func(ctx context.Context, in in) (string, error) {
			if err := k.caller.Release(ctx, in.TaskID, in.Reason); err != nil {
				return "", tool.Classify(err)
			}
			return fmt.Sprintf("Task %d is back on the board.", in.TaskID), nil
		})
}

func (k toolset) taskUpdate() llm.Tool {
	type in struct {
		TaskID          muster.TaskID `json:"task_id"`
		Subject         *string       `json:"subject,omitempty"`
		Description     *string       `json:"description,omitempty"`
		AddBlockedBy    []any         `json:"add_blocked_by,omitempty"`
		RemoveBlockedBy []any         `json:"remove_blocked_by,omitempty"`
		ClaimRole       *string       `json:"claim_role,omitempty"`
		Priority        *int          `json:"priority,omitempty"`
		Status          string        `json:"status,omitempty" jsonschema:"pending: try it again; deleted: remove it"`
	}
	return tool.Func("task_update", "Change a task that is not being worked on, try one again that needs attention, or delete one.",
		func(ctx context.Context, in in) (string, error) {
			if in.Status == "deleted" {
				if err := k.Board.Delete(ctx, in.TaskID, false); err != nil {
					return "", tool.Classify(err)
				}
				return fmt.Sprintf("Task %d is deleted.", in.TaskID), nil
			}
			if in.Status != "" && in.Status != string(muster.Pending) {
				return "", fmt.Errorf("status can be set to pending or deleted; a task is completed by its owner with complete_task")
			}
			add, err := k.resolve(ctx, in.AddBlockedBy)
			if err != nil {
				return "", tool.Classify(err)
			}
			remove, err := k.resolve(ctx, in.RemoveBlockedBy)
			if err != nil {
				return "", tool.Classify(err)
			}
			t, err := k.Board.Update(ctx, in.TaskID, board.Patch{Subject: in.Subject, Description: in.Description, Role: in.ClaimRole,
				Priority: in.Priority, AddBlockers: add, RemoveBlockers: remove, Retry: in.Status != ""})
			if err != nil {
				return "", tool.Classify(err)
			}
			return prompt.TaskLine(t), nil
		})
}
