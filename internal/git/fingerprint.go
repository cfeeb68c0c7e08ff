package git

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/text"
)

// A Fingerprint is what of a repository is the user's, as it was at one moment: HEAD, index, branches, tags, stash,
// config, hooks, replaced objects and the main working tree. Two of them tell what changed in between. To take one
// costs a stat of each file of the working tree, and no git process as long as nothing has changed.
type Fingerprint struct {
	root  string // of the main working tree
	head  string
	refs  map[string]looseRef // by name; packed ones have no stamp
	index string              // a hash of what is staged
	tree  tree                // the main working tree
	plain map[string]content  // config, hooks and other files of the git directory, by what people call them

	packed     map[string]string // the packed refs
	packedAt   stamp
	indexStamp stamp
}

// looseRef is a ref, with the stamp of its file when it has one.
type looseRef struct {
	at    string
	stamp stamp
}

// content is what is in a file, with its stamp. A file that is written anew as it was, as git writes its config, has
// not changed.
type content struct {
	stamp stamp
	sum   [sha256.Size]byte // of its mode and its bytes
}

// contentOf reads a file, unless its stamp is that of last. One that is not there is the zero content.
func contentOf(path string, last content) content {
	now := content{stamp: stampOf(path)}
	if now.stamp == last.stamp {
		return last
	}
	data, _ := readFile(path) // a directory counts by being there
	now.sum = sha256.Sum256(fmt.Append(nil, now.stamp.mode, "\n", string(data)))
	if now.stamp == (stamp{}) {
		now.sum = [sha256.Size]byte{}
	}
	return now
}

// maxWatched is how many files of a working tree a fingerprint has. Of a larger one it has the first.
const maxWatched = 50_000

// TakeFingerprint takes the fingerprint of a repository. before is the last one, from which everything is taken that
// cannot have changed; nil takes all anew. skip says which refs are not the user's, and which linked worktrees, by
// their directories.
func TakeFingerprint(
	ctx context.Context, r *Repo, before *Fingerprint, skip func(ref string) bool,
) (*Fingerprint, error) {
	f := &Fingerprint{root: r.root, head: readLine(filepath.Join(r.common, "HEAD"))}
	last := before
	if last == nil {
		last = &Fingerprint{}
	}
	for _, take := range []func(context.Context, *Repo, *Fingerprint, func(string) bool) error{
		f.takeRefs, f.takePlain, f.takeFiles,
	} {
		if err := take(ctx, r, last, skip); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// takeRefs reads the refs from their files, and asks git where there are none.
func (f *Fingerprint) takeRefs(ctx context.Context, r *Repo, last *Fingerprint, skip func(string) bool) error {
	f.refs = map[string]looseRef{}
	if !r.files.areFiles() {
		return f.takeOddRefs(ctx, r, last, skip)
	}
	path := filepath.Join(r.common, "packed-refs")
	if f.packedAt = stampOf(path); f.packedAt == last.packedAt {
		f.packed = last.packed
	} else {
		data, _ := readFile(path) // one that is missing has no refs
		f.packed = parsePacked(string(data))
	}
	for ref, at := range f.packed {
		if !skip(ref) {
			f.refs[ref] = looseRef{at: at}
		}
	}
	top := filepath.Join(r.common, "refs")
	// What cannot be read, or vanishes meanwhile, is no ref.
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		ref := "refs" + filepath.ToSlash(strings.TrimPrefix(path, top))
		if err != nil || d.IsDir() {
			if err == nil && skip(ref+"/") {
				return fs.SkipDir
			}
			return nil
		}
		if skip(ref) || strings.HasSuffix(ref, ".lock") {
			return nil
		}
		now := looseRef{stamp: stampOf(path)}
		if old := last.refs[ref]; old.stamp == now.stamp {
			now.at = old.at
		} else {
			now.at = readLine(path)
		}
		f.refs[ref] = now
		return nil
	})
	return nil
}

