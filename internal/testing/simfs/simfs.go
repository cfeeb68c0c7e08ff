// Package simfs is a file system in memory that loses power: it records what the state asks of durable.FS, and lists
// every content that a disk could have afterwards. Tests open each and look whether what was promised holds.
//
// The model is what POSIX allows, and so more than ext4 does. It follows "All File Systems Are Not Created Equal"
// (Pillai et al., OSDI 2014; ALICE), which splits calls into small updates that may persist in any order unless a sync
// stands between, and "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing" (Mohan et al., OSDI 2018;
// CrashMonkey), which tries the states after each call:
//   - What was written to a file is lost, or there, or there in part (cut at any byte; sectors of it zero), or its size
//     alone is there, and zeros, each write by itself, until the file is synced.
//   - A name that was made, moved or removed is so on the disk or not, each by itself, until its directory is synced.
//     Changes of one name keep their order. A move within a directory is one update; to another directory it is two,
//     the new name first.
//   - To sync a file makes its content durable and not its name; to sync a directory makes its names durable, and
//     neither the contents nor its own name.
//
// Options.Journal asks for less: what ext4, XFS and others with a journal allow, where names persist in their order.
//
// Lock files are outside the model: they hold no state, and none is left after a loss of power.
//
// Read simfs.go and handle.go (the file system), record.go (the updates), crash.go and choice.go (what is left of
// them), tap.go (faults, and the deliberately broken variants).
package simfs

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster/internal/durable"
)

// FS is a file system. It implements durable.FS; its root directory exists. Paths are slash paths on every system.
type FS struct {
	mu    sync.Mutex
	root  *node
	locks map[string]int // readers, or -1 for one writer
	made  map[string]bool

	base  map[*node]*image // what the disk has before the first record
	calls []call
}

// node is a file or a directory, as the system has it in memory.
type node struct {
	dir     bool
	data    []byte
	entries map[string]*node
	changed time.Time
}

// New is an empty file system, all of which is on the disk.
func New() *FS {
	f := &FS{root: newNode(true), locks: map[string]int{}, made: map[string]bool{}}
	f.Settle()
	return f
}

func newNode(dir bool) *node {
	n := &node{dir: dir, changed: time.Now()}
	if dir {
		n.entries = map[string]*node{}
	}
	return n
}

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// split takes a path apart. Windows' tests write C:\x as well.
func split(name string) []string {
	name = path.Clean("/" + strings.TrimPrefix(filepath.ToSlash(name), filepath.VolumeName(name)))
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}

func (f *FS) find(name string) (*node, error) {
	at := f.root
	for _, part := range split(name) {
		if !at.dir {
			return nil, syscall.ENOTDIR
		}
		next := at.entries[part]
		if next == nil {
			return nil, syscall.ENOENT
		}
		at = next
	}
	return at, nil
}

// parent is the directory of a name, and its last part.
func (f *FS) parent(name string) (*node, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", syscall.EINVAL
	}
	dir, err := f.find(path.Join(parts[:len(parts)-1]...))
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	return dir, parts[len(parts)-1], err
}

// OpenFile opens a file.
func (f *FS) OpenFile(name string, flag int, _ fs.FileMode) (durable.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, base, err := f.parent(name)
	if err != nil {
		return nil, fail("open", name, err)
	}
	n := dir.entries[base]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, fail("open", name, syscall.ENOENT)
	case n == nil:
		n = newNode(false)
		f.rename("create "+name, edit{dir, base, n})
	case flag&os.O_EXCL != 0 && flag&os.O_CREATE != 0:
		return nil, fail("open", name, syscall.EEXIST)
	case n.dir && flag&(os.O_WRONLY|os.O_RDWR) != 0:
		return nil, fail("open", name, syscall.EISDIR)
	}
	if flag&os.O_TRUNC != 0 && len(n.data) > 0 {
		f.resize(name, n, 0)
	}
	return &handle{fs: f, node: n, name: name, flag: flag}, nil
}

