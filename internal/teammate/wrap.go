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

// wrappers stand around each tool of the member and of the agents that work for it.
type wrappers struct {
	secrets *redact.Secrets
	permits *permits
	plans   *plans
	hooks   *userHooks
	files   *fileTools
	scratch *scratchView
	claims  *claims
	todo    *agent.Todo
	diary   *diary
	phase   rounds
}

// around puts the wrappers around tools. The plan gate stands inside of the audit, so that the audit also shows what it
// refused. The audit is the outermost, so that its events have what the model sees.
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
				return w.plans.gate(ctx, c, next)
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

// audit runs a call between the two events that tell of it. A subagent's calls are events of
// the member that it works for. A call of the member's own that the end of the process has cut
// off stays without an answer if its tool has records that tell its outcome.
func (w *wrappers) audit(
	ctx context.Context, c llm.Call, next tool.Next, subagent, hasRecords bool,
) (llm.Result, error) {
	event := func(kind string, fields map[string]any) {
		fields["tool"], fields["call"] = c.Name, c.ID // the transcript has the whole call by its id
		if subagent {
			fields["subagent"] = true
		}
		w.diary.event(ctx, kind, fields)
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
		w.diary.event(ctx, journal.MemberSteps, map[string]any{"done": done, "of": of,
			"text": text.CutBytes(current, 120)})
	}
	// An error of a call that was cut off says nothing about what the call did. If its tool
	// can read the outcome from records, the call is left open, and answerCalls answers it.
	if failed && context.Cause(ctx) != nil && hasRecords {
		w.phase.noteOpen(c.ID)
	}
	return r, err
}
