package teamtools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/llm"
	"muster/tool"
)

// laneTimeout is how long worktree_run waits by default.
const laneTimeout = 300 * time.Second

func (k toolset) laneCreate() llm.Tool {
	type in struct {
		Name    muster.Name   `json:"name"`
		TaskID  muster.TaskID `json:"task_id,omitempty"`
		BaseRef string        `json:"base_ref,omitempty" jsonschema:"default: the target's tip"`
	}
	return tool.Func("worktree_create", "Make a lane by hand, bound to a pending task if you name one. Claimed tasks get theirs by themselves.",
		func(ctx context.Context, in in) (string, error) {
			var t muster.Task
			if in.TaskID != 0 {
				var err error
				if t, err = k.Board.Get(ctx, in.TaskID); err != nil {
					return "", tool.Classify(err)
				}
				if t.Status != muster.Pending || t.Worktree != "" {
					return "", fmt.Errorf("task %d is %s with lane %q: only a pending task without a lane can be bound", t.ID, t.Status, t.Worktree)
				}
			}
			lane, err := k.Lanes.Create(ctx, in.Name, in.TaskID, in.BaseRef)
			if err != nil {
				return "", tool.Classify(err)
			}
			if in.TaskID != 0 {
				if _, err := k.Board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base); err != nil {
					return "", tool.Classify(err)
				}
			}
			return fmt.Sprintf("Lane %s at %s on %s.", lane.Name, lane.Path, lane.Branch), nil
		})
}

func (k toolset) laneList() llm.Tool {
	type in struct{}
	return tool.Func("worktree_list", "All lanes with their task and status.", func(ctx context.Context, _ in) (string, error) {
		lanes, err := k.Lanes.List(ctx)
		if err != nil {
			return "", tool.Classify(err)
		}
		var lines []string
		for _, l := range lanes {
			s := fmt.Sprintf("[%s] %s %s", l.Status, l.Name, l.Branch)
			if l.TaskID != 0 {
				s += fmt.Sprintf(" task #%d", l.TaskID)
			}
			lines = append(lines, s)
		}
		if lines == nil {
			return "There are no lanes.", nil
		}
		return strings.Join(lines, "\n"), nil
	}, tool.ReadOnly())
}

type laneName struct {
	Name muster.Name `json:"name"`
}

func (k toolset) laneStatus() llm.Tool {
	return tool.Func("worktree_status", "What has changed in a lane.", func(ctx context.Context, in laneName) (string, error) {
		s, err := k.Lanes.Status(ctx, in.Name)
		return s, tool.Classify(err)
	}, tool.ReadOnly())
}

func (k toolset) laneRun() llm.Tool {
	type in struct {
		Name    muster.Name `json:"name"`
		Command string      `json:"command"`
		Timeout int         `json:"timeout,omitempty" jsonschema:"seconds, 300 by default"`
	}
	return tool.Func("worktree_run", "Run a command in a lane, such as its tests.", func(ctx context.Context, in in) (string, error) {
		dir, err := k.Lanes.Enter(ctx, in.Name)
		if err != nil {
			return "", tool.Classify(err)
		}
		limit := laneTimeout
		if in.Timeout > 0 {
			limit = time.Duration(in.Timeout) * time.Second
		}
		out, exit, err := k.Exec(ctx, dir, in.Command, limit)
		if err != nil {
			return "", tool.Classify(err)
		}
		if exit != 0 {
			out += fmt.Sprintf("\n[exit %d]", exit)
		}
		return out, nil
	})
}

func (k toolset) laneKeep() llm.Tool {
	return tool.Func("worktree_keep", "Mark a lane to be kept.", func(ctx context.Context, in laneName) (string, error) {
		if err := k.Lanes.Keep(ctx, in.Name); err != nil {
			return "", tool.Classify(err)
		}
		return fmt.Sprintf("Lane %s is kept.", in.Name), nil
	})
}

func (k toolset) laneRemove() llm.Tool {
	type in struct {
		Name         muster.Name `json:"name"`
		Force        bool        `json:"force,omitempty" jsonschema:"archive unlanded work and remove"`
		CompleteTask bool        `json:"complete_task,omitempty" jsonschema:"land its task first"`
	}
	return tool.New("worktree_remove", "Remove a lane. Refused while it holds unlanded work, unless forced (then it is archived first) or its task is completed with it.",
		func(ctx context.Context, in in) (llm.Result, error) {
			if in.CompleteTask {
				return toResult(k.completeLane(ctx, in.Name))
			}
			if err := k.Lanes.Remove(ctx, in.Name, in.Force); err != nil {
				return toResult(llm.Result{}, err)
			}
			return tool.Text(fmt.Sprintf("Lane %s is removed.", in.Name)), nil
		})
}

// completeLane lands a lane's task like any other: the caller takes it if it is nobody's, then completes it.
func (k toolset) completeLane(ctx context.Context, name muster.Name) (llm.Result, error) {
	lane, err := k.Lanes.Get(ctx, name)
	if err != nil {
		return llm.Result{}, err
	}
	if lane.TaskID == 0 {
		return llm.Result{}, muster.Errorf(muster.Invalid, "lane %s has no task: remove it without complete_task", name)
	}
	t, err := k.Board.Get(ctx, lane.TaskID)
	if err != nil {
		return llm.Result{}, err
	}
	if hand, ok := k.caller.CurrentTask(); !ok || hand.ID != t.ID {
		if t.Owner != "" {
			return llm.Result{}, muster.Errorf(muster.Held, "task %d is %s's: it completes it, or gives it back first", t.ID, t.Owner)
		}
		if _, err := k.caller.Claim(ctx, t.ID); err != nil {
			return llm.Result{}, err
		}
	}
	return k.caller.Complete(ctx, t.ID, fmt.Sprintf("Completed with the removal of lane %s.", name))
}

func (k toolset) laneEvents() llm.Tool {
	type in struct {
		Limit int `json:"limit,omitempty" jsonschema:"20 by default"`
	}
	return tool.Func("worktree_events", "What happened to lanes, newest last.", func(ctx context.Context, in in) (string, error) {
		if in.Limit <= 0 {
			in.Limit = 20
		}
		at, err := k.Log.Tail(ctx, muster.StreamLanes, in.Limit)
		if err != nil {
			return "", tool.Classify(err)
		}
		var lines []string
		for r, err := range k.Log.Read(ctx, muster.StreamLanes, at) {
			if err == nil {
				lines = append(lines, string(r.Data))
			}
		}
		if lines == nil {
			return "Nothing has happened to lanes yet.", nil
		}
		return strings.Join(lines, "\n"), nil
	}, tool.ReadOnly())
}
