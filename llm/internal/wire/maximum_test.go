package wire

import (
	"errors"
	"testing"

	"muster/llm"
)

func TestNamedMaximum(t *testing.T) {
	for _, c := range []struct {
		message string
		want    int
	}{
		{"max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.", 16384},
		{"max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022", 8192},
		{"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192},
		{"<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 32,768]", 32768},
		{"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`", 8192},
		{"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 4096, but got 50000 instead.", 4096},
		{"max_tokens must be at least 1", 0},
		{"messages[4096]: role is wrong", 0},
		{"max_tokens: 50000 is refused", 0},
	} {
		err := &llm.Error{Kind: llm.BadRequest, Status: 400, Err: errors.New(c.message)}
		var m Maximum
		if ok := m.Learn(err, 50000); ok != (c.want > 0) || ok && m.Bound(50000) != c.want {
			t.Errorf("%s: %v, %d, want %d", c.message, ok, m.Bound(50000), c.want)
		}
		if m.Bound(0) != 0 || m.Bound(300) != 300 {
			t.Errorf("%s: a smaller limit is changed", c.message)
		}
		err.Kind = llm.ContextFull
		if new(Maximum).Learn(err, 50000) {
			t.Errorf("%s: a full window is taken for a limit", c.message)
		}
	}
}
