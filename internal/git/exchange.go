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
	"syscall"
	"time"

	"muster"
	"muster/internal/durable"
)

const (
	// exchanged is the file with the sums of what both directories had after the last exchange.
	exchanged = "exchanged.json"
	// maxExchanged is how many files git may keep of a worktree. A rebase keeps some twenty. All of them together have
	// no more than maxPrivate bytes.
	maxExchanged = 1_000
)

// exchangedNames are what is exchanged of a worktree: files, and directories with what is in them. All else stays where
// it is, such as what says where the parts of the registration are, and what filters and submodules keep.
var exchangedNames = []string{"HEAD", "index", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "SQUASH_MSG", "MERGE_HEAD",
	"MERGE_MODE", "MERGE_MSG", "MERGE_RR", "MERGE_AUTOSTASH", "AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD",
	"REBASE_HEAD", "rebase-merge", "rebase-apply", "sequencer", "logs", "refs", "info", worktreeConfig,
	"BISECT_ANCESTORS_OK", "BISECT_EXPECTED_REV", "BISECT_FIRST_PARENT", "BISECT_HEAD", "BISECT_LOG", "BISECT_NAMES",
	"BISECT_RUN", "BISECT_START", "BISECT_TERMS"}

// isExchanged reports whether a file or directory with that name, relative to a git directory, is exchanged.
func isExchanged(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return name == "." || slices.Contains(exchangedNames, first) || strings.HasPrefix(first, "sharedindex.")
}

// worktreeFiles are the files that git keeps of a worktree, in one of the two directories.
type worktreeFiles struct {
	*os.Root
	isHostile bool // commands write there
}

// worktreeFile is one of them. Without a sum it is not there.
type worktreeFile struct {
	data []byte
	sum  string
	at   time.Time // when it was written: git compares the time of an index with those of files
}

// openWorktreeFiles opens a directory. The caller closes it.
func openWorktreeFiles(dir string, isHostile bool) (worktreeFiles, error) {
	root, err := os.OpenRoot(dir)
	return worktreeFiles{root, isHostile}, err
}

// exchange brings to the lane's registration what commands have changed in their git directory, and to that what muster
// has changed in the registration. Where both have changed a file, muster's counts.
func (p *Private) exchange(ctx context.Context) error {
	if durable.IsMissing(p.GitDir()) {
		return nil
	}
	commands, err := openWorktreeFiles(p.GitDir(), true)
	if err != nil {
		return err
	}
	defer commands.Close()
	own, err := openWorktreeFiles(p.Admin, false)
	if err != nil {
		return err
	}
	defer own.Close()
	was, now := map[string]string{}, map[string]string{}
	if data, err := p.read(exchanged, 16<<20); err == nil {
		_ = json.Unmarshal(data, &was) // where it is damaged, what muster has counts
	}
	names := maps.Clone(was)
	if err := errors.Join(own.addNames(names), commands.addNames(names)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		sum, err := exchangeFile(ctx, own, commands, name, was[name])
		if err != nil {
			return muster.Errorf(muster.Unavailable, "%s of the lane's git cannot be exchanged: %w", name, err)
		}
		if sum != "" {
			now[name] = sum
		}
	}
	if p.isMounted { // commands have no use for it any more
		return errors.Join(durable.RemoveAll(p.GitDir()), os.RemoveAll(filepath.Join(p.Dir, exchanged)))
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

// addNames adds to names those of the files that are exchanged. Of what commands have written, what cannot be read is
// left out.
func (w worktreeFiles) addNames(names map[string]string) error {
	const longest = 200 // bytes of a name, so that the name of its lock is none that is too long
	n, size := 0, int64(0)
	return fs.WalkDir(w.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && w.isHostile:
			return nil
		case err != nil:
			return ignoreMissing(err)
		case !isExchanged(name) && d.IsDir():
			return fs.SkipDir
		case !isExchanged(name):
			return nil
		}
		info, err := d.Info()
		if err == nil && d.Type().IsRegular() {
			size += info.Size()
		}
		if n++; n > maxExchanged || size > maxPrivate {
			return muster.Errorf(muster.Invalid, "git keeps more than %d files or %d MB of the lane's worktree",
				maxExchanged, maxPrivate>>20).WithHint("git rebase --abort, or the like, in the lane")
		}
		if d.Type().IsRegular() && !strings.HasSuffix(name, ".lock") && len(path.Base(name)) <= longest {
			names[name] = ""
		}
		return nil
	})
}

