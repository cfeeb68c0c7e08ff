package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// Private is a lane's own place for the objects and refs that its git writes. A confined command sees it in place of
// the repository's: it can commit, stash and make branches, and can change nothing of the repository. TakeOver brings
// the objects and the lane's branch over. What is in the place comes from programs that may be hostile: nothing there
// is followed as a link, no git of muster's reads it, and each object is hashed anew.
type Private struct {
	// Dir has the directories objects, refs and logs. They are mounted over the repository's, or GitDir leads to them.
	Dir string
	// Admin is the lane's directory in .git/worktrees, which commands write too where Dir is mounted: the index, HEAD,
	// a merge under way.
	Admin string

	repo *Repo
	lane string
	ref  string // the lane's branch, refs/heads/...
	// isMounted says that commands see Dir in place of the repository's directories.
	isMounted bool
	// hadConfig says that the lane has git settings of its own, which are the user's.
	hadConfig bool
}

// Invariant: the lane's branch is moved last, to a commit of which every object is in the repository already. A process
// that dies before has moved nothing, and the next TakeOver finds what is left in the place.

const (
	// maxPrivate is how many bytes an object may have that is taken over, and maxPrivatePack those of a pack.
	maxPrivate, maxPrivatePack = 256 << 20, 1 << 30
	// maxRef is how many bytes a file of a ref may have.
	maxRef = 4 << 10
)

// copiedName is the name of the file with the refs that Prepare has copied.
const copiedName = "copied.json"

// worktreeConfig is the file with git settings of one worktree. git reads it where the repository's config says so.
const worktreeConfig = "config.worktree"

// PrivateObjects is where a confined command sees the repository's own objects. Those that it writes stand in their
// place.
const PrivateObjects = "/run/muster/objects"