// takeOddRefs asks git for the refs of a repository that keeps them in another form.
func (f *Fingerprint) takeOddRefs(ctx context.Context, r *Repo, last *Fingerprint, skip func(string) bool) error {
	if f.packedAt = stampOf(filepath.Join(r.common, "reftable", "tables.list")); f.packedAt == last.packedAt {
		f.refs = last.refs
		return nil
	}
	all, err := r.Refs(ctx)
	for ref, at := range all {
		if !skip(ref) {
			f.refs[ref] = looseRef{at: at}
		}
	}
	return err
}

// parsePacked reads packed-refs: lines "ID REF", beside comments and the peeled ids of tags.
func parsePacked(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if id, ref, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && IsID(id) && id != "" {
			all[ref] = id
		}
	}
	return all
}

// takePlain takes the config, the hooks, the linked worktrees, and the files that change what git makes of objects.
func (f *Fingerprint) takePlain(_ context.Context, r *Repo, last *Fingerprint, skip func(string) bool) error {
	f.plain = map[string]content{}
	add := func(name, path string) { f.plain[name] = contentOf(path, last.plain[name]) }
	for _, name := range []string{"config", "config.worktree", "info/attributes", "info/exclude", "info/grafts",
		"info/sparse-checkout", "objects/info/alternates", "shallow", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
		"rebase-merge", "rebase-apply", "logs/refs/stash"} {
		add(".git/"+name, filepath.Join(r.common, filepath.FromSlash(name)))
	}
	if log := stampOf(filepath.Join(r.common, "logs", "HEAD")); log.size > 0 { // it grows all the time
		f.plain[".git/logs/HEAD"] = content{stamp: stamp{size: 1}, sum: [sha256.Size]byte{1}}
	}
	hooks, _ := os.ReadDir(filepath.Join(r.common, "hooks")) // there may be none
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") {
			add(".git/hooks/"+h.Name(), filepath.Join(r.common, "hooks", h.Name()))
		}
	}
	linked, _ := os.ReadDir(filepath.Join(r.common, "worktrees")) // there may be none
	for _, w := range linked {
		admin := filepath.Join(r.common, "worktrees", w.Name())
		branch := strings.TrimPrefix(readLine(filepath.Join(admin, "HEAD")), "ref: ")
		if !skip(branch) && !skip(filepath.Dir(linkOf(admin))) {
			add("the worktree "+w.Name(), filepath.Join(admin, "HEAD"))
		}
	}
	users := []string{expandHome("~/.gitconfig"), filepath.Join(configHome(), "git", "config")}
	for _, p := range r.pinned {
		if p.key == excludesFile || p.key == attributesFile {
			users = append(users, expandHome(p.value))
		}
	}
	for _, path := range users {
		// What is a link in many homes is followed. Without a home the path is relative.
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			add(underHome(path), real)
		}
	}
	return nil
}

// A tree is the files of a working tree, tracked or not ignored, and the directories that they are in.
type tree struct {
	names  []string // sorted: files, then directories, relative to the root
	files  int      // how many of the names are files
	stamps []stamp  // of each name
}

