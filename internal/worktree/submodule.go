package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/text"
)

// gitlink is the mode of a tree entry that names a commit of another repository.
const gitlink = "160000"

// submoduleRefs is where commits of submodules are kept that no upstream may have: refs/muster/submodules/ID.
const submoduleRefs = "refs/muster/submodules/"

// errUnclear is the reason why a submodule is left alone.
var errUnclear = errors.New("it is not a repository of this lane")

// link is a submodule that is checked out in a lane, with the commit that the lane's tree is to name.
type link struct{ file, commit string }

// submodules commits what is changed in the submodules that are checked out in the lane, or, when a copy of the index
// is staged to, makes such a commit beside their HEAD. It keeps the objects of each commit that the lane's base does
// not name in a repository that stays when the lane goes. What cannot be kept is refused.
func (s staging) submodules(ctx context.Context, entries []indexEntry) (links []link, err error) {
	var names map[string]string // of what the target names
	for _, e := range entries {
		if e.mode != gitlink {
			continue
		}
		path := filepath.Join(s.lane.Path, filepath.FromSlash(e.file))
		if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
			continue // gone, or a link now: git stages that
		}
		if durable.IsMissing(filepath.Join(path, ".git")) {
			if err := s.refuseStrayFiles(path, e.file); err != nil {
				return nil, err
			}
			continue
		}
		if names == nil {
			if names, err = s.moduleNames(ctx); err != nil {
				return nil, err
			}
		}
		if names[e.file] == "" {
			return nil, s.innerError([]string{e.file})
		}
		commit, err := s.submodule(ctx, path, e)
		if err != nil {
			return nil, err
		}
		links = append(links, link{e.file, commit})
	}
	return links, nil
}

// refuseStrayFiles refuses files in the directory of a submodule that is not checked out: git looks past them.
func (s staging) refuseStrayFiles(path, file string) error {
	found, err := os.ReadDir(path)
	if err != nil || len(found) == 0 { // a file in place of the directory is staged as one
		return nil
	}
	return muster.Errorf(muster.Invalid, "the files in %s would not land: it is a submodule, which is not checked out "+
		"in the lane %s", file, s.lane.Name).
		WithHint("move them away, git submodule update --init %s, and move them back", text.ShellQuote(file))
}

// submodule returns the commit that holds all of a submodule, after it was kept.
func (s staging) submodule(ctx context.Context, path string, e indexEntry) (commit string, err error) {
	if err := s.checkSubmodule(ctx, path, e.file); err != nil {
		return "", muster.Errorf(muster.Invalid, "the submodule %s cannot be committed: %w", e.file, err).
			WithHint("put it back: rm -rf %[1]s && git submodule update --init %[1]s", e.file)
	}
	sub := s.checkout
	sub.lane, sub.isSubmodule = muster.Lane{Name: s.lane.Name, Path: path}, true
	head, err := s.repo.ResolveIn(ctx, path, "HEAD")
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "the submodule %s has no commit at its HEAD", e.file)
	}
	if s.env != nil {
		commit, _, err = sub.snapshotOn(ctx, head, "")
	} else {
		commit, err = sub.commit(ctx, fmt.Sprintf("Work in the lane %s\n", s.lane.Name))
	}
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "the submodule %s cannot be committed: %w", e.file, err).
			WithHint("%s", muster.HintOf(err))
	}
	base, err := s.baseLink(ctx, e.file)
	if err != nil {
		return "", err
	}
	// What the owner has staged stays where it says all that there is.
	if e.id != base && e.id != commit && s.isSameTree(ctx, path, e.id, commit) {
		commit = e.id
	}
	if commit == base {
		return commit, nil // it came from upstream
	}
	if err := s.keep(ctx, path, e.file, commit, base); err != nil {
		return "", muster.Errorf(muster.Invalid, "the commit of the submodule %s cannot be kept: %w", e.file, err).
			WithHint("git -C %s fetch --unshallow", text.ShellQuote(e.file))
	}
	return commit, nil
}

// baseLink returns the commit of the submodule that the lane's base names, "" when it names none.
func (s staging) baseLink(ctx context.Context, file string) (string, error) {
	if s.lane.Base == "" {
		return "", nil
	}
	out, err := s.git(ctx, "", "ls-tree", "-z", "--format=%(objectname)", s.lane.Base, "--", file)
	return strings.TrimRight(out, "\x00"), err
}

// isSameTree reports whether two commits of the repository at dir have the same files.
func (s staging) isSameTree(ctx context.Context, dir, a, b string) bool {
	out, err := s.repo.Run(ctx, dir, "rev-parse", a+"^{tree}", b+"^{tree}")
	trees := strings.Fields(out)
	return err == nil && len(trees) == 2 && trees[0] == trees[1]
}

// checkSubmodule returns an error unless git may run in the repository at path, which is file in the checkout. The target
// must name it, its git directory must lie in the lane or in the lane's git directory and lead to no other place, and
// its working tree must be path: anything else a member has made, to have the runtime's git work somewhere else.
func (c checkout) checkSubmodule(ctx context.Context, path, file string) error {
	names, err := c.moduleNames(ctx)
	if err != nil {
		return err
	}
	if names[file] == "" {
		return errors.New("the .gitmodules of the target does not name it")
	}
	dir, err := git.NestedDir(path)
	if err != nil {
		return err
	}
	if !c.isOwn(dir) {
		return errUnclear
	}
	out, err := c.repo.Run(ctx, path, "rev-parse", "--absolute-git-dir", "--show-toplevel")
	if err != nil {
		return err
	}
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(line) != 2 || filepath.FromSlash(line[1]) != path || !isSamePath(line[0], dir) {
		return errUnclear
	}
	return nil
}

