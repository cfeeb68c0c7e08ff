package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/text"
)

// stage stages everything, after look has found what there is, and returns the tree. Ignored files are left out: they
// never land and are not archived. Whatever else would be left out, or would land in another form than the project
// wants, is an error: nothing that the owner did is silently missing in what lands.
func (c checkout) stage(ctx context.Context, found contents) (tree string, err error) {
	isHidden, err := c.unhide(ctx, found.entries)
	if err == nil && isHidden { // git has looked past some files
		found, err = c.look(ctx)
	}
	if err == nil && found.warned {
		err = c.refuseUnreadable(ctx)
	}
	if err == nil && len(found.inner) > 0 {
		err = c.innerError(found.inner)
	}
	if err == nil {
		err = c.refuseLarge(found.unstaged)
	}
	if err != nil {
		return "", err
	}
	// Before anything is staged: what a missing filter would have encrypted must not enter the repository.
	filtered, err := c.filtered(ctx, found.unstaged)
	if err != nil {
		return "", err
	}
	links, err := c.submodules(ctx, found.entries)
	if err != nil {
		return "", err
	}
	if n := len(found.unstaged); len(links) == 0 && len(filtered) == 0 && 0 < n && n <= maxNamed {
		tree, err := c.do(ctx, addNamed(found.unstaged))
		if err == nil || ctx.Err() != nil {
			return strings.TrimSpace(tree), err
		}
		// One of them may be gone by now. All that there is has no such trouble.
	}
	var calls []git.Call
	if len(found.unstaged)+len(links) > 0 {
		add, commits := []string{"add", "-A", "--sparse", "--", "."}, ""
		for file, commit := range links {
			add = append(add, ":(top,exclude,literal)"+file)
			commits += gitlink + " " + commit + "\t" + file + "\x00"
		}
		calls = append(calls, git.Call{Args: add})
		if commits != "" {
			calls = append(calls, git.Call{Args: []string{"update-index", "-z", "--index-info"}, Stdin: commits})
		}
	}
	if len(filtered) > 0 { // they pass the filter once more: the owner's own git may have staged them without
		again := addNamed(filtered)
		again.Script, again.Args[1] = "", "--renormalize"
		calls = append(calls, again)
	}
	for _, call := range append(calls, git.Call{Args: []string{"write-tree"}}) {
		if tree, err = c.git(ctx, call); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(tree), nil
}

// addNamed returns the call that stages these files, with which git does not look at the others once more, and prints
// the tree. --sparse: a lane is as sparse as the user's checkout, and what is made outside of that lands too.
func addNamed(files []string) git.Call {
	return git.Call{Script: `git "$@" && exec git write-tree`, Stdin: strings.Join(files, "\x00"),
		Args: []string{"add", "-A", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"},
		Env:  []string{"GIT_LITERAL_PATHSPECS=1"}}
}

const maxNamed = 100

// git is do with the error of a git that would not stage.
func (c checkout) git(ctx context.Context, call git.Call) (string, error) {
	out, err := c.do(ctx, call)
	if err != nil {
		return "", c.commitError(ctx, err)
	}
	return out, nil
}

type indexEntry struct {
	tag  string // of git ls-files -v: in lower case when the file is assumed to be unchanged, S when it is skipped
	mode string
	id   string
	file string
}

// contents are what a checkout and its git index hold.
type contents struct {
	entries  []indexEntry // of the index, but for the usual ones
	unmerged []string     // the files that are in conflict by the index, each once, sorted
	unstaged []string     // the files that differ from the index, the deleted and the new ones included, sorted
	inner    []string     // the git repositories inside the checkout that are no submodules
	warned   bool         // git could not read everything
	tree     string       // of the index, where it is a copy and nothing else is there
}

// lookScript lists what is in an index and beside it, without the usual entries: files that are not changed, in which
// git does not overlook a change, and whose names have no dots that could lead out of the lane. An index may have
// millions of these. The last entry is "whole" where git has succeeded; behind it is the tree of a copy of an index.
const lookScript = `{ git "$@" && printf 'whole\0'; } | tr '\000\n' '\n\000' |
	grep -a -v -E '^H 1[02]0[0-7]{3} [0-9a-f]+ 0	[^/.]([^.]|[.][^.])*$' | tr '\n\000' '\000\n'
[ -z "$GIT_INDEX_FILE" ] || git write-tree || :`

// look asks git once for all that there is, because each git reads the whole index. What the index tells git to look
// past is not among unstaged.
func (c checkout) look(ctx context.Context) (found contents, err error) {
	var fresh []string // neither tracked nor ignored
	call := git.Call{Script: lookScript, Warned: &found.warned,
		Args: []string{"ls-files", "-z", "-v", "--stage", "--others", "--modified", "--exclude-standard"}}
	out, err := c.do(ctx, call)
	end := strings.LastIndex(out, "\x00") + 1
	tree := strings.TrimSpace(out[end:])
	out, isWhole := strings.CutSuffix(out[:end], "whole\x00")
	if !isWhole && err == nil { // git alone says why
		call.Script, call.Out, call.MaxOut = "", io.Discard, math.MaxInt64
		if _, err = c.do(ctx, call); err == nil {
			err = errors.New("git does not list the whole index")
		}
	}
	if err != nil {
		return found, c.commitError(ctx, err)
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if file, isOther := strings.CutPrefix(line, "? "); isOther {
			// git does not look into another repository.
			if inner, isInner := strings.CutSuffix(file, "/"); isInner {
				found.inner = append(found.inner, inner)
			} else {
				fresh = append(fresh, file)
			}
			continue
		}
		meta, file, isEntry := strings.Cut(line, "\t")
		f := strings.Fields(meta) // TAG MODE ID STAGE
		if !isEntry || len(f) != 4 {
			continue
		}
		e := indexEntry{tag: f[0], mode: f[1], id: f[2], file: file}
		switch {
		case strings.Contains(file, "..") && !filepath.IsLocal(file) || strings.HasPrefix(file, "/"):
			// git 2.39 would stage what is there.
			return found, muster.Errorf(muster.Invalid, "the index of the lane names a file outside: %q", file).
				WithHint("git reset, in the lane")
		case strings.EqualFold(e.tag, "C"): // the entry is listed once more because the file differs
			found.unstaged = append(found.unstaged, file)
		default:
			found.entries = append(found.entries, e)
			if f[3] != "0" {
				found.unmerged = append(found.unmerged, file)
			}
		}
	}
	if isNew, err := c.leaveOut(ctx, fresh); err != nil {
		return found, err
	} else if isNew {
		return c.look(ctx)
	}
	found.unmerged, found.unstaged = sortedOnce(found.unmerged), sortedOnce(append(found.unstaged, fresh...))
	if !found.warned && len(found.entries)+len(found.unstaged)+len(found.inner) == 0 {
		found.tree = tree
	}
	return found, nil
}

func sortedOnce(files []string) []string {
	slices.Sort(files)
	return slices.Compact(files)
}

// hidden returns the files in which git would overlook changes: those assumed to be unchanged, and those skipped. What
// a sparse checkout leaves out is skipped rightly.
func (c checkout) hidden(ctx context.Context, entries []indexEntry) (assumed, skipped []string, err error) {
	var absent []string
	for _, e := range entries {
		if e.tag == strings.ToLower(e.tag) {
			assumed = append(assumed, e.file)
		}
		if !strings.EqualFold(e.tag, "S") {
			continue
		}
		if durable.IsMissing(filepath.Join(c.dir(), filepath.FromSlash(e.file))) {
			absent = append(absent, e.file)
		} else {
			skipped = append(skipped, e.file)
		}
	}
	if len(absent) == 0 {
		return assumed, skipped, nil
	}
	p, err := c.place(ctx)
	if err == nil && (c.sub != "" || !p.IsSparse()) {
		skipped = append(skipped, absent...) // they were deleted
	}
	return assumed, skipped, err
}

// unhide clears the marks by which git would overlook changes. isHidden reports whether there were any.
func (c checkout) unhide(ctx context.Context, entries []indexEntry) (isHidden bool, err error) {
	assumed, skipped, err := c.hidden(ctx, entries)
	if err != nil {
		return false, c.commitError(ctx, err)
	}
	for option, files := range map[string][]string{"--no-assume-unchanged": assumed, "--no-skip-worktree": skipped} {
		if len(files) == 0 {
			continue
		}
		if _, err := c.git(ctx, git.Call{Args: []string{"update-index", "-z", option, "--stdin"},
			Stdin: strings.Join(files, "\x00") + "\x00"}); err != nil {
			return true, err
		}
	}
	return len(assumed)+len(skipped) > 0, nil
}

// refuseLarge refuses more than can be taken over, before git reads it: a file of holes may have any length.
func (c checkout) refuseLarge(files []string) error {
	size, largest := git.SizeOf(c.dir(), files)
	if size <= git.MaxUnpacked {
		return nil
	}
	return muster.Errorf(muster.Invalid, "the changed files of the lane %s have %d MB, the largest of them is %s: at "+
		"most %d MB land at once", c.lane.Name, size>>20, largest, git.MaxUnpacked>>20).
		WithHint("what should not land belongs into .gitignore")
}

// innerError refuses git repositories inside the lane that .gitmodules does not name.
func (c checkout) innerError(dirs []string) error {
	return muster.Errorf(muster.Invalid, "the lane %s holds a git repository of its own in %s, which .gitmodules does "+
		"not name: its files would not land", c.lane.Name, text.List(dirs, maxRefused)).
		WithHint("remove its .git so that its files are the lane's, or move it out of the lane")
}

// unreadScript prints the first $most directories that git could not open, in git's words.
const unreadScript = `said=$(git "$@" 2>&1 >/dev/null) || exit
printf '%s\n' "$said" | sed -n "/: No such file or directory$/d; s/^warning: could not open directory '//p" |
	head -n "$most"`

// refuseUnreadable refuses directories that cannot be read and are not ignored: git warns of them, and leaves out what
// they hold.
func (c checkout) refuseUnreadable(ctx context.Context) error {
	out, err := c.git(ctx, git.Call{Script: unreadScript, Look: true, Env: []string{fmt.Sprint("most=", maxRefused+1)},
		Args: []string{"ls-files", "--others", "--exclude-standard"}})
	if err != nil {
		return err
	}
	var dirs []string
	for line := range strings.Lines(out) {
		dir, _, _ := strings.Cut(line, "': ")
		dirs = append(dirs, strings.TrimSuffix(dir, "/"))
	}
	if len(dirs) == 0 {
		return nil
	}
	return muster.Errorf(muster.Invalid, "what is in %s would not land: the directory cannot be read",
		text.List(dirs, maxRefused)).
		WithHint("chmod -R u+rwX %s; what should not land belongs into .gitignore", text.ShellQuote(dirs[0]))
}

const maxRefused = 5

// filterScript prints the filters of the files that it reads, and of those that the index has otherwise than the commit
// $1. Of a path outside git says that it is one, so that no failure is lost in the pipe.
const filterScript = `{
	cat
	[ -z "$1" ] || git diff-index --cached --name-only -z --no-renames --ignore-submodules=all "$1" -- || printf '/\0'
} | git check-attr -z --stdin filter`

// filtered returns the files that pass a filter when they are staged: of those that are not staged, and of those that
// the owner's own git has staged or committed. It refuses files whose filter cannot run: they would land in clear.
func (c checkout) filtered(ctx context.Context, unstaged []string) (passing []string, err error) {
	base := ""
	if c.sub == "" {
		base = c.lane.Base
	}
	if base == "" && len(unstaged) == 0 {
		return nil, nil
	}
	out, err := c.git(ctx, git.Call{Script: filterScript, Look: true, Args: []string{base},
		Stdin: strings.Join(append(slices.Clone(unstaged), ""), "\x00")})
	if err != nil {
		return nil, err
	}
	refused, name := []string{}, ""
	isFile := func(file string) bool { // only contents of files are filtered
		info, err := os.Lstat(filepath.Join(c.dir(), filepath.FromSlash(file)))
		return err == nil && info.Mode().IsRegular()
	}
	for f := range slices.Chunk(git.SplitNUL(out), 3) { // file, attribute, value
		switch {
		case len(f) < 3 || f[2] == "unspecified" || f[2] == "unset" || f[2] == "set" || !isFile(f[0]):
		case c.repo.Filter(f[2]) == git.FilterRuns:
			passing = append(passing, f[0])
		case name == "" || name == f[2]:
			refused, name = append(refused, f[0]), f[2]
		}
	}
	if len(refused) == 0 {
		return sortedOnce(passing), nil // one that is changed once more is there twice
	}
	refused = sortedOnce(refused)
	why, hint := "git's config does not name", "the user can set filter."+name+
		" in git's global config, or .gitattributes can leave these files out"
	if c.repo.Filter(name) == git.FilterUntrusted {
		why, hint = "only the repository's own config names", "the user can look at it and allow it: muster trust"
	}
	return nil, muster.Errorf(muster.Invalid, "%s cannot be committed: the attribute filter=%s wants a filter that "+
		"%s, so it does not run, and the content would land in clear", text.List(refused, maxRefused), name, why).
		WithHint("%s", hint)
}
