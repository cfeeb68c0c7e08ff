package setup

import (
	"context"
	_ "embed"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/git"
	"muster/internal/proc"
)

//go:embed submodules.sh
var submodulesScript string

// fillTimeout is how long submodules may be filled.
const fillTimeout = 10 * time.Minute

// FillSubmodules fills the submodules of a fresh working tree from the git directories that the user's checkout has of
// them, without a network. It runs as s says and l confines, for what is there was written by others. gitDir is the git
// directory of the working tree. It returns the paths of the submodules that stay empty, because the user's checkout
// does not have them, or not their commits.
func FillSubmodules(
	ctx context.Context, l proc.Launcher, repo *git.Repo, s proc.Spec, gitDir string,
) (empty []string, err error) {
	to, err := filepath.Rel(s.Dir, gitDir)
	if err != nil {
		return nil, err
	}
	var out output
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	s.Argv = []string{"sh", "-c", submodulesScript, "submodules", filepath.Join(repo.CommonDir(), "modules"), to}
	s.Out = &out
	p, err := l.Start(ctx, s)
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' }), nil
}