// Mkdir makes a directory.
func (f *FS) Mkdir(name string, _ fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, base, err := f.parent(name)
	if err == nil && dir.entries[base] != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return fail("mkdir", name, err)
	}
	f.rename("mkdir "+name, edit{dir, base, newNode(true)})
	return nil
}

// ReadDir lists a directory by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, fail("readdir", name, err)
	}
	var out []fs.DirEntry
	for base, child := range n.entries {
		out = append(out, fs.FileInfoToDirEntry(infoOf(base, child)))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return out, nil
}

// Names lists a directory, sorted.
func (f *FS) Names(dir string) ([]string, error) {
	entries, err := f.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Stat describes a file.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name)
	if err != nil {
		return nil, fail("stat", name, err)
	}
	return infoOf(path.Base(filepath.ToSlash(name)), n), nil
}

// Rename gives a file another name, over a file that has it.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	source, old, err := f.parent(from)
	if err != nil {
		return fail("rename", from, err)
	}
	target, base, err := f.parent(to)
	if err == nil && source.entries[old] == nil {
		err = syscall.ENOENT
	}
	if err != nil {
		return fail("rename", to, err)
	}
	n, there := source.entries[old], target.entries[base]
	if there == n {
		return nil
	}
	if there != nil && (there.dir || n.dir) {
		return fail("rename", to, syscall.EEXIST)
	}
	f.rename("rename "+from+" to "+to, edit{target, base, n}, edit{source, old, nil})
	return nil
}

// Link gives a file a second name.
func (f *FS) Link(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(from)
	if err == nil && n.dir {
		err = syscall.EPERM
	}
	if err != nil {
		return fail("link", from, err)
	}
	dir, base, err := f.parent(to)
	if err == nil && dir.entries[base] != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return fail("link", to, err)
	}
	f.rename("link "+from+" to "+to, edit{dir, base, n})
	return nil
}

// Remove removes a file, or a directory that is empty.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, base, err := f.parent(name)
	if err == nil {
		if n := dir.entries[base]; n == nil {
			err = syscall.ENOENT
		} else if len(n.entries) > 0 {
			err = syscall.ENOTEMPTY
		}
	}
	if err != nil {
		return fail("remove", name, err)
	}
	f.rename("remove "+name, edit{dir, base, nil})
	return nil
}

// Truncate cuts a file, or fills it with zeros.
func (f *FS) Truncate(name string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name)
	if err == nil && n.dir {
		err = syscall.EISDIR
	}
	if err != nil {
		return fail("truncate", name, err)
	}
	f.resize(name, n, size)
	return nil
}

// SyncDir makes the names in a directory durable.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fail("sync", name, err)
	}
	f.calls = append(f.calls, call{text: "sync directory " + name, sync: n})
	return nil
}

// TryLock locks a name. The file is no file here: see the package.
func (f *FS) TryLock(name string, how durable.LockMode) (durable.Locked, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, _, err := f.parent(name); err != nil {
		return nil, fail("lock", name, err)
	}
	if how == durable.Shared && !f.made[name] {
		return nil, fail("lock", name, syscall.ENOENT)
	}
	f.made[name] = true
	switch n := f.locks[name]; {
	case n < 0 || n > 0 && how == durable.Exclusive:
		return nil, durable.ErrLocked
	case how == durable.Exclusive:
		f.locks[name] = -1
	default:
		f.locks[name]++
	}
	return &locked{fs: f, name: name, how: how}, nil
}

// locked is a lock that is held.
type locked struct {
	fs   *FS
	name string
	how  durable.LockMode
	done bool
}

// Close gives the lock back.
func (l *locked) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	switch {
	case l.done:
		return fs.ErrClosed
	case l.how == durable.Exclusive:
		delete(l.fs.locks, l.name)
	default:
		l.fs.locks[l.name]--
	}
	l.done = true
	return nil
}

// Note does nothing.
func (l *locked) Note(string) {}

// info describes a node.
type info struct {
	name string
	size int64
	dir  bool
	at   time.Time
}

func infoOf(name string, n *node) info { return info{name, int64(len(n.data)), n.dir, n.changed} }

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.at }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }

// Mode is a private file's or directory's.
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
