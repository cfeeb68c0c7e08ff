package check

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
)

// cacheVariables are the variables by which programs are told where to keep what they can make again, with the
// directories that they get. A check has caches of its own: in those of the user, which the commands of lanes write,
// an agent could leave the result of a test that never ran.
//
// What is not here stays the user's: stores of downloads that are compared with the sums in a lock file of the tree
// (modules of Go, crates, packages of npm), and large downloads that checks cannot get again.
var cacheVariables = map[string]string{
	"XDG_CACHE_HOME": "xdg", "GOCACHE": "go-build", "GOLANGCI_LINT_CACHE": "golangci-lint", "PIP_CACHE_DIR": "pip",
	"UV_CACHE_DIR": "uv", "POETRY_CACHE_DIR": "poetry", "RUFF_CACHE_DIR": "ruff",
	"MYPY_CACHE_DIR": "mypy", "CCACHE_DIR": "ccache", "SCCACHE_DIR": "sccache", "TURBO_CACHE_DIR": "turbo",
	"YARN_CACHE_FOLDER": "yarn", "COMPOSER_CACHE_DIR": "composer",
}

// downloads are the variables of large downloads that lie in the user's cache by default, with their directories there.
var downloads = map[string]string{
	"PLAYWRIGHT_BROWSERS_PATH": "ms-playwright", "CYPRESS_CACHE_FOLDER": "Cypress", "HF_HOME": "huggingface",
	"electron_config_cache": "electron", "DENO_DIR": "deno",
}

// cacheEnv returns the variables that lead programs to the caches of checks.
func cacheEnv(cache string, env []string) (set []string) {
	if cache == "" {
		return nil
	}
	for name, dir := range cacheVariables {
		// A build cache of Go that the user names holds: without it the standard library is compiled once more.
		if name != "GOCACHE" || lookUp(env, name) == "" {
			set = append(set, name+"="+filepath.Join(cache, dir))
		}
	}
	users := cmp.Or(lookUp(env, "XDG_CACHE_HOME"), filepath.Join(lookUp(env, "HOME"), ".cache"))
	for name, dir := range downloads {
		if dir = filepath.Join(users, dir); lookUp(env, name) == "" && !durable.IsMissing(dir) {
			set = append(set, name+"="+dir)
		}
	}
	slices.Sort(set)
	return set
}

// lookUp returns the value of a variable; "" where it is not set.
func lookUp(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Entry is what checks of one repository keep: their directories, and the caches of their builds and tests.
type Entry struct {
	Path       string    // the directory
	Repository string    // the root of the repository; it may be gone
	Size       int64     // bytes
	Used       time.Time // when a check began there last
}

// Caches lists what is kept below root for checks, the one that was used last first.
func Caches(root string) []Entry {
	dirs, _ := os.ReadDir(root) // there may be none
	var all []Entry
	for _, d := range dirs {
		path := filepath.Join(root, d.Name())
		text, err := durable.ReadRegular(filepath.Join(path, "repository"), 1<<16)
		info, errInfo := os.Stat(filepath.Join(path, "repository"))
		if err != nil || errInfo != nil {
			continue
		}
		e := Entry{Path: path, Repository: strings.TrimSuffix(string(text), "\n"), Used: info.ModTime()}
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					e.Size += info.Size()
				}
			}
			return nil
		})
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return all
}

// EntryOf returns what checks of one repository keep below root, without its size.
func EntryOf(root, repository string) Entry {
	return Entry{Path: repositoryDir(root, repository), Repository: repository}
}

// An entry is removed as a whole: the list of a slot's files, its index and its checkout belong together, and a cache
// is of use only with the paths of the slots. Whoever runs a check there holds the lock of a slot, and one who comes
// while it is being removed waits for none: it finds all locks held, and takes a temporary directory.

// Remove removes the entry. The error is Held while a check runs there.
func (e Entry) Remove() error {
	files := durable.New(durable.OS{})
	// Whoever has all locks is alone. Lock files stay: another process may just be opening one.
	for n := 1; n <= maxSlots; n++ {
		unlock, err := files.TryLock(slotLock(e.Path, n))
		if errors.Is(err, muster.ErrHeld) {
			return muster.Errorf(muster.Held, "a check of %s is running", e.Repository)
		} else if err != nil {
			return err
		}
		defer func() { _ = unlock() }()
	}
	entries, err := os.ReadDir(e.Path)
	for _, d := range entries {
		switch path := filepath.Join(e.Path, d.Name()); {
		case strings.HasSuffix(d.Name(), ".lock"):
		case d.IsDir():
			err = errors.Join(err, durable.RemoveAll(path))
		default:
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// What checks keep is bounded: all of it together, and how long one entry stays that nobody uses.
const (
	maxKept  = 20 << 30
	keptFor  = 30 * 24 * time.Hour
	trimming = 24 * time.Hour // how often that is looked at
)

// trim removes what is kept below root for too long, and the entries that were used longest ago while there is too
// much. It looks once a day, because it takes long where there are many files.
func trim(root string, now time.Time) {
	mark := filepath.Join(root, "trimmed")
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()) < trimming {
		return
	}
	if os.WriteFile(mark, nil, 0o600) != nil {
		return
	}
	sum := int64(0)
	for _, e := range Caches(root) {
		if sum += e.Size; sum > maxKept || now.Sub(e.Used) > keptFor {
			_ = e.Remove() // one that is in use stays
		}
	}
}
