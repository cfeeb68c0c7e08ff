package teamtools

import (
	"context"
	"fmt"

	"muster"
	"muster/llm"
	"muster/tool"
)

// spawn starts a teammate. It only records the new member: a supervisor sees the record and starts it, in this process
// or in another one.
func (k toolset) spawn() llm.Tool {
	type in struct {
		Name        muster.Name `json:"name" jsonschema:"lower-case letters, digits, hyphens"`
		Role        string      `json:"role" jsonschema:"one word, such as coder or tester"`
		Prompt      string      `json:"prompt" jsonschema:"what it should know; tasks come from the board"`
		Model       string      `json:"model,omitempty"`
		RequirePlan bool        `json:"require_plan,omitempty"`
	}
	return textTool("spawn_teammate", "Start a teammate, or start one again that has shut down. It claims tasks by "+
		"itself.",
		func(ctx context.Context, in in) (string, error) {
			m, err := k.caller.Spawn(ctx, muster.Member{Name: in.Name, Role: in.Role, Prompt: in.Prompt,
				Model: in.Model, RequirePlan: in.RequirePlan})
			return answer(err, "Spawned %s (%s).", m.Name, m.Role)
		})
}

// listTeammates lists everybody but the lead, which is the only one that has this tool. Those that have shut down are
// listed too, because they can be spawned again.
func (k toolset) listTeammates() llm.Tool {
	return textTool("list_teammates", "Who is there: name, role, status, what each does.",
		func(ctx context.Context, _ struct{}) (string, error) {
			all, err := k.Roster.List(ctx)
			return answerLines(all, err, "There are no teammates yet.", func(m muster.Member) string {
				if m.Name == muster.Lead {
					return ""
				}
				s := fmt.Sprintf("%s (%s) %s", m.Name, m.Role, m.Status)
				if m.Doing != "" {
					s += ": " + m.Doing
				} else if m.IdleReason != "" && m.Status == muster.Idle {
					s += ": " + string(m.IdleReason)
				}
				return s
			})
		}, tool.ReadOnly())
}

// wait lets the lead sleep until something needs it, which costs nothing: no model is asked meanwhile. After a crash
// the call continues to wait.
func (k toolset) wait() llm.Tool {
	type in struct {
		For string `json:"for,omitempty" jsonschema:"landing: also wake at each landing"`
	}
	const landing = "landing"
	wait := resultTool("wait", "Sleep, at no cost, until something needs you: mail, a plan, a task in trouble, or all "+
		"done.",
		func(ctx context.Context, in in) (llm.Result, error) {
			if in.For != "" && in.For != landing {
				return llm.ErrorResult("for can only be landing, or left out."), nil
			}
			return k.caller.Wait(ctx, in.For == landing)
		}, tool.Polls())
	return tool.Recoverable(wait, func(ctx context.Context, in in, resume bool) (llm.Result, bool, error) {
		if !resume {
			return llm.Result{}, false, nil
		}
		r, err := k.caller.Wait(ctx, in.For == landing)
		return r, true, err
	})
}

// idle ends the work of a teammate that has nothing to do, until mail or a task wakes it. The other calls of the same
// reply still run.
func (k toolset) idle() llm.Tool {
	type in struct {
		Reason string `json:"reason,omitempty"`
	}
	return textTool("idle", "You have nothing to do now: sleep until mail or a task comes.",
		func(ctx context.Context, in in) (string, error) {
			k.caller.Idle(in.Reason)
			return "Going idle.", nil
		}, tool.Polls())
}
