package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/text"
)

const gitlink = "160000"

// submoduleRefs is where commits of submodules are kept that no upstream may have: refs/muster/submodules/ID.
const submoduleRefs = "refs/muster/submodules/"

var errUnclear = errors.New("it is not a repository of this lane")

// submodules commits what is changed in the submodules that are checked out in the lane, or, when a copy of the index
// is staged to, makes such a commit beside their HEAD. It keeps the objects of each commit that the lane's base does
// not name in a repository that stays when the lane goes. What cannot be kept is refused. It returns the commits that
// the lane's tree is to name, by path.
func (c checkout) submodules(ctx context.Context, entries []indexEntry) (links map[string]string, err error) {
	links = map[string]string{}
	var names map[string]string // of what the target names
	for _, e := range entries {
		if e.mode != gitlink {
			continue
		}
		path := filepath.Join(c.dir(), filepath.FromSlash(e.file))
		if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
			continue // gone, or a link now: git stages that
		}
		if durable.IsMissing(filepath.Join(path, ".git")) {
			if err := c.refuseStrayFiles(path, e.file); err != nil {
				return nil, err
			}
			continue
		}
		if names == nil {
			if names, err = c.moduleNames(ctx); err != nil {
				return nil, err
			}
		}
		if names[e.file] == "" {
			return nil, c.innerError([]string{e.file})
		}
		commit, err := c.submodule(ctx, path, e)
		if err != nil {
			return nil, err
		}
		links[e.file] = commit
	}
	return links, nil
}

// refuseStrayFiles refuses files in the directory of a submodule that is not checked out: git looks past them.
func (c checkout) refuseStrayFiles(path, file string) error {
	found, err := os.ReadDir(path)
	if err != nil || len(found) == 0 { // a file in place of the directory is staged as one
		return nil
	}
	return muster.Errorf(muster.Invalid, "the files in %s would not land: it is a submodule, which is not checked out "+
		"in the lane %s", file, c.lane.Name).
		WithHint("move them away, git submodule update --init %s, and move them back", text.ShellQuote(file))
}

// submodule returns the commit that holds all of a submodule, after it was kept.
func (c checkout) submodule(ctx context.Context, path string, e indexEntry) (commit string, err error) {
	sub := c
	sub.sub, sub.index = path, ""
	base, err := c.baseLink(ctx, e.file)
	if err != nil {
		return "", err
	}
	if base != "" && sub.isUntouched(ctx, base) && (e.id == base || c.has(ctx, c.userModule(ctx, e.file), e.id)) {
		return e.id, nil // as it was, or as a merge has brought it
	}
	head, err := sub.head(ctx)
	if err == nil {
		err = sub.checkSubmodule(ctx)
	}
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "the submodule %s cannot be committed: %w", e.file, err).
			WithHint("put it back: rm -rf %[1]s && git submodule update --init %[1]s", e.file)
	}
	if c.index != "" {
		commit, err = sub.snapshotOn(ctx, head, "")
	} else {
		commit, err = sub.commit(ctx, fmt.Sprintf("Work in the lane %s\n", c.lane.Name))
	}
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "the submodule %s cannot be committed: %w", e.file, err).
			WithHint("%s", muster.HintOf(err))
	}
	// What the owner has staged stays where it says all that there is.
	if e.id != base && e.id != commit {
		staged, stagedErr := sub.treeOf(ctx, e.id)
		all, err := sub.treeOf(ctx, commit)
		if stagedErr == nil && err == nil && staged == all {
			commit = e.id
		}
	}
	if commit == base {
		return commit, nil // it came from upstream
	}
	if err := sub.keep(ctx, e.file, commit, base); err != nil {
		return "", muster.Errorf(muster.Invalid, "the commit of the submodule %s cannot be kept: %w", e.file, err).
			WithHint("%s", cmp.Or(muster.HintOf(err), "git -C "+text.ShellQuote(e.file)+" fetch --unshallow"))
	}
	return commit, nil
}

// untouchedScript succeeds where HEAD is at the commit $1, nothing is changed and no change is overlooked, and so in
// the submodules of the submodule.
const untouchedScript = `same() {
	[ "$(git rev-parse HEAD)" = "$1" ] && ! git ls-files -v | grep -q '^[a-zS]' &&
		said=$(git status --porcelain --untracked-files=all --ignore-submodules=all) && [ -z "$said" ] &&
		git ls-files -s | sed -n 's/^160000 \([^ ]*\) .\t/\1 /p' | while read -r id path; do
			(cd "$path" && if [ -e .git ]; then same "$id"; else said=$(ls -A) && [ -z "$said" ]; fi) || exit
		done
}
same "$1"`

// isUntouched reports whether the submodule is as it was checked out at a commit. What cannot be told is changed.
func (c checkout) isUntouched(ctx context.Context, commit string) bool {
	_, err := c.do(ctx, git.Call{Script: untouchedScript, Args: []string{commit}, Look: true})
	return err == nil
}