// takeFiles hashes what is staged in the main working tree, and takes the stamps of its files. An index that only has
// other times of the files is the same. git is asked for the names of the files when a directory has changed: a file
// has come or gone there.
func (f *Fingerprint) takeFiles(ctx context.Context, r *Repo, last *Fingerprint, _ func(string) bool) error {
	f.indexStamp, f.index = stampOf(filepath.Join(r.common, "index")), last.index
	was := last.tree
	f.tree = was
	f.tree.stamps = stampsBelow(r.root, was.names)
	args := []string{"ls-files", "-z", "--stage", "-v"}
	if was.names == nil || !slices.Equal(f.tree.stamps[was.files:], was.stamps[was.files:]) {
		args = append(args, "--others", "--exclude-standard")
	} else if f.indexStamp == last.indexStamp {
		return nil
	}
	out, err := r.Run(ctx, r.root, args...)
	if err != nil && was.names != nil { // an agent may have broken the config: what was known is compared
		f.indexStamp = last.indexStamp
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	staged, names := sha256.New(), []string(nil)
	for _, entry := range SplitNUL(out) {
		name, isOther := strings.CutPrefix(entry, "? ")
		if !isOther {
			staged.Write([]byte(entry + "\x00"))
			_, name, _ = strings.Cut(entry, "\t")
		}
		names = append(names, name)
	}
	f.index = string(staged.Sum(nil))
	if slices.Contains(args, "--others") {
		f.tree = newTree(r.root, names)
	}
	return nil
}

// newTree takes the stamps of the named files, and of the directories that they are in. Nested repositories and
// submodules are named as directories: what is in them is not watched.
func newTree(root string, names []string) (t tree) {
	slices.Sort(names)
	names = slices.Compact(names) // a file in conflict is in the index more than once
	t.names = names[:min(len(names), maxWatched)]
	t.files = len(t.names)
	dirs := map[string]bool{".": true}
	for _, file := range t.names {
		for dir := path.Dir(file); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	t.names = slices.AppendSeq(slices.Clip(t.names), maps.Keys(dirs))
	t.stamps = stampsBelow(root, t.names)
	return t
}

// changed returns the names of the files that are not as they were.
func (t tree) changed(was tree) []string {
	if slices.Equal(t.stamps, was.stamps) && slices.Equal(t.names, was.names) {
		return nil
	}
	stamps := func(t tree) map[string]stamp {
		all := make(map[string]stamp, t.files)
		for i, name := range t.names[:t.files] {
			all[name] = t.stamps[i]
		}
		return all
	}
	return differences(stamps(t), stamps(was), func(s stamp) stamp { return s })
}

// UsersCommits returns where the user's branches, tags and HEAD are.
func (f *Fingerprint) UsersCommits() map[string]string {
	all := map[string]string{}
	if f.head != "" && IsID(f.head) {
		all["HEAD"] = f.head
	}
	for ref, r := range f.refs {
		kind, _, _ := strings.Cut(strings.TrimPrefix(ref, "refs/"), "/")
		if IsID(r.at) && r.at != "" && slices.Contains([]string{"heads", "tags", "remotes"}, kind) {
			all[ref] = r.at
		}
	}
	return all
}

// Changes says what is different from an earlier fingerprint, in words for people, each with names; nothing when
// nothing is.
func (f *Fingerprint) Changes(before *Fingerprint) (changes []string) {
	if f.head != before.head {
		changes = append(changes, fmt.Sprintf("HEAD (%s, was %s)", shortRef(f.head), shortRef(before.head)))
	}
	if f.index != before.index {
		changes = append(changes, "the index")
	}
	add := func(what string, names []string) {
		if len(names) > 0 {
			changes = append(changes, what+text.List(names, 10))
		}
	}
	refs := differences(f.refs, before.refs, func(r looseRef) string { return r.at })
	for i, ref := range refs {
		refs[i] = shortRef(ref)
	}
	add("refs: ", refs)
	add("", differences(f.plain, before.plain, func(c content) [sha256.Size]byte { return c.sum }))
	add(ChangedFiles, slices.DeleteFunc(f.tree.changed(before.tree), f.isOwnOutput))
	return changes
}

// ChangedFiles is how Changes begins what it says of the files of the working tree.
const ChangedFiles = "files of your checkout: "

// isOwnOutput reports whether a file of the working tree is where this program's own output goes.
func (f *Fingerprint) isOwnOutput(name string) bool {
	fi, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(name)))
	return err == nil && slices.ContainsFunc([]*os.File{os.Stdout, os.Stderr}, func(out *os.File) bool {
		own, err := out.Stat()
		return err == nil && os.SameFile(fi, own)
	})
}

// shortRef is a ref as people say it.
func shortRef(ref string) string {
	ref = strings.TrimPrefix(ref, "ref: ")
	if IsID(ref) && ref != "" {
		return ref[:7]
	}
	for _, kind := range []string{"refs/heads/", "refs/remotes/"} {
		ref = strings.TrimPrefix(ref, kind)
	}
	if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
		return "tag " + tag
	}
	if ref == "refs/stash" {
		return "the stash"
	}
	return ref
}

// differences returns the sorted keys whose entries differ by what is returns of them. A missing entry is the zero one.
func differences[T any, V comparable](now, before map[string]T, is func(T) V) (names []string) {
	for name := range now {
		if is(now[name]) != is(before[name]) {
			names = append(names, name)
		}
	}
	for name := range before {
		var zero T
		if _, ok := now[name]; !ok && is(before[name]) != is(zero) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
