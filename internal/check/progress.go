package check

import (
	"bytes"
	"strings"
	"time"

	"muster/internal/failures"
	"muster/internal/text"
)

const (
	// testInterval is the shortest time between two tests that are told of: people read no faster.
	testInterval = 300 * time.Millisecond
	// maxTestName is how many bytes of the name of a test are told.
	maxTestName = 120
)

// teller tells which test a check runs now, or has run last, for the people who wait for it. What it tells is kept
// nowhere.
type teller struct {
	tell    func(test string) // nil: nobody waits
	partial []byte            // the beginning of a line that has not ended
	told    time.Time
	last    string
}

// write looks at what a check prints. Most of it is not looked at: only the lines that come when something may be told
// again.
func (t *teller) write(p []byte, now time.Time) {
	if t.tell == nil {
		return
	}
	// Only the last lines count, and a line without an end is not kept.
	output := append(t.partial, p...)
	end := bytes.LastIndexByte(output, '\n') + 1
	t.partial = append([]byte(nil), output[end:]...)
	if len(t.partial) > 1<<10 {
		t.partial = nil
	}
	if end == 0 || now.Sub(t.told) < testInterval {
		return
	}
	const most = 8 << 10
	lines := strings.Split(string(output[max(0, end-most):end]), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		name := text.OneLine(failures.Current(strings.ToValidUTF8(lines[i], "?")))
		if name == "" {
			continue
		}
		if name != t.last {
			t.last, t.told = name, now
			t.tell(text.CutBytes(name, maxTestName))
		}
		return
	}
}
