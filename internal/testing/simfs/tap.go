package simfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/durable"
)

// Kind is a kind of call that changes something.
type Kind string

// The kinds of calls.
const (
	Open     Kind = "open" // for writing, of a file that is there
	Create   Kind = "create"
	Mkdir    Kind = "mkdir"
	Rename   Kind = "rename"
	Link     Kind = "link"
	Remove   Kind = "remove"
	Truncate Kind = "truncate"
	Write    Kind = "write"
	Sync     Kind = "sync"
	SyncDir  Kind = "sync directory"
	Lock     Kind = "lock"
)

// Skip as Ask's answer leaves the call out and reports success.
var Skip = errors.New("left out")

// Short as Ask's answer writes half of the data, then fails with Err.
type Short struct{ Err error }

// Error is Err's.
func (s Short) Error() string { return s.Err.Error() }

// Tap is a file system that asks before each call that changes something: an error is what the call answers.
type Tap struct {
	durable.FS
	Ask func(k Kind, name string) error
}

// do asks for a call and makes it unless the answer is an error. Skip reports success without the call.
func (t Tap) do(k Kind, name string, f func() error) error {
	if err := t.Ask(k, name); errors.Is(err, Skip) {
		return nil
	} else if err != nil {
		return err
	}
	return f()
}

// OpenFile asks for Create when the file is not there, for Open when it is there and may be written.
func (t Tap) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		kind := Open
		if _, err := t.FS.Stat(name); err != nil {
			kind = Create
		}
		if kind == Open || flag&os.O_CREATE != 0 {
			if err := t.Ask(kind, name); err != nil && !errors.Is(err, Skip) {
				return nil, err
			}
		}
	}
	f, err := t.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return tapped{f, t, name}, nil
}

// Mkdir asks for Mkdir.
func (t Tap) Mkdir(name string, perm fs.FileMode) error {
	return t.do(Mkdir, name, func() error { return t.FS.Mkdir(name, perm) })
}

// Rename asks for Rename with the new name.
func (t Tap) Rename(from, to string) error {
	return t.do(Rename, to, func() error { return t.FS.Rename(from, to) })
}

// Link asks for Link with the new name.
func (t Tap) Link(from, to string) error {
	return t.do(Link, to, func() error { return t.FS.Link(from, to) })
}

// Remove asks for Remove.
func (t Tap) Remove(name string) error {
	return t.do(Remove, name, func() error { return t.FS.Remove(name) })
}

// Truncate asks for Truncate.
func (t Tap) Truncate(name string, size int64) error {
	return t.do(Truncate, name, func() error { return t.FS.Truncate(name, size) })
}

// SyncDir asks for SyncDir.
func (t Tap) SyncDir(name string) error {
	return t.do(SyncDir, name, func() error { return t.FS.SyncDir(name) })
}

// TryLock asks for Lock if the lock is exclusive. A shared lock writes nothing.
func (t Tap) TryLock(name string, how durable.LockMode) (durable.Locked, error) {
	if how == durable.Exclusive {
		if err := t.Ask(Lock, name); err != nil && !errors.Is(err, Skip) {
			return nil, err
		}
	}
	return t.FS.TryLock(name, how)
}

// tapped is an open file.
type tapped struct {
	durable.File
	t    Tap
	name string
}

// Write asks for Write. The answer Short tears the write in two, as a full disk or a crash would.
func (f tapped) Write(b []byte) (int, error) {
	err := f.t.Ask(Write, f.name)
	var short Short
	switch {
	case errors.As(err, &short):
		n, _ := f.File.Write(b[:len(b)/2])
		return n, short.Err
	case errors.Is(err, Skip):
		return len(b), nil
	case err != nil:
		return 0, err
	}
	return f.File.Write(b)
}

func (f tapped) Sync() error { return f.t.do(Sync, f.name, f.File.Sync) }

// The variants that must fail the tests. Each leaves out what it names.

// NoSync never syncs a file.
func NoSync(under durable.FS) durable.FS { return without(under, Sync) }

// NoSyncDir never syncs a directory.
func NoSyncDir(under durable.FS) durable.FS { return without(under, SyncDir) }

// NoSyncAtAll syncs nothing.
func NoSyncAtAll(under durable.FS) durable.FS { return without(under, Sync, SyncDir) }

// without leaves out the calls of some kinds and reports success for them.
func without(under durable.FS, kinds ...Kind) durable.FS {
	return Tap{under, func(k Kind, _ string) error {
		for _, w := range kinds {
			if k == w {
				return Skip
			}
		}
		return nil
	}}
}

// NoSyncAfterRename does not sync the directory that a file was moved in or linked into.
func NoSyncAfterRename(under durable.FS) durable.FS {
	var dir string
	return Tap{under, func(k Kind, name string) error {
		switch {
		case k == Rename || k == Link:
			dir = filepath.Dir(name)
		case k == SyncDir && name == dir:
			dir = ""
			return Skip
		}
		return nil
	}}
}

// NoTailRepair hides that a file of lines does not end in a newline from who is about to append to it.
func NoTailRepair(under durable.FS) durable.FS { return noRepair{under} }

type noRepair struct{ durable.FS }

func (r noRepair) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	f, err := r.FS.OpenFile(name, flag, perm)
	if err == nil && flag&os.O_APPEND != 0 && strings.HasSuffix(name, ".jsonl") {
		f = ended{f}
	}
	return f, err
}

// ended is a file whose last byte seems to be a newline.
type ended struct{ durable.File }

func (e ended) ReadAt(b []byte, off int64) (int, error) {
	n, err := e.File.ReadAt(b, off)
	if n == 1 {
		b[0] = '\n'
	}
	return n, err
}
