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
	"muster/internal/proc"
)

// cacheVariables are the variables by which programs are told where to keep what they can make again, with the
// directories that they get. A check has caches of its own: in those of the user, which the commands of lanes write,
// an agent could leave the result of a test that never ran.
//
// What is not here stays the user's: stores of downloads that are compared with the sums in a lock file of the tree
// (modules of Go, crates, packages of npm), and large downloads that checks cannot get again.
var cacheVariables = map[string]string{
	"XDG_CACHE_HOME": "xdg", "GOLANGCI_LINT_CACHE": "golangci-lint", "PIP_CACHE_DIR": "pip",
	"UV_CACHE_DIR": "uv", "POETRY_CACHE_DIR": "poetry", "RUFF_CACHE_DIR": "ruff",
	"MYPY_CACHE_DIR": "mypy", "CCACHE_DIR": "ccache", "SCCACHE_DIR": "sccache", "TURBO_CACHE_DIR": "turbo",
	"YARN_CACHE_FOLDER": "yarn", "COMPOSER_CACHE_DIR": "composer", "DENO_DIR": "deno",
	// Files in checkouts may be hard links to these, and who changes the one changes the other.
	"BUN_INSTALL_CACHE_DIR": "bun",
}

// sharedBuilds are the variables with which users let several checkouts build in one place. A check builds in a place
// of its own where they are set; without them it builds in its checkout, or in a cache from above.
var sharedBuilds = map[string]string{
	"CARGO_TARGET_DIR": "cargo-target", "CARGO_BUILD_TARGET_DIR": "cargo-target",
	"CARGO_BUILD_BUILD_DIR": "cargo-build",
	"PYTHONPYCACHEPREFIX":   "pycache", "NODE_COMPILE_CACHE": "node-compile", "ZIG_GLOBAL_CACHE_DIR": "zig",
	"ZIG_LOCAL_CACHE_DIR": "zig-local", "MIX_BUILD_ROOT": "mix-build", "NX_CACHE_DIRECTORY": "nx",
}

// withheldCaches are programs and servers that keep results for whoever asks, lanes too.
var withheldCaches = []string{"GOCACHEPROG", "CCACHE_REMOTE_STORAGE", "CCACHE_SECONDARY_STORAGE", "GOTMPDIR"}

// downloads are the variables of large downloads that lie in the user's cache by default, with their directories there.
var downloads = map[string]string{
	"PLAYWRIGHT_BROWSERS_PATH": "ms-playwright", "CYPRESS_CACHE_FOLDER": "Cypress", "HF_HOME": "huggingface",
	"electron_config_cache": "electron",
}

// withCaches returns the environment of a check whose checkout is in dir: its programs are led to the caches of checks.
// builds is the build cache of Go. All repositories share it, because each new one would have to compile the standard
// library first, which takes a minute of processor time.
func withCaches(env []string, cache, builds, dir string) []string {
	set := []string{"GOCACHE=" + builds}
	for name, dir := range cacheVariables {
		set = append(set, name+"="+filepath.Join(cache, dir))
	}
	for name, dir := range sharedBuilds {
		if proc.Variable(env, name) != "" {
			set = append(set, name+"="+filepath.Join(cache, dir))
		}
	}
	// The files of pnpm's packages are hard links into its store. npm warns of the variable, so it is set only where
	// pnpm is used.
	if !durable.IsMissing(filepath.Join(dir, "pnpm-lock.yaml")) {
		set = append(set, "npm_config_store_dir="+filepath.Join(cache, "pnpm"))
	}
	users := cmp.Or(proc.Variable(env, "XDG_CACHE_HOME"), filepath.Join(proc.Variable(env, "HOME"), ".cache"))
	for name, dir := range downloads {
		if dir = filepath.Join(users, dir); proc.Variable(env, name) == "" && !durable.IsMissing(dir) {
			set = append(set, name+"="+dir)
		}
	}
	slices.Sort(set)
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(withheldCaches, name)
	})
	return proc.WithVariables(env, set...)
}

// GoCache returns the build cache of Go that the checks of all repositories have, below the root of what checks keep.
func GoCache(root string) string { return filepath.Join(root, "go-build") }

// Entry is what checks of one repository keep: their directories, and the caches of their builds and tests.
type Entry struct {
	Path       string    // the directory
	Repository string    // the root of the repository; it may be gone. "": the build cache of Go, which all share
	Size       int64     // bytes
	Used       time.Time // when a check began there last
}

// Caches lists what is kept below root for checks, the one that was used last first.
func Caches(root string) []Entry {
	dirs, _ := os.ReadDir(root) // there may be none
	var all []Entry
	for _, d := range dirs {
		// A link was put there by somebody else, and what it leads to is not muster's to remove.
		if !d.IsDir() {
			continue
		}
		path := filepath.Join(root, d.Name())
		used := filepath.Join(path, "repository")
		if path == GoCache(root) {
			used = filepath.Join(path, "trim.txt") // go writes it once a day
		}
		text, err := durable.ReadRegular(used, 1<<16)
		info, errInfo := os.Stat(used)
		if err != nil || errInfo != nil {
			continue
		}
		e := Entry{Path: path, Repository: strings.TrimSuffix(string(text), "\n"), Used: info.ModTime()}
		if path == GoCache(root) {
			e.Repository = ""
		}
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
	users := []Entry{e}
	if e.Repository == "" {
		users = slices.DeleteFunc(Caches(filepath.Dir(e.Path)), func(e Entry) bool { return e.Repository == "" })
	}
	files := durable.New(durable.OS{})
	// Whoever has all locks is alone. Lock files stay: another process may just be opening one.
	for _, user := range users {
		for n := 1; n <= maxSlots; n++ {
			unlock, err := files.TryLock(slotLock(user.Path, n))
			if errors.Is(err, muster.ErrHeld) {
				return muster.Errorf(muster.Held, "a check of %s is running", user.Repository)
			} else if err != nil {
				return err
			}
			defer func() { _ = unlock() }()
		}
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
