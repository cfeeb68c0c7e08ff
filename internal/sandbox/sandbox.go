// Package sandbox confines programs: to the files that Rules name, and to no network but a loopback of their own. What
// holds the boundary is the operating system, so it does not matter what the program is told or means to do.
//
// Find returns the way to confine that works here:
//
//   - bubblewrap (bubblewrap.go) gives a program namespaces of its own, some of them made ahead (ahead.go).
//   - Landlock (landlock.go) is for Linux where there is no bubblewrap, or where it may make no namespaces. It keeps
//     programs from files, too, but has no loopback for them and cannot show them one file in the place of another.
//   - sandbox-exec (seatbelt.go) is the same for macOS.
//
// Rules say what is seen and what may be written; system.go has the rules for the system. Those for the user's
// toolchains are in package toolchains.
//
// The package keeps these invariants, whatever the method:
//
//   - What no rule names cannot be opened. A rule for a path counts more than one for a directory above it. A path is
//     what it leads to: links give nothing a second set of rules.
//   - A program gets no capability, but as root that to open files whatever their modes say. It reaches no process but
//     its own, and can make no user namespace, which would give it capabilities again.
//   - What of the kernel is not in a namespace, such as /proc/sys, cannot be written, by root neither.
//
// Which directories a member needs is not decided here (package confined).
package sandbox

import (
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/text"
)

// Access is what a program may do with a path and all that is below it.
type Access int

// The kinds of access.
const (
	Read   Access = iota // read and execute
	Write                // also make, change and remove
	Empty                // an empty directory of the program's own, which goes with it
	Masked               // a file that nothing can be read of or written to

	link Access = -1 // a symbolic link to From
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

// Rules returns the rules that give a program this access to some paths; "" is none.
func (a Access) Rules(paths ...string) (r Rules) {
	for _, path := range paths {
		if path != "" {
			r = append(r, Rule{Path: path, Access: a})
		}
	}
	return r
}

// resolved returns the rules for what their paths lead to here, so that no second name of a directory gets round a
// rule. Those of directories come before those of what is below, one for each path. Links on the way to a path are
// rules with the access link, where no directory that is shown has them. What the rule above it shows is left out.
//
// A rule whose path leads over a link in a directory that programs write is left out: they may have made the link. So
// is one that would show something at a path that is not there in a directory that is only read: nothing can be made
// there.
func (r Rules) resolved() Rules {
	w, links, writable := Walk{}, map[string]string{}, []string(nil)
	follow := func(x *Rule) (ok bool) {
		if !filepath.IsAbs(x.Path) {
			return true
		}
		var over map[string]string
		x.Path, over = w.Follow(x.Path)
		for at := range over {
			if slices.ContainsFunc(writable, func(dir string) bool { return dir != at && IsBelow(dir, at) }) {
				return false
			}
		}
		maps.Copy(links, over)
		return true
	}
	written := slices.DeleteFunc(slices.Clone(r), func(x Rule) bool { return x.Access != Write })
	// The outer ones come first.
	slices.SortFunc(written, func(a, b Rule) int { return cmp.Compare(len(a.Path), len(b.Path)) })
	for _, x := range written {
		if follow(&x) {
			writable = append(writable, x.Path)
		}
	}
	all := make(Rules, 0, len(r)+8)
	for _, x := range slices.Backward(r) { // so that the later of two rules for one path comes first, and is kept
		if follow(&x) {
			all = append(all, x)
		}
	}
	for path, to := range links {
		all = append(all, Rule{Path: path, Access: link, From: to})
	}
	// What is below a directory follows it: a separator sorts before all else.
	keys := map[string]string{}
	for _, x := range all {
		keys[x.Path] = strings.ReplaceAll(x.Path, "/", "\x00")
	}
	slices.SortStableFunc(all, func(a, b Rule) int { return cmp.Compare(keys[a.Path], keys[b.Path]) })
	above := []Rule{{Access: Empty}} // the rules that hold at this place, the nearest last
	return slices.DeleteFunc(all, func(x Rule) bool {
		for len(above) > 1 && !IsBelow(above[len(above)-1].Path, x.Path) {
			above = above[:len(above)-1]
		}
		near := above[len(above)-1]
		if near.Path == x.Path {
			return true
		}
		isShown := near.Access == Read || near.Access == Write
		if x.Access == link {
			return isShown
		}
		if near.Access == Read && x.From != "" && !x.MustExist {
			if _, err := os.Lstat(x.Path); err != nil {
				return true
			}
		}
		above = append(above, x)
		return isShown && x.Access == near.Access && x.From == "" && near.From == "" && !x.MustExist
	})
}

// here returns the resolved rules for methods that cannot show one path in the place of another, without those for what
// is not there.
func (r Rules) here() (there Rules, err error) {
	asTheyAre := slices.DeleteFunc(slices.Clone(r), func(x Rule) bool { return x.From != "" })
	for _, x := range asTheyAre.resolved() {
		_, err := os.Lstat(x.Path)
		if err != nil && x.MustExist {
			return nil, err
		}
		if err == nil && x.Access != link {
			there = append(there, x)
		}
	}
	return there, nil
}

// Walk follows the links on the ways to many paths, looking at each name once. It has what a link says, by its path; ""
// is no link.
type Walk map[string]string

// Follow returns what an absolute path leads to, and the links on the way. What is not there, or is not the user's to
// look at, stays as it is.
func (w Walk) Follow(path string) (real string, links map[string]string) {
	real, links = "/", map[string]string{}
	rest := strings.Split(filepath.Clean(path), "/")
	for followed := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real) // no link is in real
			continue
		}
		real = strings.TrimSuffix(real, "/") + "/" + name
		to, ok := w[real]
		if !ok {
			to, _ = os.Readlink(real)
			w[real] = to
		}
		if to == "" || followed == 40 {
			continue
		}
		followed++
		links[real] = to
		if real = filepath.Dir(real); filepath.IsAbs(to) {
			real = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return real, links
}