// isOwn reports whether a git directory lies in the lane or in the lane's git directory.
func (c checkout) isOwn(dir string) bool {
	for _, top := range []string{c.lane.Path, filepath.Join(git.DirOf(c.lane.Path), "modules")} {
		if real, err := filepath.EvalSymlinks(top); err == nil {
			if rel, err := filepath.Rel(real, dir); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}

// keep copies a commit of the submodule at path, with all that it needs, into a repository that stays: the submodule of
// the user's checkout, where git submodule update finds it, or else the repository of the lanes. A ref keeps it there.
// The objects are on the disk before the ref names them.
func (s staging) keep(ctx context.Context, path, file, commit, base string) error {
	dest, env, revisions := s.repo.CommonDir(), []string(nil), commit+"\n"
	if theirs := s.userModule(ctx, file); theirs != "" {
		dest, env = theirs, []string{"GIT_DIR=" + theirs}
		// What the user's submodule has already is left out.
		if base != "" && s.has(ctx, theirs, env, base) && s.has(ctx, path, nil, base) {
			revisions += "^" + base + "\n"
		}
	}
	if len(revisions) == len(commit)+1 {
		out, err := s.repo.Run(ctx, path, "rev-parse", "--is-shallow-repository")
		if err != nil || strings.TrimSpace(out) == "true" {
			return errors.Join(err, errors.New("it is a shallow clone, and its history is missing"))
		}
	}
	packs := filepath.Join(dest, "objects", "pack")
	_, err := s.repo.Do(ctx, git.Call{Dir: path, Stdin: revisions, Args: []string{"pack-objects", "--revs",
		"--non-empty", "--delta-base-offset", "--quiet", filepath.Join(packs, "pack")}})
	if err == nil {
		err = (durable.OS{}).SyncDir(packs)
	}
	if err != nil {
		return err
	}
	_, err = s.repo.Do(ctx, git.Call{Dir: dest, Env: env, Uninterruptible: true,
		Args: []string{"update-ref", submoduleRefs + commit, commit}})
	return err
}

// has reports whether the repository at dir has a commit.
func (s staging) has(ctx context.Context, dir string, env []string, commit string) bool {
	_, err := s.repo.Do(ctx, git.Call{Dir: dir, Env: env, Args: []string{"cat-file", "-e", commit + "^{commit}"}})
	return err == nil
}

// userModule returns the git directory that the submodule has for the user's checkout, "" when it has none.
func (s staging) userModule(ctx context.Context, file string) string {
	names, err := s.moduleNames(ctx)
	name := names[file]
	if err != nil || name == "" || !filepath.IsLocal(name) {
		return ""
	}
	modules := filepath.Join(s.repo.CommonDir(), "modules")
	dir := filepath.Join(modules, filepath.FromSlash(name))
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real != dir || durable.IsMissing(filepath.Join(dir, "HEAD")) {
		return ""
	}
	return dir
}

// moduleNames returns the names of the submodules by path, as the commit that the lane was made from and the target name
// them. What the lane's own .gitmodules says is a member's word. A submodule's own submodules are those of its HEAD.
func (c checkout) moduleNames(ctx context.Context) (map[string]string, error) {
	dir, commits := c.repo.CommonDir(), []string{cmp.Or(git.MadeAt(c.repo, branchRef(c.lane)), c.lane.Base), c.target}
	if c.isSubmodule {
		dir, commits = c.lane.Path, []string{"HEAD"}
	}
	names := map[string]string{}
	for _, commit := range commits {
		if commit == "" {
			continue
		}
		blob := commit + ":.gitmodules"
		if _, err := c.repo.Run(ctx, dir, "cat-file", "-e", blob); err != nil {
			if git.ExitCode(err) < 1 {
				return nil, err
			}
			continue // there is none
		}
		settings, err := c.repo.Config(ctx, git.Call{Dir: dir, Args: []string{"--blob", blob}}, `^submodule\..*\.path$`)
		if err != nil {
			return nil, c.commitError(ctx, err)
		}
		for key, path := range settings {
			names[path] = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		}
	}
	return names, nil
}

// isSubmoduleChanged reports whether a submodule that is checked out in the lane is at another commit than the index
// says, or has changes that are not committed. What cannot be told counts as changed.
func (c checkout) isSubmoduleChanged(ctx context.Context, entries []indexEntry) bool {
	for _, e := range entries {
		path := filepath.Join(c.lane.Path, filepath.FromSlash(e.file))
		if e.mode != gitlink || durable.IsMissing(path) {
			continue
		}
		if durable.IsMissing(filepath.Join(path, ".git")) {
			if found, err := os.ReadDir(path); err != nil || len(found) > 0 {
				return true
			}
			continue
		}
		if c.checkSubmodule(ctx, path, e.file) != nil {
			return true
		}
		head, err := c.repo.ResolveIn(ctx, path, "HEAD")
		if err != nil || head != e.id {
			return true
		}
		if dirty, err := c.repo.Status(ctx, path); err != nil || dirty {
			return true
		}
	}
	return false
}
