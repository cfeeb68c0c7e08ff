package file

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
)

// block is how much is read of a stream at a time.
const block = 64 << 10

// Lines of any length, also where a block ends in them, come whole, each once, and stay when others are read.
func TestLinesAcrossBlocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := Open(t.TempDir())
		require.NoError(t, err)
		defer s.Close()
		var want []string
		places := []muster.Pos{0}
		for i, size := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 300, block - 340, block - 28, block - 27,
			block - 26, 3 * block}), 0, 6).Draw(rt, "sizes") {
			want = append(want, fmt.Sprintf(`{"n":"%s"}`, strings.Repeat(string(rune('a'+i)), size)))
			end, err := s.Log().Append(t.Context(), muster.StreamEvents, places[i], []byte(want[i]))
			require.NoError(t, err)
			places = append(places, end)
		}
		start := rapid.IntRange(0, len(want)).Draw(rt, "start")
		var got [][]byte
		for r, err := range s.Log().Read(t.Context(), muster.StreamEvents, places[start]) {
			require.NoError(t, err)
			got = append(got, r.Data)
			r.Data = append(r.Data, "overwritten"...) // it has no room for what is another's
		}
		if !slices.EqualFunc(got, want[start:], func(b []byte, s string) bool { return string(b) == s }) {
			rt.Fatalf("%d lines, not %d, or others", len(got), len(want)-start)
		}
		for n := range len(want) + 1 {
			if at, err := s.Log().Tail(t.Context(), muster.StreamEvents, n); err != nil || at != places[len(want)-n] {
				rt.Fatalf("the last %d begin at %d, not %d: %v", n, at, places[len(want)-n], err)
			}
		}
	})
}

// A file that ends before its end, and one that cannot be read on, give the lines before that.
func TestLinesBeforeTheEnd(t *testing.T) {
	text := strings.Repeat("{\"a\"}\n", block) // six blocks, of lines that are damaged
	for _, c := range []struct {
		file   io.ReaderAt
		end    int64
		lines  int
		reason error
	}{
		{strings.NewReader(text), int64(len(text)) + 100, block, nil},
		{broken{strings.NewReader(text)}, int64(len(text)), (block + 10) / 6, io.ErrClosedPipe},
	} {
		lines := 0
		var end error
		segment := logSegment{to: c.end, file: readOnly{ReaderAt: c.file}}
		segment.read(t.Context(), 0, func(_ muster.Record, err error) bool {
			if errors.Is(err, muster.ErrCorrupt) {
				lines++
			} else {
				end = err
			}
			return true
		})
		if lines != c.lines || !errors.Is(end, c.reason) {
			t.Errorf("%d lines and %v, want %d and %v", lines, end, c.lines, c.reason)
		}
	}
}

// readOnly is a file of which only ReadAt is used.
type readOnly struct {
	durable.File
	io.ReaderAt
}

func (r readOnly) ReadAt(p []byte, at int64) (int, error) { return r.ReaderAt.ReadAt(p, at) }

// broken can be read a little farther than one block.
type broken struct{ io.ReaderAt }

func (b broken) ReadAt(p []byte, at int64) (int, error) {
	if end := at + int64(len(p)); end > block+10 {
		n, _ := b.ReaderAt.ReadAt(p[:max(block+10-at, 0)], at)
		return n, io.ErrClosedPipe
	}
	return b.ReaderAt.ReadAt(p, at)
}