// Method is a way to confine programs.
type Method struct {
	// Name is what people call it.
	Name string
	// HasNamespaces says that programs get namespaces of their own. Where they get none, rules with From are left out,
	// no socket can be made, so that there is neither a network nor a loopback, and what is below a path that may be
	// written may be written, too.
	HasNamespaces bool
	// Lacks says what programs cannot do that they could under the best method, Why it is not that one, and Remedy what
	// to do about it; "" where it is.
	Lacks, Why, Remedy string
	// Start starts the program of s with a launcher, confined by the rules. Errors are those of proc.Launcher, and
	// Unavailable.
	Start func(ctx context.Context, l proc.Launcher, s proc.Spec, r Rules) (proc.Process, error)
}

// Find returns the method that works here, after a try of it: on Linux the first one of bubblewrap and Landlock. The
// error says why there is none, and what to do. env is the environment of this process; programs that lie in one of
// dirs are not trusted.
func Find(ctx context.Context, env []string, dirs ...string) (*Method, error) {
	go private() // the first command needs it
	switch runtime.GOOS {
	case "linux":
	case "darwin":
		return findSeatbelt(ctx)
	default:
		return nil, errNone("that works on Linux and macOS only", "muster --no-sandbox starts without it")
	}
	b, err := findBubblewrap(ctx, env, dirs)
	if err == nil {
		return &Method{Name: "bubblewrap", HasNamespaces: true, Start: b.start}, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	l, landlockErr := findLandlock(ctx, err)
	if landlockErr != nil {
		return nil, muster.Errorf(muster.Unavailable, "%s, and %w", muster.PlainText(err), landlockErr).
			WithHint("%s", muster.HintOf(err))
	}
	return l, nil
}

// try runs a program that a method confines, with files from descriptor 3 on, and returns what it says. It runs without
// a guard, because nothing is written or started before it is known whether a run can begin.
func try(ctx context.Context, args []string, files ...*os.File) (said string, err error) {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := exec.CommandContext(limited, args[0], args[1:]...)
	c.Env, c.ExtraFiles = []string{"PATH=/usr/bin:/bin"}, files
	out, err := c.CombinedOutput()
	return text.OneLine(string(out)), err
}

// lackNamespaces is what programs without namespaces lack.
const lackNamespaces = "no network, not even localhost"

// cannotConfine begins what an error of Find says.
const cannotConfine = "commands cannot be confined here: "

// errConfining says that a program was not started.
func errConfining(err error) error {
	return muster.Errorf(muster.Unavailable, "a command cannot be confined: %w", err)
}

// errNone says that nothing here can confine programs.
func errNone(why, remedy string) error {
	return muster.Errorf(muster.Unavailable, cannotConfine+"%s", why).WithHint("%s", remedy)
}
