package hooks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// matcher says which subjects of an event a hook is for. It is made of a text as people write it: a name, names with
// bars, commas or blanks between them, patterns with a star, or regular expressions. The case does not count: a guard
// that is too wide is noticed, and one that is too narrow is not. The zero matcher matches everything.
type matcher struct {
	parts   []part
	unknown []string // names in it that are of no tool
	isUnfit bool     // it can match no subject of its event
}

// part is one of the alternatives of a matcher.
type part struct {
	expr *regexp.Regexp
	// not is what must not match: regular expressions of Go have no lookahead.
	not *regexp.Regexp
}

// Parts of a matcher: names with bars between them, a pattern with stars, an expression between slashes, and one that
// begins with a negative lookahead.
var (
	plainMatcher  = lazyregexp.New(`^[A-Za-z0-9_|-]*$`)
	starMatcher   = lazyregexp.New(`^[A-Za-z0-9_*|-]*$`)
	slashMatcher  = lazyregexp.New(`^/(.+)/[a-z]*$`)
	aheadMatcher  = lazyregexp.New(`^\^?\(\?!((?:[^()\\]|\\.|\([^()]*\))*)\)(.*)$`)
	serverMatcher = lazyregexp.New(`^mcp__[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$`)
)

// newMatcher reads a matcher of an event. The problem says why it can never match, and is "" if it can.
func newMatcher(event Event, text string) (m matcher, problem string) {
	if text = strings.TrimSpace(text); text == "" || text == "*" {
		return m, ""
	}
	fits := false
	for _, piece := range pieces(text) {
		if piece == "*" {
			return matcher{}, ""
		}
		p, err := newPart(piece)
		if err != nil {
			return m, fmt.Sprintf("its matcher %s is neither a list of names nor a regular expression of RE2", piece)
		}
		m.parts = append(m.parts, p)
		fits = fits || p.fits(event)
		if !plainMatcher().MatchString(piece) {
			continue
		}
		for name := range strings.SplitSeq(piece, "|") {
			one, err := newPart(name)
			if name != "" && err == nil && !one.fits(event) && !isForeign(event, name) {
				m.unknown = append(m.unknown, name)
			}
		}
	}
	if len(m.parts) == 0 {
		return m, "its matcher " + text + " names nothing"
	}
	if m.isUnfit = !fits && subjects(event) != nil; !m.isUnfit {
		return m, ""
	}
	if isToolEvent(event) {
		return m, "its matcher " + text + " fits no tool of muster"
	}
	return m, fmt.Sprintf("its matcher %s fits nothing of %s, which has %s", text, event,
		strings.Join(subjects(event), ", "))
}

// pieces splits a matcher at the commas and blanks that are outside of brackets. In parentheses blanks are left out: no
// subject has any.
func pieces(text string) (all []string) {
	if found := slashMatcher().FindStringSubmatch(text); found != nil {
		text = found[1]
	}
	var open []rune
	piece, isEscaped := "", false
	end := func() {
		if piece = strings.Trim(piece, `|"'`); piece != "" {
			all = append(all, piece)
		}
		piece = ""
	}
	for _, c := range text {
		isBlank := c == ' ' || c == '\t' || c == '\n'
		isClass := len(open) > 0 && open[len(open)-1] == '['
		switch {
		case isEscaped:
		case c == '\\':
			isEscaped = true
			piece += string(c)
			continue
		case strings.ContainsRune("([{", c) && !isClass:
			open = append(open, c)
		case len(open) > 0 && c == map[rune]rune{'(': ')', '[': ']', '{': '}'}[open[len(open)-1]]:
			open = open[:len(open)-1]
		case len(open) == 0 && (isBlank || c == ',' || c == ';'):
			end()
			continue
		case isBlank && !isClass:
			continue
		}
		isEscaped = false
		piece += string(c)
	}
	end()
	return all
}

// newPart reads a piece of a matcher.
func newPart(piece string) (p part, err error) {
	expr := piece
	switch {
	case serverMatcher().MatchString(piece): // a server means all of its tools
		expr = "^" + piece + "(?:__|$)"
	case plainMatcher().MatchString(piece):
		expr = "^(?:" + piece + ")$"
	case starMatcher().MatchString(piece): // people mean it as a pattern, and some as an expression
		expr = "^(?:" + strings.ReplaceAll(piece, "*", ".*") + ")$"
		if _, err := regexp.Compile(piece); err == nil {
			expr += "|" + piece
		}
	default:
		if found := aheadMatcher().FindStringSubmatch(piece); found != nil {
			if p.not, err = regexp.Compile("(?i)^(?:" + found[1] + ")"); err != nil {
				return p, err
			}
			expr = "^" + found[2]
		}
	}
	p.expr, err = regexp.Compile("(?i)" + expr)
	return p, err
}

// matches reports whether a subject is one of the part.
func (p part) matches(name string) bool {
	return p.expr.MatchString(name) && (p.not == nil || !p.not.MatchString(name))
}

// fits reports whether the part can match a subject of an event. Any server may have any tool.
func (p part) fits(event Event) bool {
	return subjects(event) == nil || slices.ContainsFunc(subjects(event), p.matches) ||
		isToolEvent(event) && strings.Contains(strings.ToLower(p.expr.String()), "mcp")
}

// matches reports whether one of some subjects is one of the matcher.
func (m matcher) matches(names []string) bool {
	if len(m.parts) == 0 {
		return true
	}
	for _, name := range names {
		for _, p := range m.parts {
			if p.matches(name) {
				return true
			}
		}
	}
	return false
}

// isToolEvent reports whether the subjects of an event are tools.
func isToolEvent(event Event) bool { return event == PreToolUse || event == PostToolUse }

// subjects lists what an event can be about; nil: it is about nothing, and its matchers do not count.
func subjects(event Event) []string {
	switch event {
	case PreToolUse, PostToolUse:
		return toolSubjects()
	case SessionStart:
		return []string{"startup", "resume"}
	case Notification:
		return []string{"needs_attention", "budget", "permission_prompt"}
	}
	return nil
}

// isForeign reports whether a name is one of another agent that muster has no such thing for, as its users know.
func isForeign(event Event, name string) bool {
	known := "webfetch websearch notebookedit notebookread exitplanmode enterplanmode askuserquestion slashcommand " +
		"ls lsp monitor powershell taskoutput taskstop toolsearch"
	if !isToolEvent(event) {
		known = "clear compact idle_prompt auth_success elicitation_dialog elicitation_complete elicitation_response"
	}
	return slices.Contains(strings.Fields(known), strings.ToLower(name))
}
