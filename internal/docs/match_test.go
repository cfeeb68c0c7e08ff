package docs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster/internal/view"
	"muster/team"
)

// varies finds, in a line of a page, what differs from run to run.
var varies = regexp.MustCompile(strings.Join([]string{
	`(\.\.\.)`,
	`\b([0-9a-f]{40}|\d{8}-\d{6}|[0-9a-f]{7,8})\b`, // a commit, an archive, a short commit, a request
	`\b(\d{4}-\d\d-\d\d)\b`,
	`\b(\d\d:\d\d(?::\d\d)?)\b`,
	`\b(\d{10}\.\d+|\d{4}-\d\d-\d\dT[\d:.]+Z)\b`, // a stamp of a file, and one of --json
	`\b(\d+(?:\.\d+)?(?:m\d\d)? ?(?:ms|s|min|m|h))\b`,
	`([ \t]+)`,
}, "|"))

// stands are what takes the place of the groups of varies in a run.
var stands = []string{`.*`, "", `\d{4}-\d\d-\d\d`, `\d\d:\d\d(?::\d\d)?`, `\d{10}(?:\.\d+)?|\d{4}-\d\d-\d\dT[\d:.]+Z`, `[\d.]+(?:m\d\d)? ?(?:ms|s|min|m|h)`, `[ \t]+`}

// takesLong finds the lines of a run that say no more than that something takes longer than on the machine of the pages.
var takesLong = regexp.MustCompile(` landing +(lands\?|check) .* (first|second|running)\b[^:]*$|^ *\S+ muster +begins `)

// isBeingMade is in the place of a lane's name where making it takes long.
const isBeingMade = "its lane is being made"

// fit says where the output differs from what the page shows; "" is nowhere. An id is bound at its first sight: the same
// id of the page is the same of the run from then on.
func fit(want, got []string, ids map[string]string) string {
	// Pages show the default, and the tests of pages have no sandbox.
	got = slices.DeleteFunc(slices.Clone(got), func(line string) bool { return line == view.UnconfinedLine })
	for i := range got {
		got[i] = strings.Replace(got[i], team.Sandbox{}.Rights(), team.Sandbox{On: true}.Rights(), 1)
	}
	found, furthest := walk(trim(want), trim(got), ids)
	if found == nil {
		want := trim(want)
		if furthest < len(want) {
			return fmt.Sprintf("nothing fits line %d of what the page shows: %s\n", furthest+1, want[furthest])
		}
		return "it printed more than the page shows\n"
	}
	maps.Copy(ids, found)
	return ""
}

func trim(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// walk matches line by line; found is nil when it does not fit.
func walk(want, got []string, ids map[string]string) (found map[string]string, furthest int) {
	switch {
	case len(want) == 0 && len(got) == 0:
		return map[string]string{}, 0
	case len(want) == 0:
		return nil, 0
	case strings.TrimSpace(want[0]) == "...":
		for skip := range len(got) + 1 {
			f, n := walk(want[1:], got[skip:], ids)
			furthest = max(furthest, n+1)
			if f != nil {
				return f, furthest
			}
		}
		return nil, furthest
	case len(got) == 0:
		return nil, 0
	}
	here := same(want[0], got[0], ids)
	if here == nil && takesLong.MatchString(got[0]) {
		return walk(want, got[1:], ids)
	}
	if here == nil {
		return nil, 0
	}
	known := maps.Clone(ids)
	maps.Copy(known, here)
	rest, n := walk(want[1:], got[1:], known)
	if rest != nil {
		maps.Copy(rest, here)
	}
	return rest, n + 1
}

// same matches one line and returns the ids that it binds; nil when it does not fit.
func same(want, got string, ids map[string]string) map[string]string {
	var pattern strings.Builder
	var bound []string
	want = strings.TrimRight(want, " \t")
	if before, _, takes := strings.Cut(want, " lane task-"); takes && strings.HasSuffix(got, isBeingMade) {
		want = before + " " + isBeingMade
	}
	last := 0
	for _, at := range varies.FindAllStringSubmatchIndex(want, -1) {
		group := 0
		for at[2+2*group] < 0 {
			group++
		}
		text := want[at[0]:at[1]]
		real := stands[group]
		if group == 1 {
			switch {
			case !strings.ContainsAny(text, "0123456789") || len(text) < 9 && !strings.ContainsAny(text, "abcdef"):
				continue // a word, a number
			case ids[text] != "":
				real = regexp.QuoteMeta(ids[text])
			default:
				real = fmt.Sprintf(`([0-9a-f]{%d})`, len(text))
				if strings.Contains(text, "-") {
					real = `(\d{8}-\d{6})`
				}
				bound = append(bound, text)
			}
		}
		pattern.WriteString(regexp.QuoteMeta(want[last:at[0]]) + real)
		last = at[1]
	}
	pattern.WriteString(regexp.QuoteMeta(want[last:]))
	m := regexp.MustCompile(`^` + pattern.String() + `[ \t]*$`).FindStringSubmatch(got)
	if m == nil {
		return nil
	}
	found := map[string]string{}
	for i, id := range bound {
		if before := found[id]; before != "" && before != m[i+1] {
			return nil
		}
		found[id] = m[i+1]
	}
	return found
}

func TestFit(t *testing.T) {
	page := strings.Split("commit 1a2b3c4  0.3 s\n...\nlanded ... as 1a2b3c4\n", "\n")
	run := "commit 9f8e7d6     12.0 s\nx\ny\nlanded task 3 as 9f8e7d6"
	ids := map[string]string{}
	if why := fit(page, strings.Split(run, "\n"), ids); why != "" || ids["1a2b3c4"] != "9f8e7d6" {
		t.Errorf("%s%v", why, ids)
	}
	for _, bad := range []string{
		"", run + "\nmore", strings.Replace(run, "s\n", "S\n", 1), strings.Replace(run, "commit ", "commit a", 1),
		strings.Replace(run, "as 9f8e7d6", "as 9f8e7d5", 1), strings.Replace(run, "as ", "", 1), strings.TrimSuffix(run, "6"),
	} {
		if fit(page, strings.Split(bad, "\n"), map[string]string{}) == "" {
			t.Errorf("fits: %q", bad)
		}
	}
	slow := "  1.0s landing  lands? 1 count  first in the queue\n  2.0s landing  check  1 count  running\n" +
		"  3.0s landing  lands  1 count  585e8d5\n  3.2s alice    takes  2 say  its lane is being made"
	quick := []string{"  0.1s landing  lands  1 count  9f8e7d6", "  0.2s alice    takes  2 say  lane task-2-say"}
	if why := fit(quick, strings.Split(slow, "\n"), map[string]string{}); why != "" {
		t.Errorf("a slow run: %s", why)
	}
	if fit([]string{"3 tasks"}, []string{"4 tasks"}, map[string]string{}) == "" {
		t.Error("numbers count")
	}
}
