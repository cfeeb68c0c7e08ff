package confined

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/worktree"
)

// Place is where a team works, and what its programs may touch there besides what all may.
type Place struct {
	Method sandbox.Method
	Repo   *git.Repo
	Lanes  *worktree.Lanes
	State  paths.Dir // the state of the team
	// Home, UserDir and CacheDir are the user's home directory, settings and caches of muster; "" is none.
	Home, UserDir, CacheDir string
	// Environ is the environment of this process. It says where the toolchains are.
	Environ []string
	// Read and Write are paths that programs may read and write besides.
	Read, Write []string
}

// toolchains returns the rules for what a program needs that knows of no repository, and for the user's own paths.
func (p *Place) toolchains() sandbox.Rules {
	r := append(sandbox.System(), sandbox.Home(p.Home)...)
	r = append(r, sandbox.Toolchains(p.Environ, p.Home)...)
	// The user's settings, with keys among them, and what muster keeps of other repositories.
	for _, dir := range []string{p.UserDir, p.CacheDir} {
		if dir != "" {
			r = append(r, sandbox.Rule{Path: dir, Access: sandbox.Empty})
		}
	}
	return r
}

// besides returns the rules for the paths that the user has named. They count more than any other.
func (p *Place) besides() (r sandbox.Rules) {
	for _, path := range p.Read {
		r = append(r, sandbox.Rule{Path: path})
	}
	for _, path := range p.Write {
		r = append(r, sandbox.Rule{Path: path, Access: sandbox.Write})
	}
	return r
}

// hidden returns the rules that take the state of the team and the lanes out of what is readable. Directories that the
// team has not needed yet are made: one that came while a command runs would be seen by it.
func (p *Place) hidden() (r sandbox.Rules, err error) {
	state := []string{p.State.Team(), p.State.Tasks(), p.State.Transcripts(), p.State.Worktrees()}
	for _, dir := range state {
		err = cmp.Or(err, durable.MakeDirBelow(string(p.State), dir))
	}
	for _, dir := range append(state, worktree.Home(p.Lanes)) {
		r = append(r, sandbox.Rule{Path: dir, Access: sandbox.Empty})
	}
	return r, err
}

// cache makes the directory of the caches that the members' programs in this repository share; "" where nothing is
// kept.
func (p *Place) cache() (string, error) {
	if p.CacheDir == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(p.Repo.CommonDir()))
	dir := filepath.Join(p.CacheDir, "sandbox", hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", muster.Errorf(muster.Unavailable, "the caches of confined commands cannot be made: %w", err)
	}
	return dir, nil
}

// temporary returns the rule for the directory for temporary files that an environment names.
func temporary(env []string) (r sandbox.Rules) {
	if dir := proc.Variable(env, "TMPDIR"); filepath.IsAbs(dir) {
		r = append(r, sandbox.Rule{Path: dir, Access: sandbox.Write})
	}
	return r
}
