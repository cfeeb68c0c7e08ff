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

// audit writes the start and the end of one of the member's own calls to the journal. A call
// that the end of the process has cut off stays without an answer if records tell its
// outcome.
func (s *session) audit(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := s.journalCall(ctx, c, next, nil)
	// An error of a call that was cut off says nothing about what the call did. If its tool
	// can read the outcome from records, the call is left open, and recoverCalls answers it.
	_, recoverable := s.toolbox.get().recoverers[c.Name]
	if cut := context.Cause(ctx) != nil && (r.IsError || err != nil); cut && recoverable {
		s.mu.Lock()
		s.pendingCalls[c.ID] = true
		s.mu.Unlock()
	}
	return r, err
}

// auditSubagent writes a subagent's calls to the journal. They are events of the member that
// the subagent works for.
func (s *session) auditSubagent(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	return s.journalCall(ctx, c, next, map[string]any{"subagent": true})
}

// journalCall runs a call between the two events that tell of it. Both have the fields more
// besides their own.
func (s *session) journalCall(
	ctx context.Context, c llm.Call, next tool.Next, more map[string]any,
) (llm.Result, error) {
	begin := map[string]any{"tool": c.Name, "text": clip(gist(c), 120)}
	maps.Copy(begin, more)
	s.presence.event(ctx, journal.ToolStarted, begin)
	started := time.Now()
	r, err := next(ctx, c)
	end := map[string]any{"tool": c.Name, "seconds": seconds(time.Since(started))}
	maps.Copy(end, more)
	if r.IsError || err != nil {
		end["error"] = clip(textOf(llm.Message{Parts: r.Parts}), 200)
	}
	s.presence.event(ctx, journal.ToolEnded, end)
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
