package teammate

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"muster/internal/redact"
	"muster/internal/text"
	"muster/internal/tool/agent"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

type wrappers struct {
	secrets *redact.Secrets
	permits *permits
	hooks   *userHooks
	files   *fileTools
	scratch *scratchView
	claims  *claims
	todo    *agent.Todo
}

// around puts the wrappers around tools. The audit is the outermost, so that its events have what the model sees, and
// also what the plan gate refused.
func (w *wrappers) around(list []llm.Tool, nested *nestedInstructions, dir *workdir, subagent bool) []llm.Tool {
	out := make([]llm.Tool, len(list))
	for i, t := range list {
		_, hasRecords := t.(tool.Recoverer)
		// The innermost one, so that neither a file of a long result nor an event has a secret that the result had.
		t = tool.Wrap(t, w.hideSecrets)
		t = tool.Wrap(t, w.permits.around(t, dir)) // inside of the hooks, which may change what a call is
		if s := t.Spec(); s.NeedsPlan {
			t = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
				if s.OnlyReads(c.Input) {
					return next(ctx, c)
				}
				return w.claims.plans.gate(ctx, c, next)
			})
		}
		t = tool.Wrap(t, w.hooks.around(t, dir, subagent))
		t = tool.Limit(t, tool.MaxOutput, func(_ context.Context, c llm.Call, whole string) (string, error) {
			return w.files.keep(fmt.Sprintf("%s-%.150s.txt", c.Name, url.QueryEscape(c.ID)), whole)
		})
		t = tool.Wrap(t, nested.around)
		if !subagent { // it has no scratch checkout of its own
			t = tool.Wrap(t, w.scratch.around)
		}
		out[i] = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
			return w.audit(ctx, c, next, subagent, hasRecords)
		})
	}
	return out
}

func (w *wrappers) hideSecrets(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	return w.secrets.Result(r), w.secrets.Error(err)
}

// audit runs a call between the two events that tell of it. A call that the end of the process has cut off stays open
// if its tool has records that tell its outcome.
func (w *wrappers) audit(
	ctx context.Context, c llm.Call, next tool.Next, subagent, hasRecords bool,
) (llm.Result, error) {
	event := func(kind string, fields map[string]any) {
		fields["tool"], fields["call"] = c.Name, c.ID // the transcript has the whole call by its id
		if subagent {
			fields["subagent"] = true
		}
		w.claims.diary.event(ctx, kind, fields)
	}
	event(journal.ToolStarted, map[string]any{"text": text.CutBytes(Gist(c), 120)})
	started := time.Now()
	r, err := next(ctx, c)
	end := map[string]any{"seconds": seconds(time.Since(started))}
	failed := r.IsError || err != nil
	if !failed && writesFiles(c.Name) {
		w.claims.noteWrite()
	}
	if failed {
		end["error"] = text.CutBytes(textOf(llm.Message{Parts: r.Parts}), 200)
	}
	event(journal.ToolEnded, end)
	if !failed && !subagent && w.todo.Owns(c) {
		done, of, current := w.todo.Progress()
		w.claims.diary.event(ctx, journal.MemberSteps, map[string]any{"done": done, "of": of,
			"text": text.CutBytes(current, 120)})
	}
	// An error of a call that was cut off says nothing about what it did: answerCalls reads its outcome from records.
	if failed && context.Cause(ctx) != nil && hasRecords {
		w.claims.phase.noteOpen(c.ID)
	}
	return r, err
}
