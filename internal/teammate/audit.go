package teammate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// audit runs a call between the two events that tell of it. A subagent's calls are events of
// the member that it works for. A call of the member's own that the end of the process has cut
// off stays without an answer if records tell its outcome.
func (b *toolbox) audit(ctx context.Context, c llm.Call, next tool.Next, subagent bool) (llm.Result, error) {
	event := func(kind string, fields map[string]any) {
		fields["tool"] = c.Name
		if subagent {
			fields["subagent"] = true
		}
		b.presence.event(ctx, kind, fields)
	}
	event(journal.ToolStarted, map[string]any{"text": clip(gist(c), 120)})
	started := time.Now()
	r, err := next(ctx, c)
	end := map[string]any{"seconds": seconds(time.Since(started))}
	failed := r.IsError || err != nil
	if failed {
		end["error"] = clip(textOf(llm.Message{Parts: r.Parts}), 200)
	}
	event(journal.ToolEnded, end)
	// An error of a call that was cut off says nothing about what the call did. If its tool
	// can read the outcome from records, the call is left open, and answerCalls answers it.
	if failed && !subagent && context.Cause(ctx) != nil && b.recoverer(c.Name) != nil {
		b.phase.change(func(p *counters) { p.pending = append(p.pending, c.ID) })
	}
	return r, err
}

// usageFields are the fields of the event that says what a reply has cost. more is what else
// is known of the turn.
func usageFields(r llm.Reply, more map[string]any) map[string]any {
	fields := map[string]any{"stop": r.Stop, "model": r.Model, "input": r.Usage.Input, "output": r.Usage.Output,
		"cache_read": r.Usage.CacheRead, "cache_write": r.Usage.CacheWrite}
	maps.Copy(fields, more)
	return fields
}

// seconds is a duration in seconds, cut to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// gist is a call in a few words, for people: its most telling value.
func gist(c llm.Call) string {
	var in map[string]any
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "path", "pattern", "subject", "to", "name", "task_id", "prompt"} {
		if v, ok := in[key]; ok && v != nil && v != "" {
			line, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			return line
		}
	}
	return ""
}
