package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/git"
)

// archiveRefs is where the work of removed lanes goes: refs/muster/archive/NAME-N.
const archiveRefs = "refs/muster/archive/"

// ArchiveRef makes refs/muster/archive/NAME-N for a commit, with the first free N, and returns it. When a ref of NAME
// is at the commit already, it returns that one.
// A commit with the given content (see contentOf) is as good as the commit itself, unless content is "".
func ArchiveRef(ctx context.Context, repo *git.Repo, name, commit, content string) (string, error) {
	for {
		existing, err := repo.Refs(ctx, archiveRefs)
		if err != nil {
			return "", err
		}
		// The search ends at the first free number. It is the new ref's when no ref before it has the commit or the
		// content.
		ref := archiveRefs + name + "-1"
		for n := 2; existing[ref] != ""; n++ {
			at := existing[ref]
			if at == commit {
				return ref, nil
			}
			if content != "" {
				if its, err := contentOf(ctx, repo, at); err == nil && its == content {
					return ref, nil
				}
			}
			ref = fmt.Sprintf("%s%s-%d", archiveRefs, name, n)
		}
		// Stale: another process has just taken this number. The next one may be free.
		err = repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: commit}})
		if !errors.Is(err, muster.ErrStale) {
			return ref, err
		}
	}
}

// contentOf returns a commit's tree and parents: all of it but its message and its date.
func contentOf(ctx context.Context, repo *git.Repo, commit string) (string, error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "rev-list", "--max-count=1", "--no-commit-header", "--format=%T %P",
		commit)
	return strings.TrimSpace(out), err
}
