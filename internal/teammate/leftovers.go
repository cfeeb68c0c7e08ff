package teammate

import (
	"context"

	"muster"
	"muster/llm"
	"muster/tool"
)

// answerLeftovers answers the calls that a crash or Ctrl-C left without a result. Those that records answer are asked of
// the records; every other one may or may not have happened, and is never run again by the runtime.
func (m *Member) answerLeftovers(ctx context.Context) error {
	for _, c := range m.script.Unanswered() {
		r, known, err := m.recoverCall(ctx, c, true)
		if err != nil {
			return err
		}
		if !known {
			r = llm.ErrorResult("Interrupted; the outcome is unknown: check first.")
		}
		r.ID = c.ID
		if err := m.script.Result(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// recoverCall answers a call that was cut off, if its tool can; see tool.Recoverer.
func (m *Member) recoverCall(ctx context.Context, c llm.Call, resume bool) (r llm.Result, known bool, err error) {
	t, ok := m.profile().recoverers[c.Name]
	if !ok {
		return llm.Result{}, false, nil
	}
	return t.Recover(ctx, c, resume)
}

// Completed is what complete_task returns for a task that is completed by now.
func (m *Member) Completed(ctx context.Context, id muster.TaskID) (llm.Result, bool) {
	t, err := m.Board.Get(ctx, id)
	if err != nil || t.Status != muster.Completed {
		return llm.Result{}, false
	}
	return tool.Text(completedText(t)), true
}
