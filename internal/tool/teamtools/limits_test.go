package teamtools

import (
	"strings"
	"testing"
)

func TestCheckTexts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		in   any
		says string
	}{
		"fits": {struct {
			Content string `json:"content"`
		}{long}, ""},
		"a name": {struct {
			To string `json:"to"`
		}{long}, "to has 5000 bytes, and may have 1000"},
		"a reason": {struct {
			Reason string `json:"reason,omitempty"`
		}{long}, "reason has 5000 bytes, and may have 4096"},
		"a pointer": {struct {
			Role *string `json:"claim_role"`
		}{&long}, "claim_role has 5000 bytes"},
		"no text": {struct {
			Role *string `json:"claim_role"`
		}{nil}, ""},
		"a list": {struct {
			IDs []any `json:"blocked_by"`
		}{make([]any, 101)}, "blocked_by has 101 items, and may have 100"},
	} {
		err := checkTexts(c.in)
		if (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
