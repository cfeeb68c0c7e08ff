package landing_test

import (
	"errors"
	"slices"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

// A revert takes back several commits, whatever their order in the call, and a merge commit with all that it brought. It
// moves nothing.
func TestRevert(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"})
	commit := func(files map[string]string, message string) string {
		gittest.Write(t, root, files)
		gittest.Git(t, root, "add", "-A")
		gittest.Git(t, root, "commit", "-qm", message)
		return gittest.Git(t, root, "rev-parse", "HEAD")
	}
	first := commit(map[string]string{"a": "2\n"}, "first")
	second := commit(map[string]string{"a": "3\n"}, "second")
	gittest.Git(t, root, "switch", "-q", "-c", "side")
	commit(map[string]string{"b": "2\n"}, "one of two")
	commit(map[string]string{"new": "new\n"}, "two of two")
	gittest.Git(t, root, "switch", "-q", "main")
	gittest.Git(t, root, "merge", "-q", "--no-ff", "-m", "merged", "side")
	merged := gittest.Git(t, root, "rev-parse", "HEAD")
	tip := commit(map[string]string{"c": "2\n"}, "last")
	before := gittest.Checkout(t, root)
	repo, err := git.Open(t.Context(), root)
	must(t, err)

	got, err := landing.Revert(t.Context(), repo, tip, []string{first, merged, second}, "back\n")
	must(t, err)
	for file, want := range map[string]string{"a": "1", "b": "1", "c": "2"} {
		if text := gittest.Git(t, root, "show", got+":"+file); text != want {
			t.Errorf("%s has %q", file, text)
		}
	}
	if _, err := gittest.Try(root, "cat-file", "-e", got+":new"); err == nil {
		t.Error("what the merge brought is still there")
	}
	if parent := gittest.Git(t, root, "rev-parse", got+"^@"); parent != tip {
		t.Errorf("its parents are %s", parent)
	}

	_, err = landing.Revert(t.Context(), repo, tip, []string{first}, "back\n")
	conflict, ok := errors.AsType[*landing.RevertConflict](err)
	if !ok || conflict.Commit != first || !slices.Equal(conflict.Files, []string{"a"}) ||
		!slices.Equal(conflict.Later, []string{second}) {
		t.Errorf("the conflict is %+v, %v", conflict, err)
	}
	once, err := landing.Revert(t.Context(), repo, tip, []string{tip}, "back\n")
	must(t, err)
	_, err = landing.Revert(t.Context(), repo, once, []string{tip}, "back\n")
	wants(t, err, muster.ErrInvalid, "taken back already")
	if _, err = landing.Revert(t.Context(), repo, first, []string{tip}, "back\n"); !errors.Is(err, muster.ErrNotFound) {
		t.Errorf("of a commit that is not there: %v", err)
	}
	if after := gittest.Checkout(t, root); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
}
