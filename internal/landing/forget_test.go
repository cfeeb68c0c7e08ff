package landing_test

import (
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

func TestForget(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "1\n"})
	repo, err := git.Open(t.Context(), root)
	must(t, err)
	// Of tasks on the board: a claim that was, one that the task has not had yet. Of none: 7-1. Of no claim: the rest.
	for _, name := range []string{"revoked/1-1", "revoked/1-2", "revoked/2-3", "revoked/7-1", "revoked/words", "landing/7-1", "archive/try-1"} {
		gittest.Git(t, root, "update-ref", "refs/muster/"+name, "HEAD")
	}
	for range 2 {
		must(t, landing.ForgetRevoked(t.Context(), repo, []muster.Task{{ID: 1, Fence: 2}, {ID: 2, Fence: 2}}))
		left := strings.Fields(gittest.Git(t, root, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/muster"))
		if want := []string{"archive/try-1", "landing/7-1", "revoked/1-1", "revoked/1-2", "revoked/words"}; !slices.Equal(left, want) {
			t.Errorf("left: %v, want %v", left, want)
		}
	}
}
