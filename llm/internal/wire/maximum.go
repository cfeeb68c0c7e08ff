package wire

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"muster/llm"
)

// Maximum is the longest reply that a server is known to allow because it has said so. The zero Maximum knows none. It
// is safe for concurrent use.
type Maximum struct{ tokens atomic.Int64 }

// Bound returns a limit of a reply, or the maximum if the limit is larger. 0, which sends no limit, stays.
func (m *Maximum) Bound(limit int) int {
	if most := int(m.tokens.Load()); most > 0 {
		return min(limit, most)
	}
	return limit
}

// Learn reports whether err refuses the limit of a reply and names a smaller one that would do. The maximum is then
// that one, and the same request can be made once more.
func (m *Maximum) Learn(err error, limit int) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.BadRequest ||
		e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	most := namedMaximum(e.Error(), limit)
	if most > 0 {
		m.tokens.Store(int64(most))
	}
	return most > 0
}

// number finds the numbers in a message, with commas in them or without.
var number = pattern(`\d[\d,]*`)

// minLimit is the smallest limit that is believed to be one. Other small numbers are the ends of ranges.
const minLimit = 256

// namedMaximum returns the largest number below limit in a message about the limit of a reply, or 0. All servers that
// name their maximum quote the limit that they refuse, or a range that begins with 1, and otherwise no number of its
// size.
func namedMaximum(message string, limit int) (most int) {
	lower := strings.ToLower(message)
	if !strings.Contains(lower, "max_tokens") && !strings.Contains(lower, "max_completion_tokens") &&
		!strings.Contains(lower, "max_output_tokens") && !strings.Contains(lower, "output tokens") {
		return 0
	}
	for _, word := range number().FindAllString(message, -1) {
		n, err := strconv.Atoi(strings.ReplaceAll(word, ",", ""))
		if err == nil && n >= minLimit && n < limit {
			most = max(most, n)
		}
	}
	return most
}
