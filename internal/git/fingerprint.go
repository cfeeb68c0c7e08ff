package git

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/text"
)

// A Fingerprint is what of a repository is the user's, as it was at one moment: HEAD, index, branches, tags, stash,
// config, hooks, replaced objects and the main working tree. Two of them tell what changed in between. To take one
// costs two git processes and a look at each file of the working tree, so it is taken only where no sandbox keeps
// members from what is the user's.
type Fingerprint struct {
	root  string // of the main working tree
	head  string
	refs  map[string]string // by name
	files map[string]string // stamps of the files of the main working tree that are tracked or not ignored, by name
	plain map[string]string // a hash of the index, and of each config, hook and other file, by what people call it
}

const (
	theIndex   = "the index" // what people call what is staged
	maxWatched = 50_000      // files of a working tree that a fingerprint has; of a larger one it has the first
)

// TakeFingerprint takes the fingerprint of a repository. skip says which refs are not the user's, and which linked
// worktrees, by their directories. Where git cannot read the repository, because an agent has broken its config, the
// fingerprint has of refs, index and names of files what before has; before may be nil.
func TakeFingerprint(
	ctx context.Context, r *Repo, before *Fingerprint, skip func(ref string) bool,
) (*Fingerprint, error) {
	f := &Fingerprint{root: r.root, head: readLine(filepath.Join(r.common, "HEAD")), files: map[string]string{}}
	f.takePlain(r, skip)
	names, err := f.askGit(ctx, r, skip)
	switch {
	case err != nil && (ctx.Err() != nil || before == nil):
		return nil, err
	case err != nil:
		f.refs, f.plain[theIndex] = before.refs, before.plain[theIndex]
		names = slices.Collect(maps.Keys(before.files))
	}
	for _, name := range names {
		f.files[name] = stampOf(filepath.Join(r.root, filepath.FromSlash(name)))
	}
	return f, nil
}

// askGit takes the refs, and hashes what is staged in the main working tree: an index that only has other times of the
// files is the same. It returns the names of the files. Nested repositories and submodules are named as directories:
// what is in them is not watched.
func (f *Fingerprint) askGit(ctx context.Context, r *Repo, skip func(string) bool) (names []string, err error) {
	if f.refs, err = r.Refs(ctx); err != nil {
		return nil, err
	}
	maps.DeleteFunc(f.refs, func(ref, _ string) bool { return skip(ref) })
	out, err := r.Run(ctx, r.root, "ls-files", "-z", "--stage", "-v", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	staged := sha256.New()
	own, _ := filepath.Rel(r.root, r.common) // of a bare repository beside its worktrees it is no .git
	for _, entry := range SplitNUL(out) {
		name, isOther := strings.CutPrefix(entry, "? ")
		if isOther && strings.HasPrefix(name, filepath.ToSlash(own)+"/") {
			continue
		}
		if !isOther {
			staged.Write([]byte(entry + "\x00"))
			_, name, _ = strings.Cut(entry, "\t")
		}
		names = append(names, name)
	}
	f.plain[theIndex] = string(staged.Sum(nil))
	slices.Sort(names)
	return names[:min(len(names), maxWatched)], nil
}

// stampOf tells whether a file has changed since it was looked at; "" where there is none. The time of the last change
// of its attributes is a part: no program can set that back.
func stampOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	changed, _ := durable.ChangeOf(info)
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), changed)
}

// contentOf returns a hash of the mode and the content of a file, "" where there is none. A file that is written anew
// as it was, as git writes its config, has not changed. A directory counts by being there.
func contentOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	data, _ := readFile(path)
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%v %x", info.Mode(), sum)
}

// takePlain takes the config, the hooks, the linked worktrees, and the files that change what git makes of objects.
func (f *Fingerprint) takePlain(r *Repo, skip func(string) bool) {
	f.plain = map[string]string{}
	add := func(name, path string) { f.plain[name] = contentOf(path) }
	names := []string{"config", "config.worktree", "info/attributes", "info/exclude", "info/grafts",
		"info/sparse-checkout", "objects/info/alternates", "shallow", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD",
		"rebase-merge", "rebase-apply", "logs/refs/stash"}
	hooks, _ := os.ReadDir(filepath.Join(r.common, "hooks")) // there may be none
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") {
			names = append(names, "hooks/"+h.Name())
		}
	}
	for _, name := range names {
		add(".git/"+name, filepath.Join(r.common, filepath.FromSlash(name)))
	}
	if log, err := os.Lstat(filepath.Join(r.common, "logs", "HEAD")); err == nil && log.Size() > 0 {
		f.plain[".git/logs/HEAD"] = "there" // it grows all the time
	}
	linked, _ := registrations(r.common) // what cannot be read is none of git's
	for _, admin := range linked {
		branch := strings.TrimPrefix(readLine(filepath.Join(admin, "HEAD")), "ref: ")
		if !skip(branch) && !skip(filepath.Dir(linkOf(admin))) {
			add("the worktree "+filepath.Base(admin), filepath.Join(admin, "HEAD"))
		}
	}
	users := []string{"~/.gitconfig", usersFile("config")}
	for _, s := range r.userFiles {
		users = append(users, s.Value)
	}
	for _, name := range users {
		// What is a link in many homes is followed. Without a home the path is relative.
		path := expandHome(name)
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			add(name, real)
		}
	}
}

// Changes says what is different from an earlier fingerprint, in words for people, each with names; nothing when
// nothing is.
func (f *Fingerprint) Changes(before *Fingerprint) (changes []string) {
	if f.head != before.head {
		changes = append(changes, fmt.Sprintf("HEAD (%s, was %s)", shortRef(f.head), shortRef(before.head)))
	}
	add := func(what string, names []string) {
		if len(names) > 0 {
			changes = append(changes, what+text.List(names, 10))
		}
	}
	refs := differences(f.refs, before.refs)
	for i, ref := range refs {
		refs[i] = shortRef(ref)
	}
	add("refs: ", refs)
	add("", differences(f.plain, before.plain))
	add(ChangedFiles, slices.DeleteFunc(differences(f.files, before.files), f.isOwnOutput))
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

func shortRef(ref string) string {
	ref = strings.TrimPrefix(ref, "ref: ")
	if IsID(ref) && ref != "" {
		return ref[:7]
	}
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/remotes/")
	if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
		return "tag " + tag
	}
	if ref == "refs/stash" {
		return "the stash"
	}
	return ref
}

// differences returns the sorted keys whose entries differ. A missing entry is "".
func differences(now, before map[string]string) []string {
	all := maps.Clone(now)
	maps.Copy(all, before)
	maps.DeleteFunc(all, func(name, _ string) bool { return now[name] == before[name] })
	return slices.Sorted(maps.Keys(all))
}
