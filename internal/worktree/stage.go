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

// staging adds everything in a checkout to its git index, or to another one that env names. Whatever would be left out
// or would land in another form than the project wants is an error: nothing that the owner did is silently missing in
// what lands.
type staging struct {
	checkout
	env    []string // names the index; nil is the checkout's own
	writes []string // the directory of that index
}

// stage stages everything, after look has found what there is, and returns the tree. Ignored files are left out: they
// never land and are not archived.
func (s staging) stage(ctx context.Context, found contents) (tree string, err error) {
	isHidden, err := s.unhide(ctx, found.entries)
	if err == nil && isHidden { // git has looked past some files
		found, err = s.look(ctx)
	}
	if err != nil {
		return "", err
	}
	if found.warned {
		if err := s.refuseUnreadable(ctx); err != nil {
			return "", err
		}
	}
	if len(found.inner) > 0 {
		return "", s.innerError(found.inner)
	}
	if err := s.refuseLarge(found.unstaged); err != nil {
		return "", err
	}
	// Before anything is staged: what a missing filter would have encrypted must not enter the repository.
	filtered, err := s.filtered(ctx, found.unstaged)
	if err != nil {
		return "", err
	}
	links, err := s.submodules(ctx, found.entries)
	if err != nil {
		return "", err
	}
	if n := len(found.unstaged); len(links) == 0 && len(filtered) == 0 && 0 < n && n <= maxNamed {
		call := addNamed(found.unstaged)
		call.Env, call.Write = append(call.Env, s.env...), s.writes
		out, err := s.do(ctx, call)
		if err == nil {
			return strings.TrimSpace(out), nil
		}
		if ctx.Err() != nil {
			return "", err
		}
		// One of them may be gone by now. All that there is has no such trouble.
	}
	if len(found.unstaged)+len(links) > 0 {
		args := []string{"add", "-A", "--sparse", "--", "."}
		commits := ""
		for _, l := range links {
			args = append(args, ":(top,exclude,literal)"+l.file)
			commits += gitlink + " " + l.commit + "\t" + l.file + "\x00"
		}
		if _, err := s.git(ctx, "", args...); err != nil {
			return "", err
		}
		if commits != "" {
			if _, err := s.git(ctx, commits, "update-index", "-z", "--index-info"); err != nil {
				return "", err
			}
		}
	}
	if len(filtered) > 0 { // they pass the filter once more: the owner's own git may have staged them without
		again := s
		again.env = append(slices.Clip(s.env), "GIT_LITERAL_PATHSPECS=1")
		if _, err := again.git(ctx, strings.Join(filtered, "\x00"), "add", "--renormalize", "--sparse",
			"--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return "", err
		}
	}
	out, err := s.git(ctx, "", "write-tree")
	return strings.TrimSpace(out), err
}

// addNamed returns the call that stages these files and prints the tree. With none of them named git looks at each file
// of the project once more. --sparse: a lane is as sparse as the user's checkout, and what is made outside of that
// lands too.
func addNamed(files []string) git.Call {
	return git.Call{Script: `git "$@" && exec git write-tree`, Stdin: strings.Join(files, "\x00"),
		Args: []string{"add", "-A", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"},
		Env:  []string{"GIT_LITERAL_PATHSPECS=1"}}
}

// maxNamed is how many files git is named to stage: with very many it compares too many names.
const maxNamed = 100

// git runs git with the index that is staged to.
func (s staging) git(ctx context.Context, stdin string, args ...string) (string, error) {
	out, err := s.do(ctx, git.Call{Args: args, Stdin: stdin, Env: s.env, Write: s.writes})
	if err != nil {
		return "", s.commitError(ctx, err)
	}
	return out, nil
}

// indexEntry is an entry of a git index.
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
}

// lookScript lists what is in an index and beside it, without the usual entries: files that are not changed, in which
// git does not overlook a change, and whose names have no dots that could lead out of the lane. An index may have
// millions of these. The last entry is "whole" where git has succeeded.
const lookScript = `{ git "$@" && printf 'whole\0'; } | tr '\000\n' '\n\000' |
	grep -a -v -E '^H 1[02]0[0-7]{3} [0-9a-f]+ 0	[^/.]([^.]|[.][^.])*$' | tr '\n\000' '\000\n'`

