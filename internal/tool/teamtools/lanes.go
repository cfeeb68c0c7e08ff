package teamtools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/worktree"
	"muster/llm"
	"muster/tool"
)

// laneTimeout is how long worktree_run waits by default. The lead does nothing else meanwhile.
const laneTimeout = 300 * time.Second

// laneCreate makes a lane by hand. A task is bound to it only while the task is pending and has no lane, so that no
// work is left behind in another lane.
func (k toolset) laneCreate() llm.Tool {
	type in struct {
		Name    muster.Name   `json:"name"`
		TaskID  muster.TaskID `json:"task_id,omitempty"`
		BaseRef string        `json:"base_ref,omitempty" jsonschema:"default: the target's tip"`
	}
	return textTool("worktree_create",
		func(ctx context.Context, in in) (string, error) {
			var t muster.Task
			var err error
			if in.TaskID != 0 {
				t, err = k.Board.Get(ctx, in.TaskID)
				if err == nil && (t.Status != muster.Pending || t.Worktree != "") {
					err = muster.Errorf(muster.Invalid,
						"task %d is %s with lane %q: only a pending task without a lane can be bound", t.ID, t.Status,
						t.Worktree)
				}
			}
			if err != nil {
				return "", err
			}
			// The lane exists before the task names it. A process that dies in between leaves a lane that no task
			// names; the other order would leave a task whose owner finds no lane.
			lane, err := k.Lanes.Create(ctx, in.Name, in.TaskID, in.BaseRef)
			// The fence of the task as it was read makes this fail if somebody has claimed the task meanwhile.
			if err == nil && in.TaskID != 0 {
				_, err = k.Board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base)
			}
			return answer(err, "Lane %s at %s on %s.", lane.Name, lane.Path, lane.Branch)
		})
}

// laneList lists the lanes, one a line, with the task that each is bound to.
func (k toolset) laneList() llm.Tool {
	return textTool("worktree_list",
		func(ctx context.Context, _ struct{}) (string, error) {
			lanes, err := k.Lanes.List(ctx)
			return answerLines(lanes, err, "There are no lanes.", func(l muster.Lane) string {
				s := fmt.Sprintf("[%s] %s %s", l.Status, l.Name, l.Branch)
				if l.TaskID != 0 {
					s += fmt.Sprintf(" task #%d", l.TaskID)
				}
				return s
			})
		}, tool.ReadOnly())
}

// laneName is the input of the tools that only name a lane.
type laneName struct {
	Name muster.Name `json:"name"`
}

func (k toolset) laneStatus() llm.Tool {
	return textTool("worktree_status",
		func(ctx context.Context, in laneName) (string, error) {
			return k.Lanes.Status(ctx, in.Name)
		}, tool.ReadOnly())
}

// laneRun runs a command in a lane. The exit code follows the output unless it is 0. A command that fails is no error
// of the tool: the model reads its output and decides.
func (k toolset) laneRun() llm.Tool {
	type in struct {
		Name    muster.Name `json:"name"`
		Command string      `json:"command"`
		Timeout int         `json:"timeout,omitempty" jsonschema:"seconds, 300 by default"`
	}
	return textTool("worktree_run",
		func(ctx context.Context, in in) (string, error) {
			dir, err := k.Lanes.Enter(ctx, in.Name)
			if err != nil {
				return "", err
			}
			limit := cmp.Or(time.Duration(max(in.Timeout, 0))*time.Second, laneTimeout)
			out, exit, err := k.Exec(ctx, dir, in.Command, limit)
			if exit != 0 {
				out += fmt.Sprintf("\n[exit %d]", exit)
			}
			return answer(err, "%s", out)
		})
}

// laneKeep marks a lane to be kept, for somebody who wants to look at it after its task is done.
func (k toolset) laneKeep() llm.Tool {
	return textTool("worktree_keep", func(ctx context.Context, in laneName) (string, error) {
		return answer(k.Lanes.Keep(ctx, in.Name), "Lane %s is kept.", in.Name)
	})
}

