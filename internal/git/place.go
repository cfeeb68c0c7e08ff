package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// Place is a working tree in which the commands of a member work, with the git directory that their git uses: a lane or
// a scratch checkout. Commands write both, so each may hold anything. Git works there only confined (helper.go), and
// what it makes becomes the repository's only by its content (take.go).
//
// The place's own directory lies below .git/muster. Only muster writes it, and it has
//
//   - git, the git directory of commands, which they write: index, HEAD, refs, objects, and settings that begin as a
//     copy of those below. The repository's objects are read besides.
//   - config, attributes and info/exclude: the settings of the repository and of the user, as they were when the
//     repository was opened, without passwords and without programs that the user does not trust.
//   - leftovers, the patterns of what builds leave there, with which info/exclude begins (LeaveOut).
//   - links to what git has of objects and refs, and to what the repository has beside its own.
//
// Muster's git takes the place's directory for the one that worktrees share: it sees what commands have written, and
// obeys none of their settings. The .git file of the working tree leads to git while commands run, where that can be
// shown to them alone, and to the registered worktree otherwise (placelink.go).
type Place struct {
	repo *Repo
	// Tree is the top of the working tree, and Dir the place's own directory.
	Tree, Dir string
	ref       string // the branch of a lane, refs/heads/...; "" in a scratch checkout
}

// PlacesDir is where the places are, below the repository's common directory. gitName is the name of the git directory
// that commands write.
const (
	PlacesDir = "muster/places"
	gitName   = "git"
)

const maxRef = 4 << 10

// written are the names in the git directory of commands to which the place's own directory has links, and made are the
// directories there.
var (
	written = []string{"objects", "refs", "logs", lfsName, packedRefs}
	made    = []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "logs", lfsName, "info"}
)

// copies are files of the repository's git directory that commands see as they are now.
var copies = []string{packedRefs, "shallow", "info/attributes"}

const packedRefs = "packed-refs"

// OpenPlace returns the place of the linked worktree at tree, and makes what is missing of it. ref is the branch of a
// lane; "" for a scratch checkout. Errors: NotFound when no worktree of the repository is registered there, Invalid
// when one is that muster has not made, Unavailable.
func OpenPlace(r *Repo, tree, ref string) (*Place, error) {
	admin := registrationOf(r.common, tree)
	if admin == "" {
		return nil, muster.Errorf(muster.NotFound, "there is no worktree at %s", tree)
	}
	if !r.hasRefFiles() {
		return nil, muster.Errorf(muster.Unavailable, "the refs of this repository are no files").
			WithHint("git refs migrate --ref-format=files, or start muster with --no-sandbox")
	}
	// A place is a sign that muster has made the worktree (HasPlace).
	head := readLine(filepath.Join(admin, "HEAD"))
	if ref != "" && head != "ref: "+ref && !HasPlace(r.common, tree) && MadeAt(r, ref) == "" {
		return nil, muster.Errorf(muster.Invalid, "%s is another worktree of this repository", tree)
	}
	p := &Place{repo: r, Tree: tree, Dir: placeDir(r.common, tree), ref: ref}
	if err := p.make(admin); err != nil {
		return nil, muster.Errorf(muster.Unavailable, "a git directory for the commands in %s cannot be made: %w", tree,
			err)
	}
	return p, nil
}

// placeDir returns the directory of the place of the worktree at tree. Two worktrees of one name lie in two
// directories.
func placeDir(common, tree string) string {
	return filepath.Join(common, filepath.FromSlash(PlacesDir), filepath.Base(filepath.Dir(tree)), filepath.Base(tree))
}

// RemovePlace removes the place of the worktree at tree. What was not taken over is gone with it.
func RemovePlace(r *Repo, tree string) error {
	return durable.RemoveAll(placeDir(r.common, tree))
}

// GitDir returns the git directory that commands write.
func (p *Place) GitDir() string { return filepath.Join(p.Dir, gitName) }

// Modules returns the directories in which the git directories of submodules of the working tree are: of those that
// commands have checked out, and of those that the user has.
func (p *Place) Modules() []string {
	return []string{filepath.Join(p.GitDir(), "modules"),
		filepath.Join(registrationOf(p.repo.common, p.Tree), "modules")}
}

