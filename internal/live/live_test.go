package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/internal/testing/wait"
)

func follow(t *testing.T, dir string) (all func() []Piece) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pieces, ended := make(chan Piece, 1<<16), make(chan struct{})
	seq := Follow(ctx, dir, func(string) bool { return false })
	go func() {
		defer close(ended)
		for p := range seq {
			pieces <- p
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	var got []Piece
	return func() []Piece {
		for {
			select {
			case p := <-pieces:
				got = append(got, p)
			default:
				return got
			}
		}
	}
}

// What two processes write arrives whole and in the order of each member; what was written before is not told again.
func TestPiecesArriveInOrder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "live")
	alice, bob := NewWriter(dir), NewWriter(dir)
	require.NoError(t, alice.Write([]Piece{{Member: "alice", Kind: Text, Text: "earlier"}}))
	got := follow(t, dir)
	var want []Piece
	for i := range 50 {
		p := Piece{Member: "alice", Kind: Text, Part: i, Text: fmt.Sprintf("line %d\n\x1b", i)}
		want = append(want, p)
		require.NoError(t, alice.Write([]Piece{p}))
		require.NoError(t, bob.Write([]Piece{{Member: "bob", Kind: Progress, Text: "go test"}, {Member: "bob", Kind: End}}))
	}
	wait.For(t, "all pieces", func() bool { return len(got()) == 150 })
	if all := slices.DeleteFunc(slices.Clone(got()), func(p Piece) bool { return p.Member != "alice" }); !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
	require.NoError(t, alice.Close())
	require.NoError(t, bob.Close())
	if left := files(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A file stays small, and those who follow go on with what is written then.
func TestAFileIsBegunAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := NewWriter(dir)
	got := follow(t, dir)
	long := strings.Repeat("x", 10_000)
	for range 300 {
		require.NoError(t, w.Write([]Piece{{Member: "alice", Kind: Text, Text: long}}))
	}
	require.NoError(t, w.Write([]Piece{{Member: "alice", Kind: End}}))
	wait.For(t, "the end", func() bool { all := got(); return len(all) > 0 && all[len(all)-1].Kind == End })
	if info, err := os.Stat(files(dir)[0]); err != nil || info.Size() > maxFile {
		t.Errorf("%v, %v", info.Size(), err)
	}
	require.NoError(t, w.Close())
}

// The files of dead processes go after a while.
func TestOldFilesGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "1"+ending)
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*maxAge)))
	w := NewWriter(dir)
	require.NoError(t, w.Write([]Piece{{Member: "alice", Kind: End}}))
	if left := files(dir); len(left) != 1 || left[0] == old {
		t.Errorf("%v", left)
	}
	require.NoError(t, w.Close())
}

// However a file was cut into reads, its lines come once each and whole.
func TestReadsAreOfWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-z]{0,5}\n`)).Draw(r, "lines")
		text := strings.Join(lines, "")
		var got []byte
		at, written := int64(0), 0
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		for written < len(text) {
			written += rapid.IntRange(1, len(text)-written).Draw(r, "more")
			require.NoError(t, os.WriteFile(path, []byte(text[:written]), 0o600))
			var more []byte
			more, at = readFrom(path, at)
			got = append(got, more...)
			if len(more) > 0 && more[len(more)-1] != '\n' {
				r.Fatalf("%q", more)
			}
		}
		if string(got) != text {
			r.Fatalf("%q of %q", got, text)
		}
	})
}

// What is no file of a member, or is as long as a file of holes can be, is passed over.
func TestReadFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.Mkdir(path, 0o700))
	if lines, end := readFrom(path, 3); lines != nil || end != 3 {
		t.Errorf("a directory: %q, %d", lines, end)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte("a\nb"), 0o600))
	if lines, end := readFrom(path, 0); string(lines) != "a\n" || end != 2 {
		t.Errorf("%q, %d", lines, end)
	}
	const long = 1 << 40
	require.NoError(t, os.Truncate(path, long))
	if lines, end := readFrom(path, 2); lines != nil || end != long {
		t.Errorf("holes: %d bytes, %d", len(lines), end)
	}
}