func (k toolset) laneRemove() llm.Tool {
	type in struct {
		Name         muster.Name `json:"name"`
		Force        bool        `json:"force,omitempty" jsonschema:"archive unlanded work and remove"`
		CompleteTask bool        `json:"complete_task,omitempty" jsonschema:"land its task first"`
	}
	return resultTool("worktree_remove",
		func(ctx context.Context, in in) (llm.Result, error) {
			if in.CompleteTask {
				return k.completeLane(ctx, in.Name)
			}
			if err := checkUnused(ctx, k, in.Name); err != nil {
				return llm.Result{}, err
			}
			text, err := answer(k.Lanes.Remove(ctx, in.Name, in.Force), "Lane %s is removed.", in.Name)
			return tool.Text(text), err
		})
}

// checkUnused refuses to remove a lane under the hands of whoever works in it, with force too: commands that run there
// would go on in a directory that is gone, and what they write would be in no archive.
func checkUnused(ctx context.Context, k toolset, name muster.Name) error {
	lane, err := k.Lanes.Get(ctx, name)
	if err != nil {
		return err
	}
	if lane.TaskID != 0 {
		t, err := k.Board.Get(ctx, lane.TaskID)
		if err == nil && t.Claimed() && t.Worktree == name && t.Owner != "" {
			return muster.Errorf(muster.Held,
				"%s works on task %d in lane %s: it completes the task, or gives it back first", t.Owner, t.ID, name)
		}
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
	}
	// The commands of a former owner may still run there.
	who := worktree.OccupantOf(lane)
	if who == (worktree.Occupant{}) {
		return nil
	}
	alive, err := k.Roster.Alive(ctx, who.Host)
	if err == nil && alive {
		err = muster.Errorf(muster.Held, "%s works in lane %s", who.Member, name)
	}
	return err
}

// completeLane lands a lane's task like any other, and removes the lane, also one that somebody asked to keep. The
// caller claims the task first if it has no owner, so that the landing has the same fence as every landing.
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
	if t.Status == muster.Completed {
		return k.removeLanded(ctx, name, tool.Text(fmt.Sprintf("Task #%d is completed already.", t.ID)))
	}
	// A task that another member works on is not taken away: the landing would cut off its work.
	if current, ok := k.caller.CurrentTask(); !ok || current.ID != t.ID {
		if t.Owner != "" {
			return llm.Result{}, muster.Errorf(muster.Held, "task %d is %s's: it completes it, or gives it back first",
				t.ID, t.Owner)
		}
		if _, err := k.caller.Claim(ctx, t.ID); err != nil {
			return llm.Result{}, err
		}
	}
	r, err := k.caller.Complete(ctx, t.ID, fmt.Sprintf("Completed with the removal of lane %s.", name))
	if err != nil || r.IsError {
		return r, err // it did not land, and the lane has its work
	}
	return k.removeLanded(ctx, name, r)
}

// removeLanded removes the lane of a completed task and adds that to the result of the completion. A lane that nobody
// asked to keep is gone already. Whatever it holds beside what has landed is archived.
func (k toolset) removeLanded(ctx context.Context, name muster.Name, r llm.Result) (llm.Result, error) {
	err := k.Lanes.Remove(ctx, name, true)
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return r, err
	}
	r.Parts = append(r.Parts, llm.Text{Text: fmt.Sprintf(" Lane %s is removed.", name)})
	return r, nil
}

// laneEvents shows the last events of the log about lanes. A record that cannot be read is left out.
func (k toolset) laneEvents() llm.Tool {
	type in struct {
		Limit int `json:"limit,omitempty" jsonschema:"20 by default"`
	}
	return textTool("worktree_events",
		func(ctx context.Context, in in) (string, error) {
			at, err := k.Log.Tail(ctx, muster.StreamLanes, cmp.Or(max(in.Limit, 0), 20))
			if err != nil {
				return "", err
			}
			var lines []string
			for r, err := range k.Log.Read(ctx, muster.StreamLanes, at) {
				if err == nil {
					lines = append(lines, string(r.Data))
				}
			}
			return cmp.Or(strings.Join(lines, "\n"), "Nothing has happened to lanes yet."), nil
		}, tool.ReadOnly())
}