// make makes what is missing of the place, and puts right what commands have put in the way of it.
func (p *Place) make(admin string) error {
	config := []byte(p.repo.forPlaces.text + p.repo.DriverConfig() + configText([]scoped{
		{key: excludesFile, value: os.DevNull}, // info/exclude has the user's patterns
		{key: attributesFile, value: filepath.Join(p.Dir, "attributes")}}))
	if err := durable.MakeDirBelow(p.repo.common, p.Dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	isNew := durable.IsMissing(filepath.Join(p.GitDir(), "HEAD"))
	for _, dir := range made {
		err = cmp.Or(err, makeDir(root, path.Join(gitName, dir)))
	}
	exclude := slices.Concat(p.Leftovers(), muster.TrimBOM(p.repo.forPlaces.ignore), []byte("\n"), p.repo.excluded())
	for name, data := range map[string][]byte{"config": config, "info/exclude": exclude} {
		// Where the settings are the same as before, commands may have changed theirs.
		if was, readErr := p.read(name, MaxFile); readErr != nil || !bytes.Equal(was, data) {
			err = cmp.Or(err, p.write(root, path.Join(gitName, name), data))
		}
	}
	if err := cmp.Or(err, root.RemoveAll("git/commondir")); err != nil {
		return err
	}
	files := map[string][]byte{
		"git/objects/info/alternates": []byte(filepath.Join(p.repo.common, "objects") + "\n"),
		"HEAD":                        []byte("ref: refs/heads/none\n"), // without one it is no git directory
		"attributes":                  p.repo.forPlaces.attributes, "info/exclude": exclude,
		"config": config, "link": linkText(p.GitDir()),
	}
	for name, data := range files {
		err = cmp.Or(err, p.write(root, name, data))
	}
	for _, name := range written {
		err = cmp.Or(err, linkTo(filepath.Join(p.Dir, name), filepath.Join(p.GitDir(), name)))
	}
	for _, name := range []string{"info/attributes", "shallow"} {
		err = cmp.Or(err, linkTo(filepath.Join(p.Dir, name), filepath.Join(p.repo.common, name)))
	}
	if err := cmp.Or(err, LinkKeys(p.repo.common, p.GitDir())); err != nil || !isNew {
		return err
	}
	if err := cmp.Or(LinkOthers(p.repo.common, p.Dir), LinkOthers(p.repo.common, p.GitDir()), p.Refresh()); err != nil {
		return err
	}
	return p.adopt(root, admin) // with HEAD, by which the place is not new any more
}

const leftoversName = "leftovers"

// LeaveOut adds patterns of files that do not land to the exclude file of the place, before those of the user, which
// can take them back. It reports whether there was a new one.
func (p *Place) LeaveOut(patterns []string) (isNew bool, err error) {
	left := p.Leftovers()
	lines := missingLines(left, patterns)
	if lines == "" {
		return false, nil
	}
	err = durable.WriteBelow(p.Dir, filepath.Join(p.Dir, leftoversName), append(left, lines...))
	return true, cmp.Or(err, p.make(registrationOf(p.repo.common, p.Tree)))
}

// Leftovers returns the lines that LeaveOut has written. A place that an older muster has made has none.
func (p *Place) Leftovers() []byte {
	left, _ := p.read(leftoversName, maxExclude)
	return left
}

// own are the names in a git directory that the repository and a place each have for themselves.
var own = []string{"HEAD", "FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "config", "config.worktree", "hooks", "index",
	"logs", "modules", "muster", "objects", packedRefs, "refs", "worktrees", lfsName, "git-crypt"}

// LinkOthers lets what programs keep in the repository's git directory be found in another one: filters look for their
// keys there. A sandbox says which of them can be read.
func LinkOthers(common, dir string) error {
	entries, err := os.ReadDir(common)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(own, name) || strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "MERGE_") {
			continue
		}
		if err := linkTo(filepath.Join(dir, name), filepath.Join(common, name)); err != nil {
			return err
		}
	}
	return nil
}

