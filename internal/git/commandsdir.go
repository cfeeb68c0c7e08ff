package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
)

// Where nothing can be mounted, the .git file of a lane leads to a git directory for commands while they run (Connect).
// It has copies of what git keeps of a worktree, such as the index, HEAD and a merge under way. Its objects, refs and
// logs are those of the lane's place, and the settings are the repository's.
//
// Invariant: a command writes neither the repository nor the lane's registration, and muster's git is never run in the
// directory for commands. Only exchange carries files from one to the other, each whole, after the objects.

const (
	// commandsName is the name of the directory for commands in a lane's place.
	commandsName = "git"
	// exchanged is the file with the sums of what both directories had after the last exchange.
	exchanged = "exchanged.json"
	// maxExchanged is how many files git may keep of a worktree. A rebase keeps some twenty.
	maxExchanged = 10_000
)

// notExchanged are the names in the registration of a worktree that commands get no copy of: where its parts are, and
// what filters and submodules keep.
var notExchanged = []string{"commondir", "gitdir", "locked", "modules", "git-crypt", "lfs", "annex"}

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

// worktreeFile is a file that git keeps of a worktree. The zero value is one that is not there.
type worktreeFile struct {
	data []byte
	sum  string    // of data
	at   time.Time // when it was written: git compares the time of an index with those of files
}

// exchange brings to the lane's registration what commands have changed in their git directory, and to that what muster
// has changed in the registration. Where both have changed a file, muster's counts.
func (p *Private) exchange(ctx context.Context) error {
	if durable.IsMissing(p.GitDir()) {
		return nil
	}
	commands, err := os.OpenRoot(p.GitDir())
	if err != nil {
		return err
	}
	defer commands.Close()
	own, err := os.OpenRoot(p.Admin)
	if err != nil {
		return err
	}
	defer own.Close()
	was, now := map[string]string{}, map[string]string{}
	if data, err := p.read(exchanged, 16<<20); err == nil {
		_ = json.Unmarshal(data, &was) // where it is damaged, what muster has counts
	}
	names := maps.Clone(was)
	for _, root := range []*os.Root{own, commands} {
		if err := addNames(names, root); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		sum, err := exchangeFile(ctx, own, commands, name, was[name])
		if err != nil {
			return muster.Errorf(muster.Unavailable, "%s of the lane's git cannot be exchanged: %w", name, err)
		}
		if sum != "" {
			now[name] = sum
		}
	}
	if maps.Equal(was, now) {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return durable.New(durable.OS{}).Replace(filepath.Join(p.Dir, exchanged), data)
}

// addNames adds to names those of the files that git keeps of a worktree in root.
func addNames(names map[string]string, root *os.Root) error {
	n := 0
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreMissing(err)
		case slices.Contains(notExchanged, name) && d.IsDir():
			return fs.SkipDir
		case !d.Type().IsRegular() || slices.Contains(notExchanged, name) || strings.HasSuffix(name, ".lock"):
			return nil
		}
		if n++; n > maxExchanged {
			return muster.Errorf(muster.Invalid, "the lane's git directory has more than %d files", maxExchanged).
				WithHint("git rebase --abort, or the like, in the lane")
		}
		names[name] = ""
		return nil
	})
}

// exchangeFile exchanges one file. was is its sum after the last exchange; the sum after this one is returned.
func exchangeFile(ctx context.Context, own, commands *os.Root, name, was string) (sum string, err error) {
	ours, err := readWorktreeFile(own, name)
	if err != nil {
		return "", err
	}
	theirs, err := readWorktreeFile(commands, name)
	if err != nil || ours.sum == theirs.sum {
		return ours.sum, err
	}
	// Without HEAD it is no git directory. The settings of a worktree are the user's.
	if ours.sum == was && name != worktreeConfig && (theirs.sum != "" || name != "HEAD") {
		err := theirs.replace(own, name)
		for try := 1; errors.Is(err, fs.ErrExist) && try < 10; try++ { // a git of muster's is at work
			if err := pause(ctx, try); err != nil {
				return was, err
			}
			err = theirs.replace(own, name)
		}
		if err != nil {
			return was, ignoreLocked(err)
		}
		return theirs.sum, nil
	}
	if err := ours.replace(commands, name); err != nil { // a command may have left its lock
		return was, ignoreLocked(err)
	}
	return ours.sum, nil
}

// ignoreLocked returns err, or nil where it says that a lock is there: the next exchange tries again.
func ignoreLocked(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// readWorktreeFile reads a file. What is no plain file counts as missing.
func readWorktreeFile(root *os.Root, name string) (f worktreeFile, err error) {
	at := filepath.Join(root.Name(), filepath.FromSlash(name))
	st, err := root.Lstat(name) // before it is read: one that is written meanwhile is younger, which is no harm
	if err == nil {
		f.at = st.ModTime()
		f.data, err = durable.ReadBelow(root.Name(), at, maxPrivate)
	}
	if err != nil {
		if isSpoiled(err) {
			err = nil
		}
		return worktreeFile{}, ignoreMissing(err)
	}
	sum := sha256.Sum256(f.data)
	f.sum = hex.EncodeToString(sum[:])
	return f, nil
}

// replace replaces the file of that name in root by f, or removes it. It takes git's lock for that, and fails with
// fs.ErrExist where another has it.
func (f worktreeFile) replace(root *os.Root, name string) error {
	if f.sum == "" {
		err := ignoreMissing(root.RemoveAll(name))
		for dir := path.Dir(name); dir != "." && err == nil; dir = path.Dir(dir) {
			if root.Remove(dir) != nil { // there is more in it
				break
			}
		}
		return err
	}
	if err := clearWay(root, path.Dir(name)); err != nil {
		return err
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	lock := name + ".lock"
	w, err := root.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = w.Write(f.data)
	err = errors.Join(err, w.Close())
	if err == nil {
		err = root.Chtimes(lock, f.at, f.at)
	}
	if st, statErr := root.Lstat(name); err == nil && statErr == nil && st.IsDir() {
		err = root.RemoveAll(name)
	}
	if err == nil {
		err = root.Rename(lock, name)
	}
	if err != nil {
		_ = root.Remove(lock)
	}
	return err
}
