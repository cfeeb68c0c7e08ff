package check

import (
	"strings"
	"testing"
	"time"
)

// TestTeller checks that the last test of the output is told, at most a few times a second, and once.
func TestTeller(t *testing.T) {
	var told []string
	x := teller{tell: func(test string) { told = append(told, test) }}
	now := time.Unix(1000, 0)
	write := func(after time.Duration, text string) { now = now.Add(after); x.write([]byte(text), now) }
	write(0, "=== RUN   TestA\n=== RUN   TestA/x\nsome output\n=== RUN   Te")
	write(10*time.Millisecond, "stB\n")
	write(time.Second, "=== RUN   TestC\x1b[2J\n")
	write(time.Second, "more\n--- PASS: TestC\x1b[2J (0.00s)\n")
	write(time.Second, strings.Repeat("x", 5000)+"\n")
	write(time.Second, "=== RUN   TestD\n")
	write(time.Second, strings.Repeat("word\n", 9000)+"=== RUN   TestE\n")
	if got := strings.Join(told, " "); got != "TestA/x TestC[2J TestD TestE" {
		t.Errorf("told %q", got)
	}
	(&teller{}).write([]byte("=== RUN   TestA\n"), now) // nobody waits
}
