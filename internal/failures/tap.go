package failures

import (
	"cmp"
	"strings"

	"muster/internal/lazyregexp"
)

// The tests of TAP have parts, which are indented and come before the test itself. A part has failed only if the test
// has: one that is to do, or to be left out, may have parts that are not ok.

// The name of a part has those of the tests around it in front, because many tests have parts of one name. Runners tell
// them by a line with the title when the test begins. Without such lines a part has its own name only.

// tapNames are the tests of TAP that have failed, as far as the tests around them have not ended.
type tapNames struct {
	titles []string // of the tests that have begun, by their depth
	open   []tapTest
}

// tapTest is a test that is not ok.
type tapTest struct {
	depth int
	name  string
}

var (
	tapTitle     = lazyregexp.New(`^( *)# Subtest: (.*)$`)
	tapResult    = lazyregexp.New(`^( *)(not )?ok\b(?: +(\d+))?(?: +-)?(?: +(.*))?$`)
	tapDirective = lazyregexp.New(`(?i)(?:^|[^\\])# *(?:todo|skip)`)
	tapTime      = lazyregexp.New(` # time=\S+( \{)?$`)
)

// maxDepth is how deep the parts of tests are told apart.
const maxDepth = 50

// tapLine takes a line, and reports whether it is one of TAP.
func (n *names) tapLine(text string) bool {
	if !strings.Contains(text, "ok") && !strings.Contains(text, "# Subtest: ") {
		return false
	}
	t := &n.tap
	if m := tapTitle().FindStringSubmatch(text); m != nil {
		depth := min(len(m[1])/4, maxDepth, len(t.titles))
		t.titles = append(t.titles[:depth], m[2])
		return true
	}
	m := tapResult().FindStringSubmatch(text)
	if m == nil {
		return false
	}
	depth := min(len(m[1])/4, maxDepth)
	if m[2] == "" || tapDirective().MatchString(m[4]) {
		for len(t.open) > 0 && t.open[len(t.open)-1].depth > depth {
			t.open = t.open[:len(t.open)-1]
		}
	} else {
		name := cmp.Or(tapTime().ReplaceAllString(m[4], ""), "test "+m[3])
		around := append(append([]string(nil), t.titles[:min(depth, len(t.titles))]...), name)
		t.open = append(t.open, tapTest{depth, strings.Join(around, " > ")})
	}
	if depth == 0 {
		n.endTAP()
	}
	return true
}

// endTAP takes the tests that have failed for what they are.
func (n *names) endTAP() {
	for _, t := range n.tap.open {
		n.add(t.name)
		n.expected++
	}
	n.tap.open = nil
}
