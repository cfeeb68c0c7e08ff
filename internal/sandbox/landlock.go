package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/landlock"
	"muster/internal/proc"
	"muster/internal/text"
)

// startLandlocked starts the program of s under a ruleset and a filter of its calls of the system (package landlock).
func startLandlocked(ctx context.Context, l proc.Launcher, s proc.Spec, r Rules) (proc.Process, error) {
	m, err := r.ruleset()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(m.file)
	s.Ruleset, s.Writable = m.file, m.writable
	return l.Start(ctx, s)
}

// findLandlock tries Landlock. instead is why bubblewrap does not work.
func findLandlock(ctx context.Context, instead error) (*Method, error) {
	fail := func(err error) (*Method, error) {
		return nil, muster.Errorf(muster.Unavailable, "Landlock does not work: %s", text.OneLine(err.Error()))
	}
	switch v := landlock.Version(); {
	case v == 0:
		return fail(errors.New("this kernel has none, or it is switched off"))
	case v < landlock.MinVersion:
		return fail(errors.New("it needs Linux 6.2 or later"))
	}
	m, err := system().ruleset()
	if err != nil {
		return fail(err)
	}
	tried := make(chan error)
	landlock.OnThread(func() {
		err := landlock.Restrict(int(m.file.Fd()), nil)
		if err == nil {
			_, err = try(ctx, []string{"/bin/sh", "-c", "exit 0"})
		}
		tried <- err
	})
	if err := <-tried; err != nil {
		return fail(err)
	}
	lacks := lackNamespaces
	if !landlock.KeepsSignals() {
		lacks += ", and they can send signals to your other processes (Linux 6.12 forbids it)"
	}
	return &Method{Name: "Landlock", Lacks: lacks, Why: strings.TrimPrefix(muster.PlainText(instead), cannotConfine),
		Remedy: muster.HintOf(instead), Start: startLandlocked}, nil
}

// devices are those that every program may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// grant is what a ruleset allows with a path and all that is below it; with others, with all that a directory has but
// the entries of these names. id changes with what the path leads to, and with others when the directory changes.
type grant struct {
	path   string
	access landlock.Access
	id     string
	others []string
}

// made is a ruleset, and what may be written under it: files, and directories with all that is below. The file is
// closed when nothing uses it any more.
type made struct {
	file     *os.File
	writable []string
}

// tick is longer than the steps in which the times of files go on.
var tick = time.Second

// rulesets are the last ones that were made, by their grants.
var rulesets, rulesetLock = map[string]made{}, new(sync.Mutex)

// ruleset returns the ruleset of the rules, which others use too.
func (r Rules) ruleset() (m made, err error) {
	if r, err = r.here(); err != nil {
		return m, errConfining(err)
	}
	// Of other processes Landlock shows what ps shows, and neither their memory nor their environment.
	all := append(r.grants("/", nothing), grant{path: "/proc", access: landlock.Read})
	for _, path := range devices {
		all = append(all, grant{path: path, access: landlock.Device})
	}
	var key strings.Builder
	for _, x := range all {
		fmt.Fprintf(&key, "%q %d %s %q\n", x.path, x.access, x.id, x.others)
	}
	rulesetLock.Lock()
	defer rulesetLock.Unlock()
	if m, ok := rulesets[key.String()]; ok {
		return m, nil // most programs have the rules of the one before
	}
	set, err := landlock.New()
	if err != nil {
		return m, errConfining(err)
	}
	m.file = set.File
	allow := func(path string, a landlock.Access) error {
		if a == landlock.Write {
			m.writable = append(m.writable, path)
		}
		// What is not there, or not the user's to look at, is no loss.
		if err := set.Allow(path, a); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	for _, x := range all {
		paths := []string{x.path}
		if x.others != nil {
			paths = others(x.path, x.others)
		}
		for _, path := range paths {
			if err := allow(path, x.access); err != nil {
				_ = set.Close()
				return made{}, errConfining(err)
			}
		}
	}
	if len(rulesets) == 16 {
		clear(rulesets)
	}
	rulesets[key.String()] = m
	return m, nil
}

// nothing is the access to what no rule allows.
const nothing = landlock.Access(-1)

// accesses are what the kinds of access of rules are to Landlock.
var accesses = map[Access]landlock.Access{Read: landlock.Read, Write: landlock.Write, Empty: nothing, Masked: nothing}

// grants returns what rules allow of path and of what is below. They are for nothing else, in the order of resolved,
// without links. a is the access that the rules above give. Landlock only ever allows: where a part of a directory is
// to be left out, all others are named, as they are now.
func (r Rules) grants(path string, a landlock.Access) (all []grant) {
	if len(r) > 0 && r[0].Path == path {
		a, r = accesses[r[0].Access], r[1:]
	}
	entries := map[string]Rules{} // by the name of the entry of path that they are for, or below
	for _, x := range r {
		name, _, _ := strings.Cut(strings.TrimPrefix(x.Path[len(path):], "/"), "/")
		entries[name] = append(entries[name], x)
	}
	names := slices.Sorted(maps.Keys(entries))
	hide := func(a Access) bool { return slices.ContainsFunc(r, func(x Rule) bool { return x.Access == a }) }
	switch {
	case a == nothing:
	case hide(Empty): // who may list a directory may list all that is below
		all = []grant{{path, a, changed(path), names}}
	case hide(Masked): // their names are no secret
		all = []grant{{path, a, changed(path), names}, {path, landlock.List, identity(path), nil}}
	default:
		all = []grant{{path, a, identity(path), nil}}
	}
	for _, name := range names {
		all = append(all, entries[name].grants(filepath.Join(path, name), a)...)
	}
	return all
}

// others returns what is in a directory besides entries of these names. What a link leads to has its own rules.
func others(dir string, names []string) (paths []string) {
	there, _ := os.ReadDir(dir) // what cannot be read needs no rules
	for _, e := range there {
		if _, isNamed := slices.BinarySearch(names, e.Name()); !isNamed && e.Type()&fs.ModeSymlink == 0 {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}
