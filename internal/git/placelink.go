package git

import (
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// Link returns the file that commands see as .git of the working tree, where that can be shown to them alone.
func (p *Place) Link() string { return filepath.Join(p.Dir, "link") }

// linkText is the content of a .git file that leads to dir.
func linkText(dir string) []byte { return []byte("gitdir: " + filepath.ToSlash(dir) + "\n") }

// Connect lets the .git file of the working tree lead to the git directory of commands, for all who look. Disconnect
// must follow when the last command has ended; after a kill, the next muster does it.
func (p *Place) Connect() error {
	if p.isConnected() {
		return nil
	}
	return p.link(p.GitDir())
}

// Disconnect lets the .git file of the working tree lead to the registered worktree. It reports whether a command has
// changed the file.
func (p *Place) Disconnect(wasConnected bool) (changed bool, err error) {
	admin := registrationOf(p.repo.common, p.Tree)
	if durable.IsMissing(p.Tree) || admin == "" {
		return false, nil
	}
	if isPlainLink(p.Tree) && linkedDir(p.Tree) == admin {
		return wasConnected, nil
	}
	return wasConnected && !p.isConnected(), p.link(admin)
}

// isConnected reports whether the .git file of the working tree leads to the git directory of commands.
func (p *Place) isConnected() bool { return isPlainLink(p.Tree) && linkedDir(p.Tree) == p.GitDir() }

// link makes the .git file of the working tree lead to dir, whatever is in its place. At each moment there is a whole
// one, because the user's git may run there, and no other file in the working tree, because its content may be landing.
func (p *Place) link(dir string) (err error) {
	file, next := filepath.Join(p.Tree, ".git"), filepath.Join(p.Dir, "next")
	if st, statErr := os.Lstat(file); statErr == nil && st.IsDir() {
		err = durable.RemoveAll(file)
	}
	if err == nil {
		err = durable.WriteBelow(p.Dir, next, linkText(dir))
	}
	if err == nil && os.Rename(next, file) != nil { // the working tree may be on another disk
		err = durable.New(durable.OS{}).Replace(file, linkText(dir))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the worktree %s cannot be connected: %w", p.Tree, err)
	}
	return nil
}

// ownerOf returns the common directory of the repository that has dir as the git directory of a place, "" where dir is
// none.
func ownerOf(dir string) string {
	common, ok := strings.CutSuffix(filepath.Dir(filepath.Dir(filepath.Dir(dir))), filepath.FromSlash("/"+placesDir))
	if !ok || filepath.Base(dir) != gitName {
		return ""
	}
	return common
}
