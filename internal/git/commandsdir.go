package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/durable"
)

// Where nothing can be mounted, the .git file of a lane leads to a git directory for commands while they run (Connect).
// It has copies of what git keeps of a worktree, such as the index, HEAD and a merge under way. Its objects, refs and
// logs are those of the lane's place, and the settings are the repository's.
//
// Invariant: a command writes neither the repository nor the lane's registration, and muster's git is never run in the
// directory for commands. Only exchange carries files from one to the other, each whole, after the objects.

// commandsName is the name of the directory for commands in a lane's place.
const commandsName = "git"

// GitDir returns the git directory for commands.
func (p *Private) GitDir() string { return filepath.Join(p.Dir, commandsName) }

// ownerOf returns the common directory of the repository that has dir as a git directory for commands, "" where dir is
// none.
func ownerOf(dir string) string {
	common, ok := strings.CutSuffix(filepath.Dir(filepath.Dir(dir)), filepath.FromSlash("/muster/lanes"))
	if !ok || filepath.Base(dir) != commandsName {
		return ""
	}
	return common
}

// makeGitDir makes the git directory for commands: a linked worktree's, of which the lane's place is the common one.
func (p *Private) makeGitDir() error {
	if err := durable.MakeDirBelow(p.Dir, p.GitDir()); err != nil {
		return err
	}
	// No command can write to the place itself, so these links are what they were made.
	for _, name := range []string{"HEAD", "config", "info", "lfs", "packed-refs", "shallow"} {
		err := os.Symlink(filepath.FromSlash("../../../"+name), filepath.Join(p.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	const common = "..\n"
	name := filepath.Join(p.GitDir(), "commondir")
	if is, err := durable.ReadBelow(p.Dir, name, maxRef); err == nil && string(is) == common {
		return nil
	}
	return durable.WriteBelow(p.Dir, name, []byte(common))
}

// Connect lets the .git file of the lane lead to the git directory for commands, after TakeOver and Prepare.
func (p *Private) Connect() error {
	if p.isConnected() {
		return nil
	}
	return p.link(p.GitDir())
}

// Disconnect lets the .git file of the lane lead to the repository again, when no command runs there any more. It
// reports whether a command has changed the file.
func (p *Private) Disconnect() (changed bool, err error) {
	if durable.IsMissing(p.lane) {
		return false, nil
	}
	return !p.isConnected(), p.link(p.Admin)
}

// isConnected reports whether the .git file of the lane leads to the git directory for commands.
func (p *Private) isConnected() bool { return isPlainLink(p.lane) && linkedDir(p.lane) == p.GitDir() }

// link makes the .git file of the lane lead to dir. At each moment there is a whole one, because muster's git may run
// in the lane, and no other file in the lane, because its content may be landing.
func (p *Private) link(dir string) error {
	return writeLink(p.lane, dir, func(file string, data []byte) error {
		next := filepath.Join(p.Dir, "link")
		if err := durable.WriteBelow(p.Dir, next, data); err != nil {
			return err
		}
		if os.Rename(next, file) != nil { // the lane may be on another disk
			return durable.New(durable.OS{}).Replace(file, data)
		}
		return nil
	})
}
