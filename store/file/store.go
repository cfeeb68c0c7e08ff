// Package file is the state contracts on plain files, which people read and other programs write too.
//
// Read table.go (documents), changes.go (what changed, without reading everything again), snapshot.go (what earlier
// processes saw), log.go, rotate.go and line.go (streams, their files and checksums), inbox.go, segment.go and reject.go
// (mail), group.go (appends of several goroutines at once), leases.go (who lives), watch.go (hints).
package file

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
)

// Store is the state of one repository, as one process has it. It implements muster.Store.
type Store struct {
	// OnReject, when it is set, is told of every line in an inbox that is no mail, after the line was set aside in
	// NAME.rejected.jsonl, and of every file of one, by its path, that cannot be read. It is called once for a line, whoever finds it. Set it before the first Peek.
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

	snapshotFrom int   // how many documents are worth a snapshot
	rotateAt     int64 // bytes: how large a rotated file is, at least

	mu     sync.Mutex
	tables map[string]*table
	held   map[*lease]bool
	probed bool
	ended  bool
}

// Open opens the state of the repository whose main worktree has this root. It makes nothing: the first write does.
func Open(root string) (*Store, error) { return OpenOn(durable.New(durable.OS{}), root) }

// OpenOn is Open on Files that other rooms of this process share, or on another file system.
func OpenOn(files *durable.Files, root string) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "where this program runs cannot be found: %w", err)
	}
	if fi, err := files.FS().Stat(root); err != nil || !fi.IsDir() {
		return nil, muster.Errorf(muster.NotFound, "%s is not a directory that can be read", root)
	}
	s := &Store{
		files:  files,
		fs:     files.FS(),
		dir:    paths.Dir(root),
		tables: map[string]*table{},
		held:   map[*lease]bool{},

		snapshotFrom: 4 * many, rotateAt: rotateAt,
	}
	s.watch = newWatcher(s.fs, root)
	s.watch.failing = func(err error) {
		if s.Logger != nil {
			s.Logger.Warn("watcher failed", "dir", root, "err", err)
		}
	}
	s.boxes = boxes{store: s, grace: grace, known: map[muster.Name]*box{}}
	return s, nil
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

// Inbox returns the boxes.
func (s *Store) Inbox() muster.Inbox { return &s.boxes }

// Leases returns the leases.
func (s *Store) Leases() muster.Leases { return leases{s} }

// Close ends the watches and releases the leases. What was written stays.
func (s *Store) Close() error {
	s.mu.Lock()
	held := s.held
	s.held, s.ended = map[*lease]bool{}, true
	s.mu.Unlock()
	s.boxes.close()
	s.watch.close()
	var first error
	for l := range held {
		if err := l.end(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// lock waits for one of our locks. Before the first one it is tried whether locks work here.
func (s *Store) lock(ctx context.Context, name ...string) (unlock func(), err error) {
	if err := s.probe(); err != nil {
		return nil, err
	}
	return s.files.Lock(ctx, s.lockPath(name...))
}

func (s *Store) lockPath(name ...string) string {
	return filepath.Join(append([]string{s.dir.Locks()}, name...)...) + ".lock"
}

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

// readAll is the whole of a file.
func (s *Store) readAll(path string) ([]byte, error) {
	data, _, err := s.files.ReadFile(path)
	return data, err
}

// checkName wants the keys of documents and the names of streams, boxes and leases to be file names on every system. It is
// written by hand: compiling a regular expression for it would cost every start of the program half a millisecond.
func checkName(what, name string) error {
	ok := name != "" && len(name) <= 100 && !strings.ContainsAny(name[:1], ".-")
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !ok {
		return muster.Errorf(muster.Invalid, "%q cannot be %s: use letters, digits, dots, hyphens and underscores", name, what)
	}
	return nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
