// Package sandbox confines programs: to the files that Rules name, and to no network but a loopback of their own. What
// holds the boundary is the operating system, so it does not matter what the program is told or means to do.
//
// Find returns the way to confine that works here: bubblewrap, which gives a program namespaces of its own. Its Wrap
// turns what to start into what starts it confined. Rules say what is seen and what may be written; system.go has the
// rules for the system and for the toolchains in the user's home directory, and bubblewrap.go makes arguments of them.
//
// The package keeps these invariants:
//
//   - What no rule names is not there at all. A rule for a path counts more than one for a directory above it.
//   - A program gets no capability, sees no process but its own, and can make no user namespace, which would give it
//     capabilities again.
//   - What of the kernel is not in a namespace, such as /proc/sys, cannot be written, by root neither.
//
// Which directories a member needs is not decided here (package team).
package sandbox

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/proc"
)

// Access is what a program may do with a path and all that is below it.
type Access int

// The kinds of access.
const (
	Read   Access = iota // read and execute
	Write                // also make, change and remove
	Empty                // an empty directory of the program's own, which goes with it
	Masked               // a file that nothing can be read of or written to
)

// Rule says what a program may do with a path, which is absolute. Of two rules for one path the later counts.
type Rule struct {
	Path   string
	Access Access
	// From is what is seen at Path, where it is not what is there.
	From string
	// MustExist says that a path which is not there is an error. Others are left out.
	MustExist bool
}

// Rules say what a program sees.
type Rules []Rule

// sorted returns the rules with those of directories before those of what is below, one for each path.
func (r Rules) sorted() Rules {
	r = slices.Clone(r)
	slices.Reverse(r) // so that the later of two rules for one path comes first, and is kept
	for i := range r {
		r[i].Path = filepath.Clean(r[i].Path)
	}
	// A separator sorts before all else, so that what is below a directory follows it.
	key := func(x Rule) string { return strings.ReplaceAll(x.Path, string(filepath.Separator), "\x00") }
	slices.SortStableFunc(r, func(a, b Rule) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(r, func(a, b Rule) bool { return a.Path == b.Path })
}

// Method is a way to confine programs.
type Method interface {
	// Name is what people call it.
	Name() string
	// Wrap returns what starts the program of s confined by the rules. dir is where it runs.
	Wrap(s proc.Spec, r Rules) proc.Spec
}

// Find returns the method that works here, after a try of it. The error says why there is none, and what to do. env is
// the environment of this process; programs that lie in one of dirs are not trusted.
func Find(ctx context.Context, env []string, dirs ...string) (Method, error) {
	b, err := findBubblewrap(ctx, env, dirs)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// errNone says that nothing here can confine programs.
func errNone(why, remedy string) error {
	return muster.Errorf(muster.Unavailable, "commands cannot be confined here: %s", why).WithHint("%s", remedy)
}
