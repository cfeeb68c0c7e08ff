package check_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster"
	"muster/internal/check"
	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// The log is what was printed, or its beginning and its end with the number of bytes between them. What is left of a long
// output begins with a whole line, and a long line is cut where it ends.
func TestALogIsCutAtLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	left := func(n, of, head, tail int) string {
		return fmt.Sprintf("\n[... %d bytes are left out here: of %d this log has the first %d and the last %d ...]\n", n, of, head, tail)
	}
	for _, c := range []struct {
		head, tail int
		text       string
		log        string
		lines      string
	}{
		{4, 7, "ab\ncd\nefg\nhij\n", "ab\nc" + left(6, 14, 4, 4) + "hij\n", "hij"},
		{4, 5, "ab\ncd\nefg\nhij\n", "ab\nc" + left(6, 14, 4, 4) + "hij\n", "hij"},
		{4, 3, "abcdefgh", "abcd" + left(1, 8, 4, 3) + "fgh", "fgh"},
		{4, 4, "abcd\nfg\n", "abcd\nfg\n", "fg"},
		{9, 9, "abcd\nfg\n", "abcd\nfg\n", "abcd\nfg"},
		{2000, 2000, long + "\n" + long + "y\n", long + "\n" + long + "y\n", long + "\n" + long[:496] + " ..."},
	} {
		for _, size := range []int{1, 3, 2000} { // however it is written
			f := require.Value(os.Create(filepath.Join(t.TempDir(), "log")))(t)
			lines, err := check.WriteLog(f, c.head, c.tail, slices.Collect(slices.Chunk([]byte(c.text), size))...)
			if got := strings.Join(lines, "\n"); err != nil || got != c.lines {
				t.Errorf("of %q in parts of %d the lines are %q, %v", c.text, size, got, err)
			}
			if got, err := os.ReadFile(f.Name()); err != nil || string(got) != c.log {
				t.Errorf("of %q in parts of %d the log is %q, %v", c.text, size, got, err)
			}
		}
	}
}

// A log for which there is no room is an error that can be told as that, and takes no room any more.
func TestALogForWhichThereIsNoRoom(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		tier.Missing(t, "this system has no /dev/full")
	}
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.Symlink("/dev/full", path))
	f := require.Value(os.OpenFile(path, os.O_WRONLY, 0))(t)
	lines, err := check.WriteLog(f, 10, 10, []byte("one\ntwo\n"))
	if !errors.Is(err, muster.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) || !slices.Equal(lines, []string{"one", "two"}) {
		t.Errorf("%q, %v", lines, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// A check whose log could not be kept is an error and no answer.
func TestHalfALogIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a.txt": "a\n"})
	r := w.runner("true", func(o *check.Options) {
		o.Launch = func() (proc.Launcher, error) {
			return starter(func(ctx context.Context, s proc.Spec) (proc.Process, error) {
				check.SpoilLog(s.Out)
				l, err := launch()
				if err != nil {
					return nil, err
				}
				return l.Start(ctx, s)
			}), nil
		}
	})
	_, err := r.Run(t.Context(), check.Job{Commit: w.git("rev-parse", "HEAD"), Name: "head"}, nil)
	if !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "the check's log cannot be written") {
		t.Error(err)
	}
}