// OpenPrivate returns the place of the lane at path, whose branch is ref. It is made if it is missing. isMounted says
// that commands see it mounted over the repository's, and not through GitDir. Errors: NotFound when no lane of the
// repository is there, Unavailable.
func OpenPrivate(r *Repo, lane, ref string, isMounted bool) (*Private, error) {
	p := &Private{repo: r, lane: lane, ref: ref, Dir: privatePlace(r.common, lane),
		Admin: registrationOf(r.common, lane), isMounted: isMounted}
	if p.Admin == "" {
		return nil, muster.Errorf(muster.NotFound, "there is no worktree at %s", lane)
	}
	if !r.files.areFiles() {
		return nil, muster.Errorf(muster.Unavailable, "the refs of this repository are no files").
			WithHint("git refs migrate --ref-format=files, or start muster with --no-sandbox")
	}
	if err := p.make(); err != nil {
		return nil, muster.Errorf(muster.Unavailable, "a place for what the lane's git writes cannot be made: %w", err)
	}
	p.hadConfig = !durable.IsMissing(filepath.Join(p.Admin, worktreeConfig))
	objects := PrivateObjects
	if !isMounted {
		// git clone takes a relative one for one of GitDir. A line holds no more than a path without a line end.
		if objects = filepath.Join(r.common, "objects"); strings.Contains(objects, "\n") {
			objects = "../../../../objects"
		}
		if err := p.makeGitDir(); err != nil {
			return nil, muster.Errorf(muster.Unavailable, "a git directory for commands cannot be made: %w", err)
		}
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return p, p.write(root, "objects/info/alternates", []byte(objects+"\n"))
}

// privatePlace returns where a lane's place is. common is the repository's common directory.
func privatePlace(common, lane string) string {
	return filepath.Join(common, "muster", "lanes", filepath.Base(lane))
}

// make makes the directories of the place that are missing.
func (p *Private) make() error {
	if err := durable.MakeDirBelow(p.repo.common, p.Dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "logs"} {
		if err := clearWay(root, dir); err != nil {
			return err
		}
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// clearWay removes what a program has put in the place of a directory or of one above it, a link or a file, and opens
// directories that it has closed.
func clearWay(root *os.Root, dir string) error {
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		switch st, err := root.Lstat(at); {
		case err != nil: // there is none, nor one below
			return nil
		case !st.IsDir():
			return root.Remove(at)
		case st.Mode().Perm()&0o700 != 0o700:
			if err := root.Chmod(at, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemovePrivate removes the place of the lane at path. What was not taken over is gone with it.
func RemovePrivate(r *Repo, lane string) error {
	return durable.RemoveAll(privatePlace(r.common, lane))
}

// PrivateHead returns what HEAD points to in the lane at dir, where that is a branch which a confined command has made
// and of which only the lane's own place knows.
func PrivateHead(r *Repo, dir string) (head string, ok bool) {
	if head, ok = writtenHead(r, dir); !ok || !strings.HasPrefix(head, "refs/heads/") {
		return "", false
	}
	place := privatePlace(r.common, dir)
	_, err := durable.ReadBelow(place, filepath.Join(place, filepath.FromSlash(head)), maxRef)
	return head, err == nil
}

// Prepare lets the next command see the repository's refs as they are now. Refs that the lane has made itself stay.
func (p *Private) Prepare() error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// What was copied last time tells a ref of the repository that is gone from one that the lane has made.
	noted := p.copied()
	now, isSame := map[string]string{}, true
	real := filepath.Join(p.repo.common, "refs")
	err = filepath.WalkDir(real, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(file, ".lock") {
			return ignoreMissing(err)
		}
		rel, err := filepath.Rel(p.repo.common, file)
		if err != nil {
			return err
		}
		data, err := durable.ReadRegular(file, maxRef)
		if err != nil {
			return ignoreMissing(err)
		}
		name := filepath.ToSlash(rel)
		now[name] = string(data)
		isSame = isSame && noted[name] == now[name]
		if noted[name] == now[name] || name == p.ref {
			return nil
		}
		return p.write(root, name, data)
	})
	// The lane's own branch is where the runtime has it, whatever a command has written there. It may be packed.
	if id, ok := p.repo.files.branch(p.ref); ok && id != "" && err == nil {
		now[p.ref] = id + "\n"
		isSame = isSame && noted[p.ref] == now[p.ref]
		err = p.write(root, p.ref, []byte(now[p.ref]))
	}
	for name, text := range noted {
		if _, is := now[name]; is || err != nil {
			continue
		}
		isSame = false
		if data, readErr := p.read(name, maxRef); readErr == nil && string(data) == text {
			err = root.Remove(name)
		}
	}
	if err != nil || isSame {
		return err
	}
	return p.saveCopied(now)
}

// TakeOver brings what commands have written to the repository: the objects, and the lane's branch where it has moved.
// Every command that writes there should have ended. What is no object is left out.
func (p *Private) TakeOver(ctx context.Context) error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := p.dropLinks(); err != nil {
		return err
	}
	for _, dir := range []string{"objects/pack", commandsName} {
		if err := clearWay(root, dir); err != nil {
			return err
		}
	}
	if err := p.takeObjects(ctx, root); err != nil {
		return muster.Errorf(muster.Unavailable, "what the lane's git has written cannot be taken over: %w", err)
	}
	// What the lane's git keeps beside them is no reason to lose commits.
	exchanging := p.exchange(ctx)
	if exchanging != nil && !errors.Is(exchanging, muster.ErrInvalid) {
		return exchanging
	}
	return cmp.Or(p.takeBranch(ctx), exchanging)
}

// takeBranch moves the lane's branch in the repository to where commands have moved it.
func (p *Private) takeBranch(ctx context.Context) error {
	data, err := p.read(p.ref, maxRef)
	if isSpoiled(err) { // Prepare puts it right
		return nil
	}
	// Only what a command has moved counts: the runtime may have moved the branch meanwhile.
	id, was := strings.TrimSpace(string(data)), strings.TrimSpace(p.copied()[p.ref])
	if err != nil || id == was || was == "" || id == "" || !IsID(id) {
		return ignoreMissing(err)
	}
	if now, ok := p.repo.files.branch(p.ref); ok && now == id { // an earlier TakeOver has moved it
		return p.note(id)
	}
	// A branch must name a commit that is there whole.
	if _, err := p.repo.Run(ctx, p.repo.common, "rev-list", "--quiet", "--objects", id, "--not", was); err != nil {
		if !isExit(err) {
			return err
		}
		return muster.Errorf(muster.Invalid, "the lane's branch names %.7s, of which objects are missing", id).
			WithHint("git reset --hard %.7s, in the lane", was)
	}
	err = p.repo.UpdateRefs(ctx, []RefUpdate{{Ref: p.ref, New: id, Old: was}})
	if errors.Is(err, muster.ErrStale) {
		return muster.Errorf(muster.Invalid, "the lane's branch was moved while the command ran, so its commits "+
			"are at %.7s only", id).WithHint("git merge %.7s, in the lane", id)
	}
	if err != nil {
		return err
	}
	return p.note(id)
}

// note notes that the lane's branch is at id, as a command has left it: should the runtime move it back to where it was
// before, the next TakeOver must not move it again.
func (p *Private) note(id string) error {
	noted := p.copied()
	noted[p.ref] = id + "\n"
	return p.saveCopied(noted)
}

// copied returns the refs that Prepare has copied, with what their files said. There are none where that is not known:
// more stays then than need be, and nothing is taken over.
func (p *Private) copied() map[string]string {
	noted := map[string]string{}
	if data, err := p.read(copiedName, 16<<20); err == nil {
		_ = json.Unmarshal(data, &noted)
	}
	return noted
}

// saveCopied replaces what copied returns.
func (p *Private) saveCopied(noted map[string]string) error {
	data, err := json.Marshal(noted)
	if err != nil {
		return err
	}
	return durable.New(durable.OS{}).Replace(filepath.Join(p.Dir, copiedName), data)
}

// dropLinks removes what commands have put into the lane's own git directory to mislead the runtime's git, which is not
// confined: settings, and symbolic links, to where it would write. That to git-crypt's keys is the runtime's.
func (p *Private) dropLinks() error {
	if !p.hadConfig {
		if err := os.RemoveAll(filepath.Join(p.Admin, worktreeConfig)); err != nil {
			return err
		}
	}
	// The root keeps to the directory, whatever a program that still runs makes a link of meanwhile.
	root, err := os.OpenRoot(p.Admin)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 || name == "git-crypt" {
			return ignoreMissing(err)
		}
		return root.Remove(name)
	})
}

// read returns the content of a file of the place.
func (p *Private) read(name string, limit int64) ([]byte, error) {
	return durable.ReadBelow(p.Dir, filepath.Join(p.Dir, filepath.FromSlash(name)), limit)
}

// write replaces a file of the place, unless it has the content already. Whatever a program has put in its way goes.
func (p *Private) write(root *os.Root, name string, data []byte) error {
	if is, err := p.read(name, maxRef); err == nil && bytes.Equal(is, data) {
		return nil
	}
	if err := clearWay(root, path.Dir(name)); err != nil {
		return err
	}
	if st, err := root.Lstat(name); err == nil && st.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return durable.WriteBelow(p.Dir, filepath.Join(p.Dir, filepath.FromSlash(name)), data)
}

// isSpoiled reports whether an error says that a program has put something else in the place of a file, or closed it.
func isSpoiled(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, durable.ErrLink) || errors.Is(err, durable.ErrLinked) ||
		errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge)
}

// ignoreMissing returns err, or nil where it says that something is not there.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