// look asks git once for all that there is, because each git reads the whole index. What the index tells git to look
// past is not among unstaged.
func (s staging) look(ctx context.Context) (found contents, err error) {
	c := git.Call{Script: lookScript, Env: s.env, Write: s.writes, Warned: &found.warned,
		Args: []string{"ls-files", "-z", "-v", "--stage", "--others", "--modified", "--exclude-standard"}}
	out, err := s.do(ctx, c)
	out, isWhole := strings.CutSuffix(out, "whole\x00")
	if !isWhole && err == nil { // git alone says why
		c.Script, c.Out, c.MaxOut = "", io.Discard, math.MaxInt64
		if _, err = s.do(ctx, c); err == nil {
			err = errors.New("git does not list the whole index")
		}
	}
	if err != nil {
		return found, s.commitError(ctx, err)
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if file, isOther := strings.CutPrefix(line, "? "); isOther {
			// git does not look into another repository.
			if inner, isInner := strings.CutSuffix(file, "/"); isInner {
				found.inner = append(found.inner, inner)
			} else {
				found.unstaged = append(found.unstaged, file)
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
	found.unmerged, found.unstaged = sortedOnce(found.unmerged), sortedOnce(found.unstaged)
	return found, nil
}

// sortedOnce sorts files, and leaves each in once.
func sortedOnce(files []string) []string {
	slices.Sort(files)
	return slices.Compact(files)
}

// hidden returns the files in which git would overlook changes: those that are assumed to be unchanged, and those that
// are skipped. What a sparse checkout leaves out is skipped rightly.
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
func (s staging) unhide(ctx context.Context, entries []indexEntry) (isHidden bool, err error) {
	assumed, skipped, err := s.hidden(ctx, entries)
	if err != nil {
		return false, s.commitError(ctx, err)
	}
	for _, mark := range []struct {
		option string
		files  []string
	}{{"--no-assume-unchanged", assumed}, {"--no-skip-worktree", skipped}} {
		if len(mark.files) == 0 {
			continue
		}
		in := strings.Join(mark.files, "\x00") + "\x00"
		if _, err := s.git(ctx, in, "update-index", "-z", mark.option, "--stdin"); err != nil {
			return true, err
		}
	}
	return len(assumed)+len(skipped) > 0, nil
}

// refuseLarge refuses more than can be taken over, before git reads it: a file of holes may have any length.
func (s staging) refuseLarge(files []string) error {
	size, largest, most := int64(0), "", int64(0)
	for _, file := range files {
		info, err := os.Lstat(filepath.Join(s.dir(), filepath.FromSlash(file)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if size += info.Size(); info.Size() > most {
			largest, most = file, info.Size()
		}
	}
	if size <= git.MaxUnpacked {
		return nil
	}
	return muster.Errorf(muster.Invalid, "the changed files of the lane %s have %d MB, the largest of them is %s: at "+
		"most %d MB land at once", s.lane.Name, size>>20, largest, git.MaxUnpacked>>20).
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
func (s staging) refuseUnreadable(ctx context.Context) error {
	out, err := s.do(ctx, git.Call{Script: unreadScript, Look: true, Write: s.writes,
		Args: []string{"ls-files", "--others", "--exclude-standard"},
		Env:  append(slices.Clip(s.env), fmt.Sprint("most=", maxRefused+1))})
	if err != nil {
		return s.commitError(ctx, err)
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

// maxRefused is how many files a refusal names.
const maxRefused = 5

// filterScript prints the filters of the files that it reads, and of those that the index has otherwise than the commit
// $1. Of a path outside git says that it is one, so that no failure is lost in the pipe.
const filterScript = `{
	cat
	[ -z "$1" ] || git diff-index --cached --name-only -z --no-renames --ignore-submodules=all "$1" -- || printf '/\0'
} | git check-attr -z --stdin filter`

// filtered returns the files that pass a filter when they are staged: of those that are not staged, and of those that
// the owner's own git has staged or committed. It refuses files whose filter cannot run: they would land in clear.
func (s staging) filtered(ctx context.Context, unstaged []string) (passing []string, err error) {
	base := ""
	if s.sub == "" {
		base = s.lane.Base
	}
	if base == "" && len(unstaged) == 0 {
		return nil, nil
	}
	out, err := s.do(ctx, git.Call{Script: filterScript, Look: true, Args: []string{base},
		Stdin: strings.Join(append(slices.Clone(unstaged), ""), "\x00"), Env: s.env, Write: s.writes})
	if err != nil {
		return nil, s.commitError(ctx, err)
	}
	refused, name := []string{}, ""
	isFile := func(file string) bool { // only contents of files are filtered
		info, err := os.Lstat(filepath.Join(s.dir(), filepath.FromSlash(file)))
		return err == nil && info.Mode().IsRegular()
	}
	for f := range slices.Chunk(git.SplitNUL(out), 3) { // file, attribute, value
		switch {
		case len(f) < 3 || f[2] == "unspecified" || f[2] == "unset" || f[2] == "set" || !isFile(f[0]):
		case s.repo.Filter(f[2]) == git.FilterRuns:
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
	if s.repo.Filter(name) == git.FilterUntrusted {
		why, hint = "only the repository's own config names", "the user can look at it and allow it: muster trust"
	}
	return nil, muster.Errorf(muster.Invalid, "%s cannot be committed: the attribute filter=%s wants a filter that "+
		"%s, so it does not run, and the content would land in clear", text.List(refused, maxRefused), name, why).
		WithHint("%s", hint)
}
