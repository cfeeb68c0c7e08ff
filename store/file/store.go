// Package file implements the state contracts of package muster on plain files, which people can read and other
// programs can write, too.
//
// Open returns a Store; everything else is reached through the interfaces of package muster. Behind them:
//
//   - table, cache: documents, and what changed in them
//   - logs, segmentedLog: streams as files of lines, each with a checksum
//   - boxes, box: mail, with a live file and segments for each inbox
//   - leases: which processes live
//   - keeper: what other programs change while this process hosts members is undone
//   - watcher: hints that something changed
//   - groups: appends of several goroutines as one write
//
// The files are the only truth. What is kept in memory is a cache of them. A write is on the disk when its method
// returns, except for AppendSoon. Every step survives a crash and a power loss at any point. Programs that know nothing
// of our locks may write beside us: while no process hosts members their documents are read as they are, otherwise only
// new documents and mail are taken in. All writing goes through package durable; what the documents mean is not known
// here.
//
// Compatibility: Open, Close and the interfaces stay, and so do the files: a newer version reads what an older one
// wrote.
package file

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
)

// Store is the state of one repository in one process. It implements muster.Store.
type Store struct {
	// OnReject, if set, is called for every line in an inbox that is no mail, after the line was copied to
	// NAME.rejected.jsonl, and with the path of every file of an inbox that cannot be read. It is called once for
	// each, whichever process finds it. Set it before the first Peek.
	OnReject func(box muster.Name, line []byte, why string)

	// Logger, when it is set, is told when the system's file watcher fails; the state is then looked at every few
	// seconds. Set it before the first watch.
	Logger *slog.Logger

	files  *durable.Files
	fs     durable.FS
	dir    paths.Dir
	watch  *watcher
	boxes  boxes
	groups groups
	keeper keeper

	rotateAt    int64 // bytes: how large a rotated file is, at least
	keepRotated int64 // bytes: how much of rotated files is kept, at least

	mu     sync.Mutex
	tables map[string]*table
	held   map[*lease]bool
	probed bool
	closed bool
}

// Open opens the state of the repository whose main worktree has this root. It creates nothing; the first write does.
func Open(root string) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "where this program runs cannot be found: %w", err)
	}
	return openOn(durable.New(durable.OS{Root: root}), root)
}

// openOn is Open on the given Files and an absolute root. Tests use it with a simulated file system.
func openOn(files *durable.Files, root string) (*Store, error) {
	if fi, err := files.FS().Stat(root); err != nil || !fi.IsDir() {
		return nil, muster.Errorf(muster.NotFound, "%s is not a directory that can be read", root)
	}
	s := &Store{
		files:  files,
		fs:     files.FS(),
		dir:    paths.Dir(root),
		tables: map[string]*table{},
		held:   map[*lease]bool{},
		groups: groups{waiting: map[string][]*groupPart{}},

		rotateAt: rotateAt, keepRotated: keepRotated,
	}
	s.watch = newWatcher(s.fs, root, func(err error) {
		if s.Logger != nil {
			s.Logger.Warn("watcher failed", "dir", root, "err", err)
		}
	})
	s.keeper.s = s
	s.boxes = boxes{store: s, grace: segmentGrace, byName: map[muster.Name]*box{}}
	return s, nil
}

// BeforeMakeDir sets what is called before the store makes a directory; an error of it refuses the write. The first
// write makes one. Call it before that.
func (s *Store) BeforeMakeDir(f func() error) { s.files.BeforeMakeDir = f }

// OnOverwrite sets what is called after this process has put back its version of a document, with the document that it
// found and the file, relative to the root. Its Data is nil if the file was gone. Of several processes that find a
// change, one puts back. Calls may overlap. Call OnOverwrite before the first lease is acquired.
func (s *Store) OnOverwrite(report func(table, file string, found muster.Doc)) {
	s.keeper.report = report
}

// Root returns the directory that the store was opened in, absolute.
func (s *Store) Root() string { return string(s.dir) }

// Table returns the table of that name.
func (s *Store) Table(name string) muster.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil {
		t = newTable(s, name)
		s.tables[name] = t
	}
	return t
}

// Log returns the streams.
func (s *Store) Log() muster.Log { return logs{s} }

// Inbox returns the inboxes.
func (s *Store) Inbox() muster.Inbox { return &s.boxes }

// Leases returns the leases.
func (s *Store) Leases() muster.Leases { return leases{s} }

// Close ends the watches and releases the leases. What was written stays.
func (s *Store) Close() error {
	// The leases are taken out under the lock and freed after it, so that a Release at the same time frees none twice.
	s.mu.Lock()
	held := s.held
	s.held, s.closed = map[*lease]bool{}, true
	s.mu.Unlock()
	s.boxes.close()
	s.watch.close()
	var errs []error
	for l := range held {
		errs = append(errs, l.end())
	}
	return errors.Join(errs...)
}

// lock waits for one of the store's locks.
func (s *Store) lock(ctx context.Context, name ...string) (unlock func(), err error) {
	return s.lockFile(ctx, s.lockPath(name...))
}

// lockFile waits for the lock of a file.
func (s *Store) lockFile(ctx context.Context, path string) (unlock func(), err error) {
	if err := s.probe(); err != nil {
		return nil, err
	}
	return s.files.Lock(ctx, path)
}

// lockPath returns the file of a lock.
func (s *Store) lockPath(name ...string) string {
	return filepath.Join(append([]string{s.dir.Locks()}, name...)...) + ".lock"
}

// probe checks, before the first lock is taken, whether locks work on this file system. Where they do not, two
// processes could take the same task.
func (s *Store) probe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probed {
		return nil
	}
	err := s.files.ProbeLocks(s.dir.Locks())
	s.probed = err == nil
	return err
}

// checkName requires keys of documents and names of streams, inboxes and leases to be valid file names on every
// system. It uses no regular expression, because compiling one would add half a millisecond to every start of the
// program.
func checkName(what, name string) error {
	ok := name != "" && len(name) <= 100 && !strings.ContainsAny(name[:1], ".-")
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !ok {
		return muster.Errorf(muster.Invalid, "%q cannot be %s: use letters, digits, dots, hyphens and underscores",
			name, what)
	}
	return nil
}
