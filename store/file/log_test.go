package file

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Lines of any length, also where a block ends in them, come whole, each once, and stay when others are read.
func TestLinesAcrossBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		var want []string
		for _, size := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 300, lineBlock - 302, lineBlock - 1,
			lineBlock, lineBlock + 1, 3 * lineBlock}), 0, 6).Draw(t, "sizes") {
			line := strings.Repeat(string(rune('a'+len(want))), size) + "\n"
			want, text = append(want, line), append(text, line...)
		}
		text = append(text, strings.Repeat("z", rapid.SampledFrom([]int{0, 1, 2 * lineBlock}).Draw(t, "unfinished"))...)
		start := rapid.IntRange(0, len(want)).Draw(t, "start")
		at := len(strings.Join(want[:start], ""))
		r := lineReader{f: bytes.NewReader(text), at: int64(at), end: int64(len(text))}
		var got [][]byte
		for {
			line, err := r.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, line)
			line = append(line, "overwritten"...) // it has no room for what is another's
			_ = line
		}
		if !slices.EqualFunc(got, want[start:], func(b []byte, s string) bool { return string(b) == s }) {
			t.Fatalf("%d lines, not %d, or others", len(got), len(want)-start)
		}
	})
}

// A file that ends before its end, and one that cannot be read on, give the lines before that.
func TestLinesBeforeTheEnd(t *testing.T) {
	text := strings.Repeat("line\n", lineBlock) // five blocks
	r := lineReader{f: strings.NewReader(text), end: int64(len(text)) + 100}
	n := 0
	for _, err := r.next(); !errors.Is(err, io.EOF); _, err = r.next() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != lineBlock {
		t.Errorf("%d lines", n)
	}
	r = lineReader{f: broken{strings.NewReader(text)}, end: int64(len(text))}
	for n = 0; ; n++ {
		if _, err := r.next(); errors.Is(err, io.ErrClosedPipe) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != (lineBlock+10)/5 {
		t.Errorf("%d lines before the error", n)
	}
}

// broken can be read a little farther than one block.
type broken struct{ io.ReaderAt }

func (b broken) ReadAt(p []byte, at int64) (int, error) {
	if end := at + int64(len(p)); end > lineBlock+10 {
		n, _ := b.ReaderAt.ReadAt(p[:max(lineBlock+10-at, 0)], at)
		return n, io.ErrClosedPipe
	}
	return b.ReaderAt.ReadAt(p, at)
}
