package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/check"
	"muster/internal/testing/tier"
)

// The log is what was printed, or its beginning and its end with the number of bytes between them.
func TestALogKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := regexp.MustCompile(`\n\[\.\.\. (\d+) bytes are left out here: of (\d+) this log has the first (\d+) and the last (\d+) \.\.\.\]\n`)
	rapid.Check(t, func(r *rapid.T) {
		head, tail := rapid.IntRange(0, 60).Draw(r, "head"), rapid.IntRange(1, 60).Draw(r, "tail")
		chunks := rapid.SliceOf(rapid.SliceOf(rapid.SampledFrom([]byte("abc\n")))).Draw(r, "chunks")
		f, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			r.Fatal(err)
		}
		lines, err := check.WriteLog(f, head, tail, chunks...)
		got, rerr := os.ReadFile(f.Name())
		if err != nil || rerr != nil {
			r.Fatal(err, rerr)
		}
		all := slices.Concat(chunks...)
		if !strings.HasSuffix(strings.TrimRight("\n"+string(all), "\n"), strings.TrimRight(strings.Join(lines, "\n"), "\n")) {
			r.Errorf("lines %q of %q", lines, all)
		}
		at := left.FindSubmatchIndex(got)
		if at == nil {
			if !bytes.Equal(got, all) {
				r.Errorf("%q for %q", got, all)
			}
			return
		}
		var n, size, first, last int
		numbers := string(bytes.Join(left.FindSubmatch(got)[1:], []byte(" ")))
		if _, err := fmt.Sscan(numbers, &n, &size, &first, &last); err != nil {
			r.Fatal(err)
		}
		if size != len(all) || first != head || last > tail || n != size-first-last || n <= 0 ||
			!bytes.Equal(got[:at[0]], all[:first]) || !bytes.Equal(got[at[1]:], all[size-last:]) {
			r.Errorf("%q for %q", got, all)
		}
	})
}

// What is left of a long output begins with a whole line, and a long line is cut where it ends.
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
		{2000, 2000, long + "\n" + long + "y\n", long + "\n" + long + "y\n", long + "\n" + long + " ..."},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := check.WriteLog(f, c.head, c.tail, []byte(c.text))
		if got := strings.Join(lines, "\n"); err != nil || got != c.lines {
			t.Errorf("of %q the lines are %q, %v", c.text, got, err)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || string(got) != c.log {
			t.Errorf("of %q the log is %q, %v", c.text, got, err)
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
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := check.WriteLog(f, 10, 10, []byte("one\ntwo\n"))
	if !errors.Is(err, muster.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) || !slices.Equal(lines, []string{"one", "two"}) {
		t.Errorf("%q, %v", lines, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
