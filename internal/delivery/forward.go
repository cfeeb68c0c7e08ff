package delivery

import (
	"cmp"
	"context"

	"muster"
	"muster/internal/git"
	"muster/internal/text"
)

// OpenClean returns the checkout that has branch checked out, if nothing in it is uncommitted. Files that git
// does not know do not count: git itself moves no branch forward over one.
//
// It is for a branch that a run has promised to move at its end. Merge alone would also move it beside changes of other
// files, which is right where the user asks for it and knows their checkout at that moment.
func OpenClean(ctx context.Context, repo *git.Repo, branch, target string) (c Checkout, err error) {
	dir, err := repo.CheckedOut(ctx, "refs/heads/"+branch)
	if err != nil {
		return c, err
	}
	if c, err = open(ctx, repo, cmp.Or(dir, repo.Here()), target); err != nil {
		return c, err
	}
	if c.Branch != branch {
		return c, muster.Errorf(muster.Held, "%s is checked out in %s, and not %s", c.Branch, c.dir, branch).
			WithHint("git switch %s", text.ShellQuote(branch))
	}
	out, err := repo.Run(ctx, c.dir, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=no")
	if err != nil || out == "" {
		return c, err
	}
	var files []string
	for _, entry := range git.SplitNUL(out) {
		files = append(files, entry[min(len(entry), 3):])
	}
	return c, muster.Errorf(muster.Held, "%s is checked out, with uncommitted changes in %s", branch, list(files)).
		WithHint("commit or stash them, then again\nor take the work yourself, at the end:  muster merge")
}
