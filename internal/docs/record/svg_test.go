package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPieces(t *testing.T) {
	got := pieces("a \x1b[1;31mred bold\x1b[0m   x\x1b[38;5;208m!\x1b[48;2;1;2;3m  \x1b[39;49;7mé\x1b[m.")
	want := []piece{
		{0, "a", look{}},
		{2, "red bold", look{bold: true, text: "c1"}},
		{13, "x", look{}},
		{14, "!", look{text: "#ff8700"}},
		{15, "  ", look{text: "#ff8700", ground: "#010203"}},
		{17, "é", look{reversed: true}},
		{18, ".", look{}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(piece{}, look{})); d != "" {
		t.Error(d)
	}
}

// TestDraw checks that equal rows are drawn once, that text cannot become markup, and that only a recording moves.
func TestDraw(t *testing.T) {
	one := frame{lines: []string{"a <b>", "same"}}
	two := frame{at: time.Second, lines: []string{"", "same"}}
	still, moving := draw([]frame{one}, 10, 2, "T & U"), draw([]frame{one, two}, 10, 2, "T")
	for text, counts := range map[string][2]int{
		"a &lt;b&gt;": {1, 1}, ">same<": {1, 1}, "<use": {2, 3}, "@keyframes": {0, 1}, "prefers-reduced-motion": {0, 1},
		"prefers-color-scheme:dark": {1, 1},
	} {
		if got := [2]int{strings.Count(still, text), strings.Count(moving, text)}; got != counts {
			t.Errorf("%q is there %d times, not %d", text, got, counts)
		}
	}
	for _, text := range []string{still, moving} {
		if err := parse(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestPictures checks the pictures that the pages show: each is well-formed, small, and loads nothing.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "images", "*.svg"))
	if err != nil || len(files) < 5 {
		t.Fatalf("pictures %q, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if err := parse(text); err != nil || len(text) > maxSize || !strings.Contains(text, "<title>") {
			t.Errorf("%s: %d bytes, %v", filepath.Base(file), len(text), err)
		}
		if strings.Contains(text, "<script") || strings.Contains(text, `href="http`) || strings.Contains(text, "url(") {
			t.Errorf("%s loads something from elsewhere", filepath.Base(file))
		}
	}
}

// parse reads an XML document to its end.
func parse(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
