package teammate

import (
	"context"
	"encoding/json"

	"muster"
	"muster/llm"
	"muster/tool"
)

// recorded are the calls whose outcome is in records: cut off by the end of a process, they are asked again, not answered
// with "interrupted".
var recorded = []string{"complete_task", "submit_plan", "wait"}

// answerLeftovers answers the calls that a crash or Ctrl-C left without a result. Those that records answer are asked of
// the records; every other one may or may not have happened, and is never run again by the runtime.
func (m *Member) answerLeftovers(ctx context.Context) error {
	for _, c := range m.script.Unanswered() {
		r, err := m.leftover(ctx, c)
		if err != nil {
			return err
		}
		r.ID = c.ID
		if err := m.script.Result(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Member) leftover(ctx context.Context, c llm.Call) (llm.Result, error) {
	var in struct {
		TaskID  muster.TaskID `json:"task_id"`
		Summary string        `json:"summary"`
		Plan    string        `json:"plan"`
		For     string        `json:"for"`
	}
	_ = json.Unmarshal(c.Input, &in)
	switch c.Name {
	case "complete_task":
		if t, ok := m.completed(ctx, c); ok {
			return tool.Text(completedText(t)), nil
		}
		if _, ok := m.Hand(); ok {
			return m.Complete(ctx, in.TaskID, in.Summary)
		}
	case "submit_plan":
		if _, ok := m.Hand(); ok {
			return m.Plan(ctx, in.Plan)
		}
	case "wait":
		if m.lead() {
			return m.Wait(ctx, in.For == "landing")
		}
	}
	return llm.ErrorResult("Interrupted; the outcome is unknown: check first."), nil
}

// completed is the task that a call of complete_task was about, if it is completed by now.
func (m *Member) completed(ctx context.Context, c llm.Call) (muster.Task, bool) {
	var in struct {
		TaskID muster.TaskID `json:"task_id"`
	}
	if c.Name != "complete_task" || json.Unmarshal(c.Input, &in) != nil {
		return muster.Task{}, false
	}
	t, err := m.Board.Get(ctx, in.TaskID)
	return t, err == nil && t.Status == muster.Completed
}