// exchangeFile exchanges one file. was is its sum after the last exchange; the sum after this one is returned. What
// cannot be exchanged now stays for the next time.
func exchangeFile(ctx context.Context, own, commands worktreeFiles, name, was string) (sum string, err error) {
	ours, err := own.read(name)
	if err != nil {
		return "", err
	}
	theirs, err := commands.read(name)
	switch {
	case err == nil && ours.sum == theirs.sum:
		return ours.sum, nil
	// What cannot be read, a command has made so. The settings of a worktree are the user's. Without a HEAD the
	// registration would be no git directory.
	case err != nil, ours.sum != was, name == worktreeConfig, name == "HEAD" && !isHead(theirs.data):
		if commands.replace(name, theirs.sum, ours) != nil { // a command may have left its lock
			return was, nil
		}
		return ours.sum, nil
	}
	err = own.replace(name, ours.sum, theirs)
	for try := 1; errors.Is(err, fs.ErrExist) && try < 10; try++ { // a git of muster's is at work
		if err := pause(ctx, try); err != nil {
			return was, err
		}
		err = own.replace(name, ours.sum, theirs)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, errChanged) {
		return was, nil
	}
	return theirs.sum, err
}

// isHead reports whether a file with these bytes can be HEAD.
func isHead(data []byte) bool {
	text := strings.TrimSpace(string(data))
	return text != "" && IsID(text) || strings.HasPrefix(text, "ref: refs/") && !strings.ContainsAny(text, "\n\x00")
}

// errChanged says that a file is not as it was any more.
var errChanged = errors.New("the file has changed")

// read reads a file.
func (w worktreeFiles) read(name string) (f worktreeFile, err error) {
	at := filepath.Join(w.Name(), filepath.FromSlash(name))
	st, err := w.Lstat(name) // before it is read: one that is written meanwhile is younger, which is no harm
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a file may be where its directory was
		return worktreeFile{}, nil
	case err != nil || st.IsDir():
		return worktreeFile{}, err
	case w.isHostile:
		f.data, err = durable.ReadBelow(w.Name(), at, maxPrivate)
	default:
		f.data, err = durable.ReadRegular(at, maxPrivate)
	}
	if err != nil {
		return worktreeFile{}, ignoreMissing(err)
	}
	sum := sha256.Sum256(f.data)
	f.sum, f.at = hex.EncodeToString(sum[:]), st.ModTime()
	return f, nil
}

// replace replaces the file of that name by f, or removes it. It takes git's lock for that, and fails with fs.ErrExist
// where another has it, and with errChanged where the sum of what is there is not was.
func (w worktreeFiles) replace(name, was string, f worktreeFile) (err error) {
	dir, lock := path.Dir(name), name+".lock"
	if err := clearWay(w.Root, dir); err != nil {
		return err
	}
	if err := w.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	next, err := w.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil || f.sum == "" {
			_ = w.Remove(lock)
		}
		// That there is a directory says that something is under way.
		for d := dir; d != "." && w.Remove(d) == nil; d = path.Dir(d) {
		}
	}()
	_, err = next.Write(f.data)
	if err = errors.Join(err, next.Close()); err != nil {
		return err
	}
	if now, err := w.read(name); err == nil && now.sum != was {
		return errChanged
	}
	if f.sum == "" {
		return ignoreMissing(w.RemoveAll(name))
	}
	if err := w.Chtimes(lock, f.at, f.at); err != nil {
		return err
	}
	if st, err := w.Lstat(name); err == nil && st.IsDir() {
		if err := w.RemoveAll(name); err != nil {
			return err
		}
	}
	return w.Rename(lock, name)
}
