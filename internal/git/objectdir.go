package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// WithObjects returns the repository with another directory for new objects, which must be empty: what git writes is
// there alone, and is gone with the directory. git reads the repository's objects besides. A ref must never be set to
// what was written so.
func WithObjects(r *Repo, dir string) (*Repo, error) {
	info := filepath.Join(dir, "info")
	err := os.MkdirAll(info, 0o700)
	if err == nil {
		objects := filepath.Join(r.common, "objects") + "\n"
		err = os.WriteFile(filepath.Join(info, "alternates"), []byte(objects), 0o600)
	}
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "a directory for objects cannot be made: %w", err)
	}
	// The rest of r is for its own users: what it knows of refs may be of objects that the other does not have.
	with := &Repo{runner: r.runner, linked: r.linked}
	with.env = append(slices.Clip(with.env), "GIT_OBJECT_DIRECTORY="+dir)
	return with, nil
}

// Borrowed returns the directories outside of the repository from which it borrows objects, and those to which links in
// its own lead.
func (r *Repo) Borrowed() (dirs []string) {
	todo := []string{filepath.Join(r.common, "objects")}
	const most = 20
	for len(todo) > 0 && len(dirs) < most {
		dir := todo[0]
		todo = todo[1:]
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.Contains(dirs, real) { // which may name itself
			continue
		}
		dirs = append(dirs, real)
		data, _ := durable.ReadRegular(filepath.Join(dir, "info", "alternates"), maxExclude) // there may be none
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				todo = append(todo, pathFrom(dir, line))
			}
		}
	}
	return dirs
}