// checkSubmodule returns an error unless the repository of the submodule is the lane's own: its working tree is where
// the submodule is, and its git directory lies in the lane or in the git directory of the lane. Where nothing confines
// git, it would commit in any other.
func (c checkout) checkSubmodule(ctx context.Context) error {
	out, err := c.run(ctx, "rev-parse", "--absolute-git-dir", "--show-toplevel")
	if err != nil {
		return err
	}
	p, err := c.place(ctx)
	if err != nil {
		return err
	}
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(line) != 2 || filepath.FromSlash(line[1]) != c.sub {
		return errUnclear
	}
	dir, err := filepath.EvalSymlinks(filepath.FromSlash(line[0]))
	if err != nil {
		return err
	}
	for _, top := range append(p.Modules(), c.lane.Path) {
		if real, err := filepath.EvalSymlinks(top); err == nil {
			if rel, err := filepath.Rel(real, dir); err == nil && filepath.IsLocal(rel) {
				return nil
			}
		}
	}
	return errUnclear
}

// baseLink returns the commit of the submodule that the lane's base names, "" when it names none.
func (c checkout) baseLink(ctx context.Context, file string) (string, error) {
	if c.lane.Base == "" || c.sub != "" {
		return "", nil
	}
	out, err := c.git(ctx, git.Call{Args: []string{"ls-tree", "-z", "--format=%(objectname)", c.lane.Base, "--", file}})
	return strings.TrimRight(out, "\x00"), err
}

// keep copies a commit of the submodule, with all that it needs, into a repository that stays: the submodule of the
// user's checkout, where git submodule update finds it, or else the repository of the lanes. A ref keeps it there. The
// objects are on the disk before the ref names them.
func (c checkout) keep(ctx context.Context, file, commit, base string) error {
	p, err := c.place(ctx)
	if err != nil {
		return err
	}
	dest, have := c.repo.CommonDir(), []string(nil)
	if theirs := c.userModule(ctx, file); theirs != "" {
		dest = theirs
		// What the user's submodule has already is left out.
		if base != "" && c.has(ctx, theirs, base) {
			if _, err := c.run(ctx, "cat-file", "-e", base+"^{commit}"); err == nil {
				have = append(have, base)
			}
		}
	}
	if len(have) == 0 {
		out, err := c.run(ctx, "rev-parse", "--is-shallow-repository")
		if err != nil || strings.TrimSpace(out) == "true" {
			return errors.Join(err, errors.New("it is a shallow clone, and its history is missing"))
		}
	}
	if err := p.Take(ctx, c.sub, dest, []string{commit}, have); err != nil {
		return err
	}
	_, err = c.repo.Do(ctx, git.Call{Dir: c.repo.CommonDir(), Env: []string{"GIT_DIR=" + dest}, Uninterruptible: true,
		Args: []string{"update-ref", submoduleRefs + commit, commit}})
	return err
}

// has reports whether the user's repository with a git directory has a commit.
func (c checkout) has(ctx context.Context, dir, commit string) bool {
	_, err := c.repo.Do(ctx, git.Call{Dir: c.repo.CommonDir(), Env: []string{"GIT_DIR=" + dir},
		Args: []string{"cat-file", "-e", commit + "^{commit}"}})
	return err == nil
}

// userModule returns the git directory that the submodule has for the user's checkout, "" when it has none.
func (c checkout) userModule(ctx context.Context, file string) string {
	c.sub = ""
	names, err := c.moduleNames(ctx)
	name := names[file]
	if err != nil || name == "" || !filepath.IsLocal(name) {
		return ""
	}
	modules := filepath.Join(c.repo.CommonDir(), "modules")
	dir := filepath.Join(modules, filepath.FromSlash(name))
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real != dir || !slices.Contains(git.GitDirs(c.repo.CommonDir()), dir) {
		return ""
	}
	return dir
}

// moduleNames returns the names of the submodules that the .gitmodules of the checkout names, by path.
func (c checkout) moduleNames(ctx context.Context) (map[string]string, error) {
	if st, err := os.Lstat(filepath.Join(c.dir(), ".gitmodules")); err != nil || !st.Mode().IsRegular() {
		return nil, nil // git follows no link there
	}
	p, err := c.place(ctx)
	if err != nil {
		return nil, err
	}
	return p.SubmodulesNow(ctx, c.sub)
}

// isSubmoduleChanged reports whether a submodule that is checked out in the lane is at another commit than the index
// says, or has changes that are not committed. What cannot be told counts as changed.
func (c checkout) isSubmoduleChanged(ctx context.Context, entries []indexEntry) bool {
	return slices.ContainsFunc(entries, func(e indexEntry) bool {
		sub := c
		sub.sub = filepath.Join(c.dir(), filepath.FromSlash(e.file))
		if e.mode != gitlink || durable.IsMissing(sub.sub) {
			return false
		}
		if durable.IsMissing(filepath.Join(sub.sub, ".git")) {
			return c.refuseStrayFiles(sub.sub, e.file) != nil
		}
		return !sub.isUntouched(ctx, e.id)
	})
}
