package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster/llm"
	"muster/tool"
)

func says(parts ...llm.Part) llm.Tool {
	return tool.New("say", "", func(context.Context, struct{}) (llm.Result, error) {
		return llm.Result{Parts: parts, IsError: true}, nil
	})
}

func TestLimit(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("line %d ä", i))
	}
	whole := strings.Join(lines, "\n")
	image := llm.Image{Media: "image/png"}
	var kept string
	keep := func(_ context.Context, c llm.Call, s string) (string, error) {
		kept = c.ID + s
		return "/out/1.txt", nil
	}
	r := run(t, tool.Limit(says(llm.Text{Text: whole[:300]}, image, llm.Text{Text: whole[300:]}), 400, keep), "")
	got := text(r)
	if kept != "c1"+whole {
		t.Errorf("kept %q", kept)
	}
	if n := utf8.RuneCountInString(got); n > 400 || n < 300 {
		t.Errorf("%d characters", n)
	}
	if !strings.HasPrefix(got, "line 0 ä\nline 1 ä\n") || !strings.HasSuffix(got, "\nline 99 ä") ||
		!strings.Contains(got, " of 989 characters cut here; the whole is in /out/1.txt ...") {
		t.Error(got)
	}
	if !r.IsError || len(r.Parts) != 2 || r.Parts[1].(llm.Image).Media != "image/png" || len(r.Files) != 1 ||
		r.Files[0] != "/out/1.txt" {
		t.Errorf("lost something: %+v", r)
	}

	kept = ""
	if got := text(run(t, tool.Limit(says(llm.Text{Text: whole}), 989, keep), "")); got != whole || kept != "" {
		t.Errorf("what fits is cut: %q", got)
	}
	if got := text(run(t, tool.Limit(says(llm.Text{Text: whole}), 200, nil), "")); !strings.Contains(got,
		"; the middle is lost ...") {
		t.Error(got)
	}
	full := func(context.Context, llm.Call, string) (string, error) { return "", errors.New("no space left") }
	if got := text(run(t, tool.Limit(says(llm.Text{Text: whole}), 200, full), "")); !strings.Contains(got,
		"; the whole could not be kept: no space left ...") {
		t.Error(got)
	}
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("aä\n€😀"))).Draw(t, "text")
		most := rapid.IntRange(0, 300).Draw(t, "max")
		got := tool.Cut(s, most, "gone")
		total := utf8.RuneCountInString(s)
		if total <= most {
			if got != s {
				t.Fatal("changed what fits")
			}
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("cut within a character: %q", got)
		}
		head, tail, ok := strings.Cut(got, "\n... ")
		if !ok { // no room for more than the note
			if !strings.HasPrefix(got, "... ") {
				t.Fatalf("%q", got)
			}
			return
		}
		var cut int
		if _, err := fmt.Sscanf(tail, "%d of", &cut); err != nil {
			t.Fatal(err)
		}
		_, tail, _ = strings.Cut(tail, " ...\n")
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) ||
			cut != total-utf8.RuneCountInString(head+tail) || utf8.RuneCountInString(got) > most {
			t.Fatalf("%q is not %q with %d cut", got, s, cut)
		}
	})
}
