// Package git runs the git program for the runtime. Every git that the program starts goes through here.
//
// Repo is a repository: its refs (refs.go, reffiles.go, locks.go), its commits and trees (objects.go) and its
// worktrees (worktrees.go). Open (open.go) finds one. A runner (run.go) makes one call; it decides what git may see and
// do. files.go has the exclude file, and what needs no Repo.
//
// The package keeps these invariants, whatever the repository's config and an agent's files say:
//
//   - Every call names its directory, and git does not look above it for a repository. A lane that lost its .git file
//     is never taken for a directory of the user's checkout.
//   - Hooks, fsmonitor, signing, automatic maintenance and the network are off, and the GIT_* of the environment that
//     redirect git are gone.
//   - Filters, merge drivers, external diffs and textconv that a config names do not run (drivers.go). So files that a
//     filter would expand (git-lfs) are in lanes and checks as the repository stores them: pointers. A setup command
//     may say git lfs pull.
//   - Refs move in transactions that are synced to disk. A lock that a killed git left is broken only when no living
//     git can hold it.
//
// # Locks
//
// git guards a ref, the packed refs, a HEAD and an index by a file NAME.lock, which it removes when it ends. A git that
// is killed leaves it, and every later git fails. Three rules decide when such a lock is removed (locks.go):
//
//   - A ref that only the runtime moves (refs/muster/..., the branch of a lane that is being undone) is locked for
//     milliseconds. BreakLocks removes a lock that stays for a second; its caller knows that no process of the team can
//     be moving the ref.
//   - Any other lock counts as abandoned after ten seconds, if no git of the same user that was alive when the lock was
//     first seen is alive still. On Linux that is read from /proc.
//   - Where the system does not tell which gits live, a lock is left alone for ten minutes: packing a large repository
//     takes long, and if the lock on the packed refs is broken meanwhile, deleted refs come back.
//
// # Reading without git
//
// A git process takes milliseconds, and a turn of a member asks several times where a branch is and whether its
// directory is still its lane. refFiles answers the usual form of these questions from git's own files, and says that
// it does not know in every other case. It never writes.
//
// # Config
//
// A config is read right before each call that could run what it names. Between the two an agent can still change it:
// git 2.39 leaves that hole, and a sandbox around the agents' tools closes it.
//
// What refs and worktrees mean to muster is for the packages worktree and landing.
package git

// Repo is a repository with a working tree and at least one commit. Its methods are safe for concurrent use.
type Repo struct {
	runner
	root   string // the main worktree's top level
	linked string // the linked worktree that it was opened from; "" for the main one
	files  refFiles
}

// Root returns the top level of the main worktree: absolute, symbolic links resolved.
func (r *Repo) Root() string { return r.root }

// Linked returns the top level of the linked worktree that the repository was opened from, "" when it was not.
func (r *Repo) Linked() string { return r.linked }

// CommonDir returns the git directory that all worktrees share, absolute.
func (r *Repo) CommonDir() string { return r.common }
