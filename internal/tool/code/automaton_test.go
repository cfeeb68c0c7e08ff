package code

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"muster/internal/testing/tier"

	"pgregory.net/rapid"
)

// TestQueryFindsWhatRegexpFinds compares a search with package regexp, line by line.
func TestQueryFindsWhatRegexpFinds(t *testing.T) {
	tier.All(t)
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "é", ".", `\w`, `\s`, `\S`, `[^a]`, `[a-é]`, "^", "$", `\b`, `\B`,
		`\d+`, "(?i:B)", "k", "(?i:K)", `\x{fffd}`, `\A`, `\z`, "aba", `\r`})
	expression := rapid.Custom(func(t *rapid.T) string {
		s := ""
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := atom.Draw(t, "atom") + rapid.SampledFrom([]string{"", "", "*", "+", "?", "{2}", "*?", "??"}).Draw(t, "times")
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
		want, got = nil, nil
		for _, place := range q.re.FindAllIndex(data, -1) {
			if !isBehind(data, place[0]) {
				want = append(want, fmt.Sprint(place))
			}
		}
		err = q.each(newAutomaton(t.Context(), q), data, func(from, to int) bool {
			got = append(got, fmt.Sprint([]int{from, to}))
			return true
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q over lines in %q: places %v, want %v; %v", in.Pattern, data, got, want, err)
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
	tier.All(t)
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
		t.Errorf("%d resets, %d matches", a.forward.resets, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a = newAutomaton(ctx, q)
	if _, known := a.matches(data); known || a.forward.steps > 1024 {
		t.Errorf("%d steps after the end of the time", a.forward.steps)
	}
}

// TestNeedles: what an expression must contain is found in all forms in which it may stand.
func TestNeedles(t *testing.T) {
	tier.All(t)
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"(?i)kelvin", "\u212aELVIN", true},
		{"(?i)sum", "\u017fUM", true},
		{"(?i)straße", "STRAßE", true},
		{"(?i)Needle", "a nEEDLE", true},
		{"(?i)needle", "needl", false},
		{"(?i:one)|two|thr(ee)+", "ONe", true},
		{"(?i:one)|two|thr(ee)+", "TWO", false},
		{"(?i:one)|two|thr(ee)+", "three", true},
		{"a|bc|d", "xxbcxx", true},
		{"(abc)?d", "d", true},
		{"(ab|cd){2}", "cdab", true},
		{"(ab|cd){0,2}x", "x", true},
		{"a\uFFFDb", "a\xffb", true},
	} {
		for _, lines := range []bool{false, true} {
			q, err := newQuery(grepInput{Pattern: c.pattern, Multiline: lines})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			err = q.each(newAutomaton(t.Context(), q), []byte("first\n"+c.text+"\n"), func(_, _ int) bool { n++; return true })
			if found := n > 0; found != c.want || err != nil {
				t.Errorf("%q in %q, over lines %v: found %v, %v", c.pattern, c.text, lines, found, err)
			}
		}
	}
}
