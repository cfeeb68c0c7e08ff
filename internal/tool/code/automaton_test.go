package code

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// TestQueryFindsWhatRegexpFinds compares a search with package regexp, line by line.
func TestQueryFindsWhatRegexpFinds(t *testing.T) {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "é", ".", `\w`, `\s`, `\S`, `[^a]`, `[a-é]`, "^", "$", `\b`, `\B`,
		`\d+`, "(?i:B)", "k", "(?i:K)", `\x{fffd}`, `\A`, `\z`, "aba", `\r`})
	expression := rapid.Custom(func(t *rapid.T) string {
		s := ""
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := atom.Draw(t, "atom") + rapid.SampledFrom([]string{"", "", "*", "+", "?", "{2}"}).Draw(t, "times")
			switch {
			case i > 0 && rapid.IntRange(0, 3).Draw(t, "or") == 0:
				s = "(" + s + ")|" + part
			default:
				s += part
			}
		}
		return s
	})
	text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", " ", "\n", "\n", "\r\n", "\r", "é", "\xff", "K", "K", "7",
		"_", "世", "\uFFFD"}), 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		in := grepInput{Pattern: expression.Draw(t, "pattern"), IgnoreCase: rapid.Bool().Draw(t, "-i")}
		re, err := regexp.Compile(in.Pattern)
		if err != nil {
			t.Skip(err)
		}
		if in.IgnoreCase {
			re = regexp.MustCompile("(?i)" + in.Pattern)
		}
		q, err := newQuery(in)
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Join(toBytes(text.Draw(t, "text")), nil)
		var want, got []string
		for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
			if len(data) > 0 && re.Match(bytes.TrimSuffix(line, []byte("\r"))) {
				want = append(want, fmt.Sprint(i))
			}
		}
		a := newAutomaton(t.Context(), q)
		err = q.each(a, data, func(from, _ int) bool {
			got = append(got, fmt.Sprint(bytes.Count(data[:from], []byte("\n"))))
			return true
		})
		if fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
			t.Fatalf("%q -i=%v in %q: lines %v, want %v; %v", in.Pattern, in.IgnoreCase, data, got, want, err)
		}
		in.Multiline = true
		if q, err = newQuery(in); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, place := range q.re.FindAllIndex(data, -1) {
			if !isBehind(data, place[0]) {
				n++
			}
		}
		err = q.each(newAutomaton(t.Context(), q), data, func(_, _ int) bool { n--; return true })
		if err != nil || n != 0 {
			t.Fatalf("%q over lines in %q: %d missing, %v", in.Pattern, data, n, err)
		}
	})
}

func toBytes(list []string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

// TestAutomatonGivesUp: an expression with very many states is left to package regexp, and the time limit holds.
func TestAutomatonGivesUp(t *testing.T) {
	q, err := newQuery(grepInput{Pattern: "(a|b)*a(a|b){14}c"})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 1<<18)
	for i := range data {
		data[i] = "ab\n"[min(2, random.IntN(200))%3]
		if data[i] == '\n' && random.IntN(100) > 0 {
			data[i] = "ab"[random.IntN(2)]
		}
	}
	data = append(data, "\nabbbbbbbbbbbbbbc\n"...)
	a, n := newAutomaton(t.Context(), q), 0
	for range 3 {
		if err := q.each(a, data, func(_, _ int) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
	}
	if !a.isUseless() || n != 3 {
		t.Errorf("%d resets, %d matches", a.resets, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := newAutomaton(ctx, q); a.find(data, 0) >= 0 || a.steps > 1024 {
		t.Errorf("%d steps after the end of the time", a.steps)
	}
}
