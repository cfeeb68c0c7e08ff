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
	"muster/internal/durable"
	"muster/internal/landlock"
	"muster/internal/proc"
	"muster/internal/text"
)

// startLandlocked starts the program of s under a ruleset and a filter of its calls of the system (package landlock).
func startLandlocked(ctx context.Context, l proc.Launcher, s proc.Spec, r Rules) (proc.Process, error) {
	file, writable, err := r.ruleset()
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(file)
	s.Ruleset, s.Writable = file, writable
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
	file, _, err := system().ruleset()
	if err != nil {
		return fail(err)
	}
	tried := make(chan error)
	landlock.OnThread(func() {
		err := landlock.Restrict(int(file.Fd()), nil)
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

// grant is what a ruleset allows with a path and all that is below it. id changes with what the path leads to.
type grant struct {
	path   string
	access landlock.Access
	id     string
}

// rulesets are the last ones that were made, by their grants. A file is closed when nothing uses it any more.
var rulesets, rulesetLock = map[string]*os.File{}, new(sync.Mutex)

// ruleset returns the ruleset of the rules, whose file others use too, and what may be written: files, and directories
// with all that is below.
func (r Rules) ruleset() (file *os.File, writable []string, err error) {
	if r, err = r.here(); err != nil {
		return nil, nil, errConfining(err)
	}
	// Of other processes Landlock shows what ps shows, and neither their memory nor their environment.
	all := append(r.grants("/", nothing), grant{"/proc", landlock.Read, ""})
	for _, path := range devices {
		all = append(all, grant{path, landlock.Device, ""})
	}
	for _, x := range all {
		if x.access == landlock.Write {
			writable = append(writable, x.path)
		}
	}
	rulesetLock.Lock()
	defer rulesetLock.Unlock()
	key := fmt.Sprint(all)
	if file = rulesets[key]; file != nil {
		return file, writable, nil // most programs have the rules of the one before
	}
	set, err := landlock.New()
	if err != nil {
		return nil, nil, errConfining(err)
	}
	for _, x := range all {
		// What is not there, or not the user's to look at, is no loss.
		err := set.Allow(x.path, x.access)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			_ = set.Close()
			return nil, nil, errConfining(err)
		}
	}
	if len(rulesets) == 16 {
		clear(rulesets)
	}
	rulesets[key] = set.File
	return set.File, writable, nil
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
	hide := func(a Access) bool { return slices.ContainsFunc(r, func(x Rule) bool { return x.Access == a }) }
	switch {
	case a == nothing:
	case hide(Empty): // who may list a directory may list all that is below
		all = others(path, entries, a)
	case hide(Masked): // their names are no secret
		all = append(others(path, entries, a), grant{path, landlock.List, identity(path)})
	default:
		all = []grant{{path, a, identity(path)}}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, entries[name].grants(filepath.Join(path, name), a)...)
	}
	return all
}

// others grants what is in a directory besides entries with rules. What a link leads to has its own rules.
func others(dir string, entries map[string]Rules, a landlock.Access) (all []grant) {
	id := time.Now().String() // the time of a change is that of the last tick, so a second one may have the same
	if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Second {
		id, _ = durable.ChangeOf(info)
	}
	there, _ := os.ReadDir(dir) // what cannot be read needs no rules
	for _, e := range there {
		if entries[e.Name()] == nil && e.Type()&fs.ModeSymlink == 0 {
			all = append(all, grant{filepath.Join(dir, e.Name()), a, id})
		}
	}
	return all
}
