package main

import (
	"regexp"

	"muster/bench/habits/session"
)

// reason is why a call has failed, in words for a table.
type reason string

// reasons are told by the first text that fits.
var reasons = []struct {
	text *regexp.Regexp
	why  reason
}{
	{regexp.MustCompile(`hook error|Hook (?:PreToolUse|denied)`), "a hook refused it"},
	{regexp.MustCompile(`(?i)has not been read yet|must read|read it first`), "the file was not read before"},
	{regexp.MustCompile(`(?i)modified since read|changed since|has been (?:unexpectedly )?modified`),
		"the file has changed since it was read"},
	{regexp.MustCompile(`(?i)String to replace not found|could not find|not found in file|failed to find|` +
		`Failed to find expected lines|0 occurrences|no match`), "the old text is not in the file"},
	{regexp.MustCompile(`(?i)Found \d+ matches|multiple matches|not unique|more than once`),
		"the old text is there more than once"},
	{regexp.MustCompile(`(?i)exactly the same|No changes to make|identical`), "the new text is the old one"},
	{regexp.MustCompile(`(?i)does not exist|no such file|ENOENT|file not found|cannot find`), "there is no such file"},
	{regexp.MustCompile(`(?i)exceeds maximum|too large|token limit`), "the file is too large"},
	{regexp.MustCompile(`(?i)EISDIR|is a directory|illegal operation on a directory`), "it is a directory"},
	{regexp.MustCompile(`(?i)InputValidationError|required parameter|validation|invalid`), "the arguments are wrong"},
	{regexp.MustCompile(`(?i)permission|denied|not allowed|haven't granted|must be within`), "it was not allowed"},
	{regexp.MustCompile(`(?i)Sibling tool call|cancelled|interrupted|aborted`), "another call or the user stopped it"},
}

// why returns why a call has failed.
func why(c *session.Call) reason {
	for _, r := range reasons {
		if r.text.MatchString(c.Result) {
			return r.why
		}
	}
	return "something else"
}

// outcomes are what became of calls.
type outcomes struct {
	done, failed, refused, unknown int
	reasons                        map[reason]int
}

// outcomesOf counts what became of the calls with the action.
func outcomesOf(sources []source, does session.Action) outcomes {
	o := outcomes{reasons: map[reason]int{}}
	for _, s := range sources {
		for _, c := range s.calls() {
			if c.Does != does {
				continue
			}
			switch {
			case c.Refused:
				o.refused++
			case c.Failed:
				o.failed++
				o.reasons[why(c)]++
			case c.Done():
				o.done++
			default:
				o.unknown++
			}
		}
	}
	return o
}
