package collision

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster/internal/git"
)

// sides are two commits that are to be merged.
type sides struct{ Ours, Theirs string }

// merge is how two commits merge.
type merge struct {
	// Tree is what the merge makes. A file in conflict has markers there, with the ids of the commits as labels. It is
	// "" where git could not merge the two at all.
	Tree string
	// Conflicts are the files in conflict, each once.
	Conflicts []conflicted
}

// conflicted is a file in conflict, and its content on both sides: ids, which are "" where a side has no such file.
type conflicted struct{ Path, Ours, Theirs string }

// mergeTrees merges each pair of commits as git.Repo.MergeTree does, all of them in one process. A pair that git cannot
// merge, as when an object is missing, has the zero merge.
func mergeTrees(ctx context.Context, r *git.Repo, pairs []sides) ([]merge, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	// One process merges hundreds of pairs in the time that some need to start. Bare: nothing of the user's checkout is
	// read. Histories without a common start are merged too, so that a lane on another root ends no batch.
	in := new(strings.Builder)
	for _, p := range pairs {
		fmt.Fprintf(in, "%s %s\n", p.Ours, p.Theirs)
	}
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Bare: true, Stdin: in.String(), Args: []string{"merge-tree",
		"--write-tree", "--no-messages", "--allow-unrelated-histories", "--stdin", "-z"}})
	if err == nil {
		return parseMerges(out, len(pairs)), nil
	}
	if _, hasRun := errors.AsType[*git.ExitError](err); !hasRun || ctx.Err() != nil {
		return nil, err
	}
	if len(pairs) == 1 {
		return []merge{{}}, nil
	}
	// git ends at the first pair that it cannot merge. The halves are tried, so that one broken lane hides no other.
	half := len(pairs) / 2
	left, err := mergeTrees(ctx, r, pairs[:half])
	if err != nil {
		return nil, err
	}
	right, err := mergeTrees(ctx, r, pairs[half:])
	return append(left, right...), err
}

// parseMerges reads what git merge-tree prints of n merges: of each a digit, the tree, and three entries at most of
// each file in conflict, MODE ID STAGE<TAB>PATH.
func parseMerges(out string, n int) []merge {
	all := make([]merge, 0, n)
	isTree := false
	for _, field := range git.SplitNUL(out) {
		meta, path, isEntry := strings.Cut(field, "\t")
		switch {
		case isTree && git.IsID(field):
			all, isTree = append(all, merge{Tree: field}), false
		case isEntry && len(all) > 0:
			f := strings.Fields(meta)
			last := &all[len(all)-1]
			if len(f) != 3 {
				continue
			}
			if k := len(last.Conflicts); k == 0 || last.Conflicts[k-1].Path != path {
				last.Conflicts = append(last.Conflicts, conflicted{Path: path})
			}
			c := &last.Conflicts[len(last.Conflicts)-1]
			switch f[2] {
			case "2":
				c.Ours = f[1]
			case "3":
				c.Theirs = f[1]
			}
		default:
			isTree = true
		}
	}
	for len(all) < n {
		all = append(all, merge{})
	}
	return all[:n]
}
