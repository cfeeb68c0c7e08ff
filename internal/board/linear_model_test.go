package board

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"muster"
)

// linearInput is a step that somebody wants to take.
type linearInput struct {
	op       string
	id       muster.TaskID
	who      muster.Name
	fence    int
	priority int
}

// linearOutput is what became of it: the task as it was returned, a refusal, or nobody knows.
type linearOutput struct {
	state   linearState
	code    muster.Code
	unknown bool
}

// linearState is what the sequential board knows of a task.
type linearState struct {
	status   muster.TaskStatus
	owner    muster.Name
	fence    int
	attempts int
	priority int
}

func stateOf(t muster.Task) linearState {
	return linearState{t.Status, t.Owner, t.Fence, t.Attempts, t.Priority}
}

// next is the sequential board, written apart from the real one: what a step makes of a task, or the code of its refusal.
func (s linearState) next(in linearInput) (linearState, muster.Code) {
	mine := s.status == muster.InProgress && s.fence == in.fence
	switch in.op {
	case "claim":
		switch s.status {
		case muster.Pending:
			s.status, s.owner, s.fence = muster.InProgress, in.who, s.fence+1
		case muster.InProgress:
			return s, muster.Held
		default:
			return s, muster.Invalid
		}
	case "complete":
		if s.status == muster.Completed && s.fence == in.fence {
			return s, ""
		}
		if !mine {
			return s, muster.Fenced
		}
		s.status = muster.Completed
	case "finish":
		if s.status != muster.Completed {
			if s.owner != in.who {
				s.fence++
			}
			s.status = muster.Completed
		}
	case "release", "giveup":
		if s.status == muster.Pending && s.fence == in.fence && in.fence > 0 {
			return s, ""
		}
		if !mine {
			return s, muster.Fenced
		}
		s.status, s.owner = muster.Pending, ""
		if in.op == "giveup" {
			if s.attempts++; s.attempts >= 3 {
				s.status, s.fence = muster.NeedsAttention, s.fence+1
			}
		}
	case "revoke":
		if s.fence != in.fence {
			return s, muster.Fenced
		}
		if s.status != muster.InProgress {
			return s, muster.Invalid
		}
		s.status, s.owner, s.fence = muster.Pending, "", s.fence+1
	case "update":
		if s.status == muster.Completed {
			return s, muster.Invalid
		}
		s.priority = in.priority
	case "retry":
		switch s.status {
		case muster.Pending, muster.NeedsAttention:
			s.status, s.attempts = muster.Pending, 0
		case muster.InProgress:
			return s, muster.Held
		default:
			return s, muster.Invalid
		}
	}
	return s, ""
}

// linearModel takes every task by itself: a step that nobody knows the outcome of may have happened or not.
var linearModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, linearTasks)
		for _, o := range history {
			i := o.Input.(linearInput).id - 1
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() []any { return []any{linearState{status: muster.Pending}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
		to, code := s.next(in)
		switch {
		case out.unknown && code == "":
			return []any{s, to}
		case out.unknown:
			return []any{s}
		case code != out.code:
			return nil
		case code != "":
			return []any{s}
		case in.op == "release" || in.op == "giveup": // returned as it is once all that follows was settled
		case out.state != to:
			return nil
		}
		return []any{to}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}
