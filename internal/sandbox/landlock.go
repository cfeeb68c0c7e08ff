package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/landlock"
	"muster/internal/proc"
	"muster/internal/text"
)

// landlocked confines programs with Landlock and a filter of their calls of the system (package landlock).
type landlocked struct {
	instead error // why it is not bubblewrap
}

// Name returns the name of the kernel's feature.
func (*landlocked) Name() string { return "Landlock" }

// HasNamespaces returns false.
func (*landlocked) HasNamespaces() bool { return false }

// Lacks says what Landlock cannot give, and why it is not bubblewrap.
func (l *landlocked) Lacks() (what, why, remedy string) {
	what = lackNamespaces
	if !landlock.KeepsSignals() {
		what += ", and they can send signals to your other processes (Linux 6.12 forbids it)"
	}
	return what, strings.TrimPrefix(muster.PlainText(l.instead), cannotConfine), muster.HintOf(l.instead)
}

// Start starts the program of s under a ruleset.
func (*landlocked) Start(ctx context.Context, l proc.Launcher, s proc.Spec, r Rules) (proc.Process, error) {
	file, writable, err := r.ruleset()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s.Ruleset, s.Writable = file, writable
	return l.Start(ctx, s)
}

// findLandlock tries Landlock. instead is why bubblewrap does not work.
func findLandlock(ctx context.Context, instead error) (Method, error) {
	fail := func(err error) (Method, error) {
		return nil, muster.Errorf(muster.Unavailable, "Landlock does not work: %s", text.OneLine(err.Error()))
	}
	switch v := landlock.Version(); {
	case v == 0:
		return fail(errors.New("this kernel has none, or it is switched off"))
	case v < landlock.MinVersion:
		return fail(errors.New("it needs Linux 6.2 or later"))
	}
	file, _, err := system().ruleset()
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	tried := make(chan error)
	landlock.OnThread(func() {
		err := landlock.Restrict(int(file.Fd()), nil)
		if err == nil {
			err = exec.CommandContext(limited, "/bin/sh", "-c", "exit 0").Run()
		}
		tried <- err
	})
	if err := <-tried; err != nil {
		return fail(err)
	}
	return &landlocked{instead}, nil
}

// devices are those that every program may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// ruleset returns the ruleset of the rules, which the caller closes, and the directories that may be written. Landlock
// only ever allows: where a part of a directory is to be left out, all others are named, as they are now.
func (r Rules) ruleset() (file *os.File, writable []string, err error) {
	set, err := landlock.New()
	for _, path := range devices {
		if err == nil {
			err = ignoreUnusable(set.Allow(path, landlock.Device))
		}
	}
	if err == nil {
		// Of other processes Landlock shows what ps shows, and neither their memory nor their environment.
		err = set.Allow("/proc", landlock.Read)
	}
	tree := newTree()
	for _, x := range r.here().resolved() {
		if err == nil && x.Access != link {
			err = tree.add(x)
		}
	}
	if err == nil {
		writable, err = tree.allow(set, "/", nothing)
	}
	if err != nil {
		if set != nil {
			_ = set.Close()
		}
		return nil, nil, errConfining(err)
	}
	return set.File, writable, nil
}

// ignoreUnusable ignores that something is not there, or not the user's to look at.
func ignoreUnusable(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// nothing is the access to what no rule allows.
const nothing = landlock.Access(-1)

// accesses are what the kinds of access of rules are to Landlock.
var accesses = map[Access]landlock.Access{Read: landlock.Read, Write: landlock.Write, Empty: nothing, Masked: nothing}

// tree has the rules by the directories that lead to their paths. No part of a path in it is a link.
type tree struct {
	rule  *Rule // for the path itself; nil: none
	below map[string]*tree
	// hidesFiles and hidesDirs say that rules hide something below.
	hidesFiles, hidesDirs bool
}

// newTree returns a tree without rules.
func newTree() *tree { return &tree{below: map[string]*tree{}} }

// add adds a rule. One for the same path is replaced.
func (t *tree) add(x Rule) error {
	if _, err := os.Lstat(x.Path); err != nil {
		if x.MustExist {
			return err
		}
		return ignoreUnusable(err)
	}
	for name := range strings.SplitSeq(strings.Trim(x.Path, "/"), "/") {
		if name == "" {
			break
		}
		t.hidesFiles = t.hidesFiles || x.Access == Masked
		t.hidesDirs = t.hidesDirs || x.Access == Empty
		if t.below[name] == nil {
			t.below[name] = newTree()
		}
		t = t.below[name]
	}
	t.rule = &x
	return nil
}

// allow allows in a ruleset what the rules say of path, which is the tree's, and of what is below. a is the access that
// the rules above give. It returns what may be written of it: files, and directories with all that is below.
func (t *tree) allow(set *landlock.Ruleset, path string, a landlock.Access) (writable []string, err error) {
	if t.rule != nil {
		a = accesses[t.rule.Access]
	}
	if a != nothing {
		allowed, err := t.allowAround(set, path, a)
		if err != nil {
			return nil, err
		}
		if a == landlock.Write {
			writable = allowed
		}
	}
	for name, below := range t.below {
		more, err := below.allow(set, filepath.Join(path, name), a)
		if err != nil {
			return nil, err
		}
		writable = append(writable, more...)
	}
	return writable, nil
}

// allowAround allows access to path without what rules below it hide. It returns the paths that it has allowed whole.
func (t *tree) allowAround(set *landlock.Ruleset, path string, a landlock.Access) (whole []string, err error) {
	if !t.hidesFiles && !t.hidesDirs {
		return []string{path}, ignoreUnusable(set.Allow(path, a))
	}
	// Who may list a directory may list all that is below. Names of single files are no secret.
	if !t.hidesDirs {
		if err := ignoreUnusable(set.Allow(path, landlock.List)); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, ignoreUnusable(err)
	}
	for _, e := range entries {
		// What a link leads to has its own rules.
		if t.below[e.Name()] != nil || e.Type()&fs.ModeSymlink != 0 {
			continue
		}
		name := filepath.Join(path, e.Name())
		if err := ignoreUnusable(set.Allow(name, a)); err != nil {
			return nil, err
		}
		whole = append(whole, name)
	}
	return whole, nil
}
