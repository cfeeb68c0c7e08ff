package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/git"
)

// errOccupied is the error for a place in a checkout where something is already.
var errOccupied = errors.New("something is there already")

// State is how a lane stands after Ready.
type State struct {
	IsReady bool     // the kept result was put into it
	IsUsed  bool     // something is where the result would be: an earlier owner of the lane has worked there
	Left    []string // what the set-up makes and git does not ignore, and what is therefore not put
}

// Ready puts the kept result for a commit into a lane that nobody works in yet, as far as git ignores it there: what is
// not ignored would be committed. Where no result is kept it does nothing.
func (s *Store) Ready(ctx context.Context, j Job) (state State, err error) {
	// A lane does not wait for a set-up: that can take minutes, and the member may need nothing of it. The first check
	// of the run makes the result, and the lanes after that have it.
	if s == nil || j.Command == "" {
		return state, nil
	}
	_, key, err := s.key(ctx, j)
	if err != nil {
		return state, err
	}
	e, ok := s.find(key, j.Dir)
	if !ok || len(e.Roots) == 0 {
		return state, nil
	}
	ignored, err := s.ignored(ctx, j.Dir, e.Roots)
	if err != nil {
		return state, err
	}
	for _, r := range e.Roots {
		if !slices.Contains(ignored, r) {
			state.Left = append(state.Left, r)
		}
	}
	if len(ignored) == 0 {
		return state, nil
	}
	err = s.putOnce(ctx, e, j.Dir, ignored)
	if errors.Is(err, errOccupied) {
		state.IsUsed = true
		return state, nil
	}
	state.IsReady = err == nil
	return state, err
}

// markerFile lies in a lane's own git directory while something is put into the lane.
const markerFile = "muster-setup"

// putOnce puts an entry into a lane. A process that dies meanwhile leaves the mark there, and the next call removes
// what that has put in part: half a node_modules would look like a whole one.
func (s *Store) putOnce(ctx context.Context, e Entry, dir string, ignored []string) error {
	own, err := s.gitDir(dir)
	if err != nil {
		return err
	}
	marker := filepath.Join(own, markerFile)
	if !durable.IsMissing(marker) {
		if err := removePut(dir, ignored); err != nil {
			return err
		}
	}
	if err := durable.WriteBelow(own, marker, nil); err != nil {
		return err
	}
	if err := s.put(ctx, e, dir, ignored); err != nil && !errors.Is(err, errOccupied) {
		return err // what was put is removed, or the mark says that it is not
	} else if errRemove := os.Remove(marker); errRemove != nil || err != nil {
		return errors.Join(err, errRemove)
	}
	return nil
}

// gitDir returns the git directory of a linked worktree. Only one of this repository is taken: a command in the lane
// may have written another name.
func (s *Store) gitDir(dir string) (string, error) {
	data, err := durable.ReadBelow(dir, filepath.Join(dir, ".git"), git.MaxFile)
	if err != nil {
		return "", err
	}
	own := strings.TrimSuffix(strings.TrimPrefix(string(data), "gitdir: "), "\n")
	all := filepath.Join(s.repo.CommonDir(), "worktrees")
	if rel, err := filepath.Rel(all, own); err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is no worktree of this repository", dir)
	}
	return own, nil
}

// ignored returns those of the paths that git ignores in a checkout.
func (s *Store) ignored(ctx context.Context, dir string, roots []string) ([]string, error) {
	out, err := s.repo.Do(ctx, git.Call{Dir: dir, Stdin: strings.Join(roots, "\x00") + "\x00",
		Args: []string{"check-ignore", "-z", "--no-index", "--stdin"}})
	if err != nil && git.ExitCode(err) != 1 { // 1: none is
		return nil, err
	}
	return git.SplitNUL(out), nil
}
