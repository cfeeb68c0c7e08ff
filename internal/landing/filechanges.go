package landing

import (
	"context"
	"strings"

	"muster/internal/git"
)

// fileChange is a file that a commit or a tree has changed, by the ids of its contents.
type fileChange struct {
	Path string
	// Old are the contents from which it was made: none of a new file, one of each parent for a merge.
	Old []string
	New string
}

// treeChanges returns the files of a tree that are not those of another one, or of a commit. Files that are gone and
// submodules are left out. A file that was moved has the content that it had in its old place. No attribute of the
// repository changes the result, as it changes what git shows as a difference.
func treeChanges(ctx context.Context, r *git.Repo, from, to string) ([]fileChange, error) {
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true, Args: []string{"diff-tree", "-r", "-z", "-M",
		"--raw", "--no-abbrev", "--end-of-options", from, to}})
	return parseRaw(out), err
}

// historyChanges returns what each commit has changed that is in head's history and not in base's. A merge has changed
// what is in none of its parents.
func historyChanges(ctx context.Context, r *git.Repo, base, head string) ([]fileChange, error) {
	commits, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true,
		Args: []string{"rev-list", "--end-of-options", head, "^" + base}})
	if err != nil || commits == "" {
		return nil, err
	}
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true, Stdin: commits, Args: []string{"diff-tree",
		"--stdin", "-r", "-z", "-M", "-c", "--root", "--raw", "--no-abbrev", "--no-commit-id"}})
	return parseRaw(out), err
}

// parseRaw reads git's raw form: a colon for each parent, the modes and the ids of the parents and of the result, and
// the status, then the path, or two where the file was moved.
func parseRaw(out string) (all []fileChange) {
	fields := git.SplitNUL(out)
	for i := 0; i+1 < len(fields); i++ {
		head := strings.TrimLeft(fields[i], ":")
		parents := len(fields[i]) - len(head)
		f := strings.Fields(head)
		if parents == 0 || len(f) != 2*parents+3 {
			continue
		}
		status := f[2*parents+2]
		// Of a merge git names one path only, whatever was moved.
		i++
		if parents == 1 && strings.ContainsAny(status, "RC") && i+1 < len(fields) {
			i++
		}
		c := fileChange{Path: fields[i], New: f[2*parents+1]}
		for p, id := range f[parents+1 : 2*parents+1] {
			if strings.Trim(id, "0") != "" && f[p] != submodule {
				c.Old = append(c.Old, id)
			}
		}
		if strings.Trim(c.New, "0") != "" && f[parents] != submodule {
			all = append(all, c)
		}
	}
	return all
}

// submodule is the mode of a commit of another repository in a tree.
const submodule = "160000"
