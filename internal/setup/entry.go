package setup

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/internal/durable"
)

// The names in the store: the directory of all entries in the user's cache, and what lies in an entry. The time of
// entryFile is when the entry was used last.
const (
	entriesDir      = "setups"
	contentDir      = "content"
	entryFile       = "entry.json"
	temporaryPrefix = "new-"
)

// The bounds of what is kept. The newest entries are never removed while they may be in use.
const (
	maxBytes      = 10 << 30 // of all entries
	maxEntryBytes = 4 << 30
	maxEntryFiles = 400_000
	maxAge        = 30 * 24 * time.Hour // since the last use
	inUse         = time.Hour
	maxEntryFile  = 1 << 20
)

// Entry is the kept result of a set-up.
type Entry struct {
	Command string    `json:"command"`
	Repo    string    `json:"repo"`           // the root of its repository
	Path    string    `json:"path,omitempty"` // where it works only; "": everywhere
	Roots   []string  `json:"roots"`          // what the set-up has made
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Made    time.Time `json:"made"`

	Used time.Time `json:"-"`
	dir  string
}

// Entries returns all entries in the user's cache, those that were used last first. One that cannot be read is among
// them, so that it can be removed.
func Entries(cache string) []Entry { return entries(filepath.Join(cache, entriesDir)) }

// Dir returns where an entry lies.
func (e Entry) Dir() string { return e.dir }

// Remove removes an entry. One that is being put into a checkout is then not put, and the set-up runs.
func (e Entry) Remove() error { return durable.RemoveAll(e.dir) }

// entries returns the entries below root.
func entries(root string) (all []Entry) {
	for _, dir := range durable.Glob(root, "*") {
		for _, path := range durable.Glob(dir, "*") {
			e, err := readEntry(path)
			if info, errStat := os.Lstat(path); err != nil && errStat == nil {
				e = Entry{dir: path, Used: info.ModTime()}
			} else if errStat != nil {
				continue
			}
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return all
}

// readEntry reads the entry in a directory.
func readEntry(dir string) (e Entry, err error) {
	path := filepath.Join(dir, entryFile)
	info, err := os.Lstat(path)
	if err != nil {
		return e, err
	}
	data, err := durable.ReadBelow(dir, path, maxEntryFile)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	e.dir, e.Used = dir, info.ModTime()
	return e, err
}

// content returns where the files of an entry are.
func (e Entry) content() string { return filepath.Join(e.dir, contentDir) }

// find returns the entry with a key that can be put into dir, and notes that it is used.
func (s *Store) find(key, dir string) (e Entry, ok bool) {
	// Which of the two there is depends on what the set-up made when it ran last. An entry may be removed at any time:
	// whoever then cannot read it runs the set-up.
	for _, name := range []string{key, boundKey(key, dir)} {
		e, err := readEntry(filepath.Join(s.dir, name))
		if err == nil && (e.Path == "" || e.Path == dir) {
			now := time.Now()
			_ = os.Chtimes(filepath.Join(e.dir, entryFile), now, now) // it may be removed sooner
			return e, true
		}
	}
	return e, false
}

// tidy removes what is too old or too much, and what dead processes left half made. What was used in the last hour
// stays: it may be in use.
func tidy(root string, now time.Time) (err error) {
	// The entries come in the order of their last use, so the sum passes the limit at those that were used longest ago.
	// An entry that cannot be read counts as half made: no process will ever use it, and it has no size to count.
	sum := int64(0)
	for _, e := range entries(root) {
		sum += e.Bytes
		idle := now.Sub(e.Used)
		isHalf := strings.HasPrefix(filepath.Base(e.dir), temporaryPrefix)
		if idle > maxAge || idle > inUse && (isHalf || e.Roots == nil || sum > maxBytes) {
			err = errors.Join(err, e.Remove())
		}
	}
	return err
}
