package git

import (
	"bytes"
	"cmp"
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
)

// A Fingerprint is what of a repository is the user's, as it was at one moment: HEAD, index, branches, tags, stash,
// config, hooks, replaced objects and the main working tree. Two of them tell what changed in between. To take one
// costs a stat of each file of the working tree, and no git process as long as nothing has changed.
type Fingerprint struct {
	head  string
	refs  map[string]looseRef // by name; packed ones have no stamp
	index string              // a hash of what is staged
	tree  tree                // the main working tree
	plain map[string]stamp    // config, hooks and other files of the git directory, by what people call them

	packed     map[string]string // the packed refs
	packedAt   stamp
	indexStamp stamp
}

// looseRef is a ref, with the stamp of its file when it has one.
type looseRef struct {
	at    string
	stamp stamp
}

// maxWatched is how many files of a working tree a fingerprint has. Of a larger one it has the first.
const maxWatched = 50_000

// TakeFingerprint takes the fingerprint of a repository. before is the last one, from which everything is taken that
// cannot have changed; nil takes all anew. skip says which refs are not the user's.
func TakeFingerprint(
	ctx context.Context, r *Repo, before *Fingerprint, skip func(ref string) bool,
) (*Fingerprint, error) {
	f := &Fingerprint{head: readLine(filepath.Join(r.common, "HEAD"))}
	last := before
	if last == nil {
		last = &Fingerprint{}
	}
	for _, take := range []func(context.Context, *Repo, *Fingerprint, func(string) bool) error{
		f.takeRefs, f.takeIndex, f.takePlain, f.takeTree,
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
		data, _ := os.ReadFile(path) // one that is missing has no refs
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
		if id, ref, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && isID(id) && id != "" {
			all[ref] = id
		}
	}
	return all
}

// takeIndex hashes what is staged in the main working tree. An index that only has other times of the files is the
// same.
func (f *Fingerprint) takeIndex(ctx context.Context, r *Repo, last *Fingerprint, _ func(string) bool) error {
	f.indexStamp = stampOf(filepath.Join(r.common, "index"))
	if f.indexStamp == last.indexStamp {
		f.index = last.index
		return nil
	}
	out, err := r.Run(ctx, r.root, "ls-files", "-z", "--stage", "-v")
	f.index = fmt.Sprintf("%x", sha256.Sum256([]byte(out)))
	return err
}

// takePlain takes the stamps of the config, of the hooks, and of the files that change what git makes of objects.
func (f *Fingerprint) takePlain(_ context.Context, r *Repo, _ *Fingerprint, _ func(string) bool) error {
	f.plain = map[string]stamp{}
	for _, name := range []string{"config", "config.worktree", "info/attributes", "info/exclude", "info/grafts",
		"info/sparse-checkout", "objects/info/alternates", "shallow", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
		"rebase-merge", "rebase-apply", "logs/refs/stash"} {
		f.plain[".git/"+name] = stampOf(filepath.Join(r.common, filepath.FromSlash(name)))
	}
	hooks, _ := os.ReadDir(filepath.Join(r.common, "hooks")) // there may be none
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") {
			f.plain[".git/hooks/"+h.Name()] = stampOf(filepath.Join(r.common, "hooks", h.Name()))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		f.plain["~/.gitconfig"] = stampOf(filepath.Join(home, ".gitconfig"))
	}
	if dir, err := os.UserConfigDir(); err == nil {
		f.plain["your git/config"] = stampOf(filepath.Join(dir, "git", "config"))
	}
	return nil
}

// A tree is the files of a working tree, tracked or not ignored, and the directories that they are in.
type tree struct {
	names  []string // sorted: files, then directories, relative to the root
	files  int      // how many of the names are files
	stamps []stamp  // of each name
}

// takeTree takes the stamps of the files. git is asked for their names when a directory has changed: a file has come or
// gone there.
func (f *Fingerprint) takeTree(ctx context.Context, r *Repo, last *Fingerprint, _ func(string) bool) error {
	f.tree = last.tree
	f.tree.stamps = stampsBelow(r.root, f.tree.names)
	was := last.tree
	if was.names != nil && slices.Equal(f.tree.stamps[was.files:], was.stamps[was.files:]) {
		return nil
	}
	// Nested repositories and submodules are listed as directories: what is in them is not watched.
	names, _ := ListFiles(ctx, r.root) // none in an empty tree
	names = slices.Clone(names[:min(len(names), maxWatched)])
	slices.Sort(names)
	f.tree.files = len(names)
	dirs := map[string]bool{".": true}
	for _, file := range names {
		for dir := path.Dir(file); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	f.tree.names = slices.AppendSeq(names, maps.Keys(dirs))
	f.tree.stamps = stampsBelow(r.root, f.tree.names)
	return context.Cause(ctx)
}

// stampsByName are the stamps of the files.
func (t tree) stampsByName() map[string]stamp {
	all := make(map[string]stamp, t.files)
	for i, name := range t.names[:t.files] {
		all[name] = t.stamps[i]
	}
	return all
}

// changed returns the names of the files that are not as they were.
func (t tree) changed(was tree) []string {
	if slices.Equal(t.stamps, was.stamps) && slices.Equal(t.names, was.names) {
		return nil
	}
	return differences(t.stampsByName(), was.stampsByName())
}

// UsersCommits returns where the user's branches, tags and HEAD are.
func (f *Fingerprint) UsersCommits() map[string]string {
	all := map[string]string{}
	if f.head != "" && isID(f.head) {
		all["HEAD"] = f.head
	}
	for ref, r := range f.refs {
		kind, _, _ := strings.Cut(strings.TrimPrefix(ref, "refs/"), "/")
		if isID(r.at) && r.at != "" && slices.Contains([]string{"heads", "tags", "remotes"}, kind) {
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
	at := func(refs map[string]looseRef) map[string]string {
		values := map[string]string{}
		for ref, r := range refs {
			values[ref] = r.at
		}
		return values
	}
	names := differences(at(f.refs), at(before.refs))
	for i, ref := range names {
		names[i] = shortRef(ref)
	}
	if len(names) > 0 {
		changes = append(changes, "refs: "+nameList(names))
	}
	if names := differences(f.plain, before.plain); len(names) > 0 {
		changes = append(changes, nameList(names))
	}
	if names := f.tree.changed(before.tree); len(names) > 0 {
		changes = append(changes, "files of your checkout: "+nameList(names))
	}
	return changes
}

// shortRef is a ref as people say it.
func shortRef(ref string) string {
	ref = strings.TrimPrefix(ref, "ref: ")
	if isID(ref) && ref != "" {
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

// differences returns the sorted keys whose values differ, or that only one of the two has.
func differences[V comparable](now, before map[string]V) []string {
	var zero V
	names := map[string]bool{}
	for name, value := range now {
		if old, ok := before[name]; old != value || !ok && value != zero {
			names[name] = true
		}
	}
	for name, value := range before {
		if _, ok := now[name]; !ok && value != zero {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// nameList names at most ten.
func nameList(names []string) string {
	const most = 10
	var b bytes.Buffer
	b.WriteString(strings.Join(names[:min(len(names), most)], ", "))
	if more := len(names) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return cmp.Or(b.String(), "nothing")
}
