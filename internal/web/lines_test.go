package web

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"muster/internal/difflines"
)

// TestLines: the page gets the pieces of lines as it counts, which is in units of UTF-16.
func TestLines(t *testing.T) {
	lines := []difflines.Line{{Kind: difflines.Removed, File: "a.go", Old: 7, Text: "x := f(\"👍\", a) // b\r"},
		{Kind: difflines.Added, File: "a.go", New: 7, Text: "x := f(\"👍\", c) // b\r"}}
	difflines.Mark(lines)
	want := line{Kind: difflines.Added, New: 7, Text: "x := f(\"👍\", c) // b", Parts: []part{{7, ""}, {4, "t-string"}, {2, ""},
		{1, "t-changed"}, {2, ""}, {5, "t-comment"}}}
	if got := newLines(lines)[1]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCode: what is asked for a block of code changes nothing, so a page of the past asks too.
func TestCode(t *testing.T) {
	got, err := new(Server).code(httptest.NewRequest("POST", "/api/code", strings.NewReader(`{"language":"go","text":"// 世\nx\nif 1"}`)))
	if want := [][]part{{{4, "t-comment"}}, {}, {{2, "t-keyword"}, {1, ""}, {1, "t-number"}}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if _, err := new(Server).code(httptest.NewRequest("POST", "/api/code", strings.NewReader(`{"x":1}`))); err == nil {
		t.Error("an unknown field is taken")
	}
}
