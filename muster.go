// Package muster holds the words of the team and the contracts of its state. It imports the standard library only.
//
// Read the files in this order: this one (names), task.go, message.go, member.go, request.go, lane.go, run.go and
// event.go (the words, as the state files and --json have them), errors.go, state.go (what a store engine promises).
//
// The structs are the public form of the state files: a field that a file has and the struct does not know is kept in
// Extra and written back, so programs that know more than we do lose nothing when we rewrite their file.
package muster

import (
	"fmt"
	"slices"
	"strings"
)

type (
	// Name names a member, a lane or a team: [a-z][a-z0-9-]{0,31}.
	Name string
	// TaskID numbers a task; ids are never reused.
	TaskID int
	// MessageID is minted by the sender before its first try.
	MessageID string
	// RequestID is eight hex digits.
	RequestID string
)

// The reserved names. Lead and User have inboxes; no member, lane or team can be spawned with any of them.
const (
	Lead   Name = "lead"
	User   Name = "user"
	All    Name = "all"
	System Name = "system"
)

// NameRule is the rule in words, for error messages.
const NameRule = "a name is a lower-case letter followed by at most 31 lower-case letters, digits or hyphens"

// CheckName reports why n cannot name a new member, lane or team. The error is Invalid. It uses no regular expression,
// because every command would pay for compiling it.
func CheckName(n Name) error {
	s := string(n)
	switch {
	case s == "" || len(s) > 32 || s[0] < 'a' || s[0] > 'z' ||
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return Errorf(Invalid, "%q cannot be a name: %s", s, NameRule)
	case n == Lead || n == User || n == All || n == System:
		return Errorf(Invalid, "%q is a reserved name: choose another", s)
	case slices.Contains([]string{"con", "prn", "aux", "nul"}, s),
		len(s) == 4 && (s[:3] == "com" || s[:3] == "lpt") && s[3] >= '0' && s[3] <= '9':
		return Errorf(Invalid, "%q is a device name on Windows: choose another", s)
	}
	return nil
}

// Slug makes a name of any text: what the rule forbids becomes a hyphen. It returns fallback when nothing is left
// or what is left is reserved.
func Slug(text string, fallback Name) Name {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		ok := r >= 'a' && r <= 'z' || b.Len() > 0 && r >= '0' && r <= '9'
		switch {
		case ok:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := b.String()
	s = strings.TrimRight(s[:min(len(s), 32)], "-")
	if CheckName(Name(s)) != nil {
		return fallback
	}
	return Name(s)
}

// HelperName returns the name of the nth helper of a role that works for a member: alice.explore-1. A helper is a
// subagent or a reviewer. The name of a member has no dot, so it is never that of a helper.
func HelperName(member Name, role string, n int) Name {
	slug := Slug(role, "agent")
	return Name(fmt.Sprintf("%s.%s-%d", member, strings.TrimRight(string(slug[:min(len(slug), 20)]), "-"), n))
}

// HelpedBy returns the member for which a helper works, and the rest of the helper's name. ok is false for a name that
// no helper can have.
func HelpedBy(helper Name) (member, rest Name, ok bool) {
	before, after, hasDot := strings.Cut(string(helper), ".")
	member, rest = Name(before), Name(after)
	return member, rest, hasDot && CheckName(rest) == nil && (member == Lead || CheckName(member) == nil)
}

// LaneName is the default name of a task's lane: task-N-slug.
func LaneName(id TaskID, subject string) Name {
	n := Name(fmt.Sprintf("task-%d", id))
	if slug := Slug(subject, ""); slug != "" {
		s := string(n) + "-" + string(slug)
		n = Name(strings.TrimRight(s[:min(len(s), 32)], "-"))
	}
	return n
}
