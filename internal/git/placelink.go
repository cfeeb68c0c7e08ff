package git

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// Link returns the file that commands see as .git of the working tree, where that can be shown to them alone.
func (p *Place) Link() string { return filepath.Join(p.Dir, "link") }

func linkText(dir string) []byte { return []byte("gitdir: " + filepath.ToSlash(dir) + "\n") }

// Connect lets the .git file of the working tree lead to the git directory of commands, for all who look, until
// disconnect is called. That lets it lead to the registered worktree again, and reports whether a command has changed
// it. The error is Held where another process has connected it.
func (p *Place) Connect() (disconnect func() (changed bool, err error), err error) {
	unlock, err := p.connect()
	if err != nil {
		return nil, err
	}
	return func() (changed bool, err error) {
		changed = !p.isConnected()
		return changed, p.disconnect(unlock)
	}, nil
}

func (p *Place) connect() (unlock func() error, err error) {
	unlock, err = durable.New(durable.OS{}).TryLock(p.connectedFile())
	if err != nil || p.isConnected() {
		return unlock, err
	}
	if err := p.link(p.GitDir()); err != nil {
		return nil, errors.Join(err, unlock()) // so that the next command can try it
	}
	return unlock, nil
}

// connectedFile returns the file that is there while the working tree is connected. The process that has connected it
// holds its lock.
func (p *Place) connectedFile() string { return filepath.Join(p.Dir, "connected") }

// disconnect lets the .git file of the working tree lead to the registered worktree, and ends the lock that says that
// it does not.
func (p *Place) disconnect(unlock func() error) error {
	var err error
	admin := registrationOf(p.repo.common, p.Tree)
	if admin != "" && !durable.IsMissing(p.Tree) && !(isPlainLink(p.Tree) && linkedDir(p.Tree) == admin) {
		err = p.link(admin)
	}
	if err == nil {
		err = ignoreMissing(os.Remove(p.connectedFile()))
	}
	return errors.Join(err, unlock())
}

// DisconnectAbandoned does what processes that were killed while commands ran have left: it lets the .git files of the
// working trees lead to their registered worktrees again.
func DisconnectAbandoned(common string) error {
	all, err := registrations(common)
	if err != nil {
		return err
	}
	for _, admin := range all {
		tree := filepath.Dir(linkOf(admin))
		p := &Place{repo: &Repo{runner: runner{common: common}}, Tree: tree, Dir: placeDir(common, tree)}
		if durable.IsMissing(p.connectedFile()) {
			continue
		}
		unlock, lockErr := durable.New(durable.OS{}).TryLock(p.connectedFile())
		if errors.Is(lockErr, muster.ErrHeld) { // commands run
			continue
		}
		if lockErr == nil {
			lockErr = p.disconnect(unlock)
		}
		err = errors.Join(err, lockErr)
	}
	return err
}

// isConnected reports whether the .git file of the working tree leads to the git directory of commands.
func (p *Place) isConnected() bool { return isPlainLink(p.Tree) && linkedDir(p.Tree) == p.GitDir() }

// link makes the .git file of the working tree lead to dir, whatever is in its place. At each moment there is a whole
// one, because the user's git may run there, and no other file in the working tree, because its content may be landing.
// The two files of connect and disconnect change places: to write one takes many times as long.
func (p *Place) link(dir string) (err error) {
	file, next := filepath.Join(p.Tree, ".git"), filepath.Join(p.Dir, "next")
	tree, err := openTree(p.Tree)
	if err == nil {
		defer tree.Close()
		if st, statErr := tree.Lstat(".git"); statErr == nil && st.IsDir() {
			err = durable.RemoveIn(tree, ".git")
		}
	}
	if is, lost := p.read("next", maxRef); err == nil && (lost != nil || !bytes.Equal(is, linkText(dir))) {
		err = durable.WriteBelow(p.Dir, next, linkText(dir))
	}
	if err == nil && swap(next, file) != nil && os.Rename(next, file) != nil { // it may be on another disk
		err = durable.New(durable.OS{}).Replace(file, linkText(dir))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the worktree %s cannot be connected: %w", p.Tree, err)
	}
	return nil
}

// openTree opens a working tree. The error says that a link is in its place, or above it: a command that nothing
// confines can make one, and what it leads to is not muster's.
func openTree(path string) (*os.Root, error) {
	tree, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := tree.Stat(".")
	// Looked at after the opening: what was opened is what is there now, without a link.
	real, realErr := filepath.EvalSymlinks(path)
	is, statErr := os.Lstat(path)
	err = errors.Join(err, realErr, statErr)
	if err != nil || real != filepath.Clean(path) || !os.SameFile(opened, is) {
		return nil, errors.Join(err, errors.New("something else is in its place"), tree.Close())
	}
	return tree, nil
}

// ownerOf returns the common directory of the repository that has dir as the git directory of a place, "" where dir is
// none.
func ownerOf(dir string) string {
	common, ok := strings.CutSuffix(filepath.Dir(filepath.Dir(filepath.Dir(dir))), filepath.FromSlash("/"+PlacesDir))
	if !ok || filepath.Base(dir) != gitName {
		return ""
	}
	return common
}
