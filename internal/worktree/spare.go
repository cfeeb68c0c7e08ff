package worktree

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
)

// Checking thousands of files out takes longer than all else that makes a lane. So a process of a team keeps a few
// spares: directories with the files of the target's tip, and git's index of them. A lane is made of one by moving its
// files to where git has just registered the worktree.
//
// A spare is no worktree: git knows nothing of it until then. So whatever becomes of one costs nothing but the time of
// a checkout, and a lane that cannot be made of a spare is made without.
//
// The steps from a spare to a lane are these:
//
//  1. git registers the worktree, which has no files and no index yet.
//  2. What git does not track in the spare makes it useless.
//  3. The files are moved to the worktree, and then the index to its git directory.
//  4. git brings the worktree from the commit of the spare to the lane's base. What was done to files of the spare is
//     undone, and git notes the times of all.
//
// The directory of a spare, NAME below the lanes' directory, where NAME is a dot and the name of its lease:
//
//	files/    what the lane is going to have, without a .git
//	index     git's index of it
//	git/      a git directory with a HEAD and nothing else

// spare is a checkout that can become a lane.
type spare struct {
	dir     string
	release func() // gives the lease back
}

// Spares are those of this process that are ready.
type Spares struct {
	repo   *git.Repo
	leases leases
	home   string // the lanes' directory

	mu    sync.Mutex
	ready []spare
	taken chan struct{} // holds a token when a lane was made since Serve looked last
}

const (
	// spareLease is the kind of lease that the makers of spares hold.
	spareLease = "spare"
	// maxSpares is how many a process keeps.
	maxSpares = 2
	// minSpareFiles is how many files a repository has whose lanes are made of spares. Fewer are checked out at once.
	minSpareFiles = 1000
)

// Serve keeps spares at the commit that target returns, until ctx ends. It keeps none where checking out is quick
// without, and where a checkout has a part of the files only.
func (s *Spares) Serve(ctx context.Context, target func(context.Context) (string, error)) {
	if !s.areWorth(ctx) {
		return
	}
	defer s.drop()
	for {
		for s.count() < maxSpares {
			commit, err := target(ctx)
			if err == nil {
				err = s.prepare(ctx, commit)
			}
			if err != nil {
				break // lanes are made without, and the next one that is made tries again
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.taken:
		}
	}
}

// areWorth reports whether lanes are made of spares in this repository.
func (s *Spares) areWorth(ctx context.Context) bool {
	settings, err := s.repo.Config(ctx, git.Call{Dir: s.repo.Root()}, `^core\.sparsecheckout$`)
	return err == nil && settings["core.sparsecheckout"] != "true" &&
		countIndex(filepath.Join(s.repo.CommonDir(), "index")) >= minSpareFiles
}

// countIndex returns how many files an index of git has, by its header (gitformat-index): DIRC, a version, and the
// number, in four bytes each. It is 0 where that cannot be read.
func countIndex(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var header [12]byte
	if _, err := io.ReadFull(f, header[:]); err != nil || string(header[:4]) != "DIRC" {
		return 0
	}
	return int(binary.BigEndian.Uint32(header[8:]))
}

// prepare checks a commit out as a spare.
func (s *Spares) prepare(ctx context.Context, commit string) error {
	lease, release, err := s.leases.acquire(spareLease)
	if err != nil {
		return err
	}
	x := spare{dir: s.path(lease), release: release}
	own := filepath.Join(x.dir, "git")
	// What is there is of a dead process: the lease is this one's.
	if err = durable.RemoveAll(x.dir); err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(x.dir, "files"), 0o700), os.Mkdir(own, 0o700))
	}
	if err == nil {
		err = git.LinkKeys(s.repo.CommonDir(), own)
	}
	if err == nil {
		err = x.checkOut(ctx, s.repo, commit)
	}
	if err != nil {
		x.discard()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, x)
	return nil
}

