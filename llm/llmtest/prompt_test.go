package llmtest_test

import (
	"testing"

	"muster/internal/testing/require"
	"muster/llm/llmtest"
)

// The pieces stand in the order in which models read them, without marks, whatever the order of the fields.
func TestPrompt(t *testing.T) {
	for path, c := range map[string][2]string{
		"/v1/messages": {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}}]},
			{"role":"assistant","content":"c"}],"metadata":{"user_id":"alice"},"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"t"}]}`,
			`{"name":"t"} ; system{"text":"s","type":"text"} 5m; user{"text":"a","type":"text"} ; user{"text":"b","type":"text"} 1h; assistant"c" ; `},
		"/v1/chat/completions": {`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"user":"u","tools":[{"type":"function"}]}`,
			`{"type":"function"} ; {"content":"s","role":"system"} ; {"content":"a","role":"user"} ; u`},
		"/v1/responses": {`{"input":[{"type":"message"}],"instructions":"s","prompt_cache_key":"k","user":"u","tools":[{"name":"t"}]}`,
			`{"name":"t"} ; "s" ; {"type":"message"} ; k`},
	} {
		p := require.Value(llmtest.NewPrompt(path, []byte(c[0])))(t)
		got := ""
		for _, x := range p.Pieces {
			got += x.Text + " " + x.Mark + "; "
		}
		if got += p.Key; got != c[1] {
			t.Errorf("%s: %s, want %s", path, got, c[1])
		}
	}
}
