package teamtools

import (
	"encoding/json"
	"testing"

	"muster/llm"
	"muster/tool"
)

// What the runtime acts on is said by each tool of itself.
func TestToolsSayWhatTheRuntimeMustKnow(t *testing.T) {
	plan := map[string]bool{"complete_task": true}
	polls := map[string]bool{"wait": true, "idle": true, "read_inbox": true, "task_list": true}
	recovered := map[string]bool{"complete_task": true, "submit_plan": true, "wait": true}
	for _, tl := range refusingTools() {
		s := tl.Spec()
		if s.NeedsPlan != plan[s.Name] || s.Polls != polls[s.Name] {
			t.Errorf("%s: NeedsPlan %v, Polls %v", s.Name, s.NeedsPlan, s.Polls)
		}
		r, ok := tl.(tool.Recoverer)
		if ok != recovered[s.Name] {
			t.Errorf("%s: recoverable is %v", s.Name, ok)
		}
		if !ok {
			continue
		}
		// The records know nothing of the call, and nothing is taken up: only that may be said without resuming.
		call := llm.Call{ID: "c", Name: s.Name, Input: json.RawMessage(`{"task_id":1}`)}
		if res, known, err := r.Recover(t.Context(), call, false); known || err != nil {
			t.Errorf("%s: recovered %q, %v", s.Name, res.Text(), err)
		}
		if _, known, err := r.Recover(t.Context(), call, true); known != (err != nil) {
			t.Errorf("%s: resumed %v, %v", s.Name, known, err)
		}
	}
}