// path returns the directory of the spare whose maker holds a lease. No lane has a name with a dot.
func (s *Spares) path(lease string) string { return filepath.Join(s.home, "."+lease) }

// count returns how many spares are ready.
func (s *Spares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)
}

// take returns a spare, which is the caller's then. ok is false where there is none.
func (s *Spares) take() (x spare, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		return x, false
	}
	x, s.ready = s.ready[0], s.ready[1:]
	return x, true
}

// made tells Serve that a lane was made. Another spare is prepared only then: while the lane is made, its owner waits.
func (s *Spares) made() {
	select {
	case s.taken <- struct{}{}:
	default:
	}
}

// drop removes all spares.
func (s *Spares) drop() {
	for s.count() > 0 {
		if x, ok := s.take(); ok {
			x.discard()
		}
	}
}

// removeAbandoned removes the spares of dead processes.
func (s *Spares) removeAbandoned() error {
	for n := 1; ; n++ {
		lease := leaseName(spareLease, n)
		if durable.IsMissing(s.leases.path(lease)) {
			return nil // leases are taken in order: no later one was ever held
		}
		release, err := s.leases.try(lease)
		if errors.Is(err, muster.ErrHeld) {
			continue // its maker lives
		}
		if err == nil {
			err = durable.RemoveAll(s.path(lease))
			release()
		}
		if err != nil {
			return err
		}
	}
}

// discard removes the spare. What cannot be removed is removed by the next holder of its lease.
func (s spare) discard() {
	_ = durable.RemoveAll(s.dir)
	s.release()
}

// run runs git on the spare's files.
func (s spare) run(ctx context.Context, repo *git.Repo, args ...string) (string, error) {
	files := filepath.Join(s.dir, "files")
	return repo.Do(ctx, git.Call{Dir: files, Args: args,
		Env: []string{"GIT_DIR=" + filepath.Join(s.dir, "git"), "GIT_COMMON_DIR=" + repo.CommonDir(),
			"GIT_WORK_TREE=" + files, "GIT_INDEX_FILE=" + filepath.Join(s.dir, "index")},
		// An index that is split has its greater part in a file beside HEAD.
		Settings: []git.Setting{git.Set("core.splitIndex", "false")}})
}

// checkOut brings the spare's files to a commit.
func (s spare) checkOut(ctx context.Context, repo *git.Repo, commit string) error {
	err := os.WriteFile(filepath.Join(s.dir, "git", "HEAD"), []byte(commit+"\n"), 0o600)
	if err == nil {
		_, err = s.run(ctx, repo, "reset", "-q", "--hard", "--no-recurse-submodules")
	}
	return err
}

// moveInto moves the files of the spare into a worktree that git has registered and that has no files yet. admin is the
// worktree's own git directory.
//
// The index goes last: a worktree without one counts as half made (isUnused), and is undone with all that is in it. A
// process that dies in between, or an error, leaves no more than that.
func (s spare) moveInto(ctx context.Context, repo *git.Repo, path, admin string) error {
	// A file that git does not have was not made by a checkout, and would land with the lane.
	others, err := s.run(ctx, repo, "ls-files", "-z", "--others")
	if err == nil && others != "" {
		err = errSpareChanged
	}
	if err != nil {
		return err
	}
	files := filepath.Join(s.dir, "files")
	if info, err := os.Lstat(files); err != nil || !info.IsDir() {
		return errSpareChanged // a link would bring the files of another place
	}
	entries, err := os.ReadDir(files)
	for _, e := range entries {
		if strings.EqualFold(e.Name(), ".git") {
			return errSpareChanged // it would lead git to another repository
		}
		if err == nil {
			err = os.Rename(filepath.Join(files, e.Name()), filepath.Join(path, e.Name()))
		}
	}
	if err == nil {
		err = os.Rename(filepath.Join(s.dir, "index"), filepath.Join(admin, "index"))
	}
	return err
}

// errSpareChanged is the error of a spare in which somebody has written.
var errSpareChanged = errors.New("the spare is not as it was made")
