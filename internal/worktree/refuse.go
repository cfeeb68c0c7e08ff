package worktree

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"muster"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/safetext"
)

// refusePaths refuses what the lane's commits must not bring: files of the team's state, and links to repositories
// inside the lane, which the owner's own git has committed. A submodule that .gitmodules names is intended.
func (c checkout) refusePaths(ctx context.Context, head string) error {
	// Also where the row has no base: without one a lane could bring what it likes.
	base := cmp.Or(git.MadeAt(c.repo, branchRef(c.lane)), c.lane.Base)
	if base == "" || head == base {
		return nil
	}
	out, err := c.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", base, head)
	if err != nil {
		return c.commitError(ctx, err)
	}
	// Each entry is two fields: ":OLDMODE NEWMODE OLDID NEWID STATUS" and the path. A link that the base has already is
	// no work of this lane, and whoever deletes a file of the state does no harm.
	var links, state []string
	for entry := range slices.Chunk(git.SplitNUL(out), 2) {
		modes := strings.Fields(entry[0]) // the old one, the new one, ...
		if modes[1] == gitlink && modes[0] != ":"+gitlink {
			links = append(links, entry[1])
		}
		if modes[len(modes)-1] != "D" && c.isState(entry[1]) {
			state = append(state, entry[1])
		}
	}
	if len(state) > 0 {
		return muster.Errorf(muster.Invalid, "the lane %s holds %s, which would land in the directories of the team's "+
			"state", c.lane.Name, safetext.List(state, maxRefused)).
			WithHint("git rm -r -f --ignore-unmatch %s", path.Clean(strings.SplitN(state[0], "/", 2)[0]))
	}
	if len(links) == 0 {
		return nil
	}
	submodules, err := c.moduleNames(ctx)
	if err != nil {
		return err
	}
	inner := slices.DeleteFunc(links, func(link string) bool { return submodules[link] != "" })
	if len(inner) == 0 {
		return nil
	}
	return muster.Errorf(muster.Invalid,
		"the lane %s has committed the git repository in %s as a link: its files would not land",
		c.lane.Name, strings.Join(inner, ", ")).
		WithHint("git rm --cached %s, and remove its .git directory so that its files are the lane's",
			path.Clean(inner[0]))
}

// isState reports whether a file that git names lies in a directory of the team's state, on any file system: one may
// not tell upper from lower case, drop dots and blanks at the end of a name, or overlook characters without a shape.
func (c checkout) isState(file string) bool {
	first, _, _ := strings.Cut(file, "/")
	first = foldedName(first)
	for _, pattern := range paths.Excluded {
		if first == strings.Trim(pattern, "/") {
			return true
		}
	}
	// The user may have lanes made elsewhere in the repository.
	rel, err := filepath.Rel(c.repo.Root(), filepath.Dir(c.lane.Path))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return false
	}
	lanes := filepath.ToSlash(rel)
	return foldedName(file) == foldedName(lanes) || strings.HasPrefix(foldedName(file), foldedName(lanes)+"/")
}

// foldedName returns a name as the least exact file system takes it.
func foldedName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // format characters, such as a joiner of width zero
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
	return strings.TrimRight(name, ". ")
}
