package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/require"
)

// The logs of checks are bounded in number and size. The newest stay, and no number of a name is used twice while a
// later log is there.
func TestCheckLogsAreBounded(t *testing.T) {
	outputs := t.TempDir()
	dir := filepath.Join(outputs, "landing")
	fill := func(n int, size int64) {
		t.Helper()
		_ = os.RemoveAll(dir)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		for i := 1; i <= n; i++ {
			path := filepath.Join(dir, fmt.Sprintf("task-1-1-%d.log", i))
			at := time.Now().Add(time.Duration(i-n) * time.Minute)
			require.NoError(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size), os.Chtimes(path, at, at)))
		}
	}
	for _, c := range []struct {
		n    int
		size int64
		want int
	}{
		{3, 1, 4}, {maxLogs + 50, 1, maxLogs}, {maxLogs, 16 << 20, 16}, {12, 200 << 20, keepLogs + 1},
	} {
		fill(c.n, c.size)
		l := require.Value(newCheckLog(outputs, "task-1-1"))(t)
		require.NoError(t, l.close())
		left, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		if len(left) != c.want {
			t.Errorf("%d logs of %d bytes: %d are left, want %d", c.n, c.size, len(left), c.want)
		}
		if want := fmt.Sprintf("task-1-1-%d.log", c.n+1); filepath.Base(l.file.Name()) != want {
			t.Errorf("the next log is %s, want %s", l.file.Name(), want)
		}
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("task-1-1-%d.log", c.n))); err != nil {
			t.Error("the newest log is gone")
		}
	}
}

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
