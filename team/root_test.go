package team_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/llm"
	"muster/store/file"
	"muster/team"
)

// A team has one root, that of the main worktree. A store that was opened elsewhere is refused before anything is
// written, and FindRoot says where it belongs.
func TestTheStateLiesInTheRepositorysRoot(t *testing.T) {
	root := newRepo(t)
	gittest.Write(t, root, map[string]string{"deep/er/file": "x"})
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, root, "worktree", "add", "-q", linked, "-b", "feature")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir     string
		refused bool // a store that is opened right there
	}{
		"the root":          {root, false},
		"a link to it":      {link, false},
		"a subdirectory":    {filepath.Join(root, "deep", "er"), true},
		"a linked worktree": {linked, true},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(dir string) error {
				store, err := file.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				model := func(string) (llm.Model, error) { return nil, nil }
				_, err = team.Open(t.Context(), team.Config{Dir: c.dir, Store: store, Model: model})
				return err
			}
			err := open(c.dir)
			var e *muster.Error
			hinted := errors.Is(err, muster.ErrInvalid) && errors.As(err, &e) &&
				strings.Contains(e.Hint, "team.FindRoot")
			if c.refused != hinted || !c.refused && err != nil {
				t.Errorf("a store in %s: %v", c.dir, err)
			}
			if _, err := os.Stat(filepath.Join(c.dir, ".team")); err == nil {
				t.Error("something was written")
			}
			found, err := team.FindRoot(t.Context(), c.dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := open(found); err != nil {
				t.Errorf("a store in the root %s: %v", found, err)
			}
		})
	}
}