// linkTo makes a symbolic link to a path, unless something has its name. It is relative: the repository may move.
func linkTo(link, path string) error {
	to, err := filepath.Rel(filepath.Dir(link), path)
	if err == nil {
		err = os.Symlink(to, link)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// adopt gives a new place what git keeps of the registered worktree. No command has run there yet.
func (p *Place) adopt(root *os.Root, admin string) error {
	made, _ := p.repo.refValue(p.ref) // no log says so where the user's git keeps none
	if err := durable.New(durable.OS{}).Replace(filepath.Join(admin, placeMark), []byte(made+"\n")); err != nil {
		return err
	}
	for _, name := range []string{"index", "info/sparse-checkout", "ORIG_HEAD", "logs/HEAD", "HEAD"} { // HEAD goes last
		from := filepath.Join(admin, filepath.FromSlash(name))
		info, err := os.Stat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		data, readErr := durable.ReadRegular(from, MaxFile)
		if err := cmp.Or(err, readErr); err != nil {
			return err
		}
		to := path.Join(gitName, name)
		// git compares the time of an index with those of files.
		if err := cmp.Or(p.write(root, to, data), root.Chtimes(to, info.ModTime(), info.ModTime())); err != nil {
			return err
		}
	}
	return nil
}

// placeMark is the name of a file in the registration of a worktree for which muster has made a place. It has the
// commit at which the branch of a lane was then.
const placeMark = "muster-place"

// HasPlace reports whether muster has made a place for the registered worktree at tree. common is the repository's
// common directory.
func HasPlace(common, tree string) bool {
	admin := registrationOf(common, tree)
	return admin != "" && !durable.IsMissing(filepath.Join(admin, placeMark))
}

// Head returns what HEAD is in the place: refs/heads/..., or a commit. ok is false where a command has made it
// something else.
func (p *Place) Head() (head string, ok bool) {
	data, _ := p.read("git/HEAD", maxRef) // what cannot be read is no HEAD
	head, isBranch := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	if isBranch {
		return head, strings.HasPrefix(head, "refs/") && !strings.ContainsAny(head, "\n\x00")
	}
	return head, head != "" && IsID(head)
}

// PlaceHead returns what HEAD points to in a worktree with a place, as commands have made it: refs/heads/..., or "HEAD"
// when it is detached. ok is false when tree is no such worktree of this repository, or when only git can tell.
func PlaceHead(r *Repo, tree string) (head string, ok bool) {
	admin := AdminDir(r.common, tree)
	if admin == "" {
		return "", false
	}
	users, isUsual := strings.CutPrefix(readLine(filepath.Join(admin, "HEAD")), "ref: ")
	lanes := "refs/heads/wt/" + filepath.Base(tree)
	switch {
	case isUsual && users != lanes: // the user has switched to another branch, whose files are there now
		return users, strings.HasPrefix(users, "refs/heads/")
	case !isUsual && (users == "" || !IsID(users)):
		return "", false
	}
	p := &Place{repo: r, Tree: tree, Dir: placeDir(r.common, tree)}
	head, ok = p.Head()
	if !ok || IsID(head) || !isUsual && head == lanes {
		return "HEAD", ok
	}
	if id, isKnown := r.refValue(head); isKnown && id != "" {
		return head, true
	}
	// A branch that commands have made. Those of lanes are muster's.
	_, err := p.read(path.Join(gitName, head), maxRef)
	return head, err == nil && !strings.HasPrefix(head, "refs/heads/wt/")
}

// Pending returns the commit that a file such as MERGE_HEAD names, "" when there is none. Commands may have written
// any.
func (p *Place) Pending(name string) string {
	data, err := p.read(path.Join(gitName, name), maxRef)
	id, _, _ := strings.Cut(string(data), "\n") // a merge of several commits has a line of each
	if err != nil || !IsID(id) {
		return ""
	}
	return id
}

// IsSparse reports whether the working tree leaves out files of its commit: as the user's checkout does, or as a
// command has wished.
func (p *Place) IsSparse() bool {
	st, err := os.Lstat(filepath.Join(p.GitDir(), "info", "sparse-checkout"))
	return err == nil && st.Mode().IsRegular()
}

// Finish removes what says that a merge, a cherry-pick or a revert is under way: muster has committed it.
func (p *Place) Finish() error {
	root, err := os.OpenRoot(p.GitDir())
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_AUTOSTASH", "AUTO_MERGE",
		"SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer"} {
		err = cmp.Or(err, root.RemoveAll(name))
	}
	return err
}

// CopyIndex copies the index of the place to a file, with its time: git compares the content of a file that was written
// in the second of its index. An index that is missing is an empty one to git.
func (p *Place) CopyIndex(to string) error {
	from, err := durable.OpenBelow(p.Dir, filepath.Join(p.GitDir(), "index"), os.O_RDONLY, 0)
	if err != nil {
		return ignoreMissing(err)
	}
	defer from.Close()
	info, err := from.Stat() // before it is read: one that is written meanwhile is younger, which is no harm
	if err == nil && info.Size() > MaxFile {
		err = durable.ErrTooLarge
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(from, MaxFile))
	return errors.Join(err, file.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// makeDir makes a directory of the place and the missing ones above it. What a program has put in the place of one, a
// link or a file, goes, and directories that it has closed are opened.
func makeDir(root *os.Root, dir string) error {
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		st, err := root.Lstat(at)
		if err == nil && !st.IsDir() {
			err = cmp.Or(root.Remove(at), fs.ErrNotExist)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = root.Mkdir(at, 0o700)
		} else if err == nil && st.Mode().Perm()&0o700 != 0o700 {
			err = root.Chmod(at, 0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
			return err
		}
	}
	return nil
}

func (p *Place) read(name string, limit int64) ([]byte, error) {
	return durable.ReadBelow(p.Dir, filepath.Join(p.Dir, filepath.FromSlash(name)), limit)
}

// write replaces a file of the place, unless it has the content already. Whatever a program has put in its way goes.
func (p *Place) write(root *os.Root, name string, data []byte) error {
	if is, err := p.read(name, MaxFile); err == nil && bytes.Equal(is, data) {
		return nil
	}
	if err := makeDir(root, path.Dir(name)); err != nil {
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

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Run runs git in the working tree, confined, and returns its standard output. Errors: *ExitError, or the context's.
func (p *Place) Run(ctx context.Context, args ...string) (string, error) {
	return p.Do(ctx, Call{Args: args})
}

// Committed tells the place that the runtime has committed its index to the lane's branch.
func (p *Place) Committed(ctx context.Context) error {
	if err := p.Finish(); err != nil {
		return err
	}
	if err := p.Refresh(); err != nil {
		return err
	}
	return p.showBranch(ctx)
}
