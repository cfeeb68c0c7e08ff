package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/ports"
)

// Each lane has ports and a directory for temporary files of its own, so that servers and tests which run in several
// lanes at once do not meet.
//
// The ports stand in the lane's row and in the table of all repositories of the user, which keeps those of two lanes
// apart. They stay for the life of the lane. The directory has a short name, because programs make sockets in it; it
// goes with the lane, and what a killed process left there goes before the next member's first command.

// Environ returns the variables that a command in the lane at dir has beside env: PORT, MUSTER_PORT_n and TMPDIR. It is
// empty where no lane is. What cannot be had is missing: a lane without ports is of use too.
func Environ(ctx context.Context, l *Lanes, dir string, env []string) (set []string) {
	lane, ok := At(ctx, l, dir)
	if !ok {
		return nil
	}
	had, _ := field[[]int](lane, fieldPorts)
	if got := l.assignPorts(ctx, lane); len(got) > 0 {
		if !slices.Equal(got, had) {
			_, _ = l.index.update(ctx, lane.Name, func(row *muster.Lane) error { // the table has it too
				setField(row, fieldPorts, got)
				return nil
			})
		}
		set = ports.Environ(got, env)
	}
	if temporary, err := l.temporaryDir(lane); err == nil && os.MkdirAll(temporary, 0o700) == nil {
		set = append(set, "TMPDIR="+temporary)
	}
	return set
}

// At returns the lane whose directory is dir. ok is false where there is none.
func At(ctx context.Context, l *Lanes, dir string) (lane muster.Lane, ok bool) {
	if filepath.Dir(dir) != l.options.Dir {
		return lane, false
	}
	lane, err := l.index.get(ctx, muster.Name(filepath.Base(dir)))
	return lane, err == nil && lane.Path == dir
}

// PlaceAt returns where commands in a directory work: in a lane, or in the scratch checkout of a member. It is nil
// where the directory is neither.
func PlaceAt(ctx context.Context, l *Lanes, dir string) (p *git.Place, isLane bool, err error) {
	if lane, ok := At(ctx, l, dir); ok {
		p, err = git.OpenPlace(l.repo, dir, branchRef(lane))
		return p, true, err
	}
	if filepath.Dir(dir) != l.scratch {
		return nil, false, nil
	}
	p, err = git.OpenPlace(l.repo, dir, "")
	if errors.Is(err, muster.ErrNotFound) { // it is no checkout, and holds files alone
		return nil, false, nil
	}
	return p, false, err
}

// Home returns the directory that has the lanes.
func Home(l *Lanes) string { return l.options.Dir }

func (l *Lanes) assignPorts(ctx context.Context, lane muster.Lane) []int {
	if l.options.Ports == nil {
		return nil
	}
	had, _ := field[[]int](lane, fieldPorts)
	got, err := l.options.Ports.Assign(ctx, lane.Path, l.options.PortCount, had)
	if err != nil {
		return nil
	}
	return got
}

// temporaryDir returns the directory for the temporary files of a lane. It may not be there.
func (l *Lanes) temporaryDir(lane muster.Lane) (string, error) {
	root, err := l.temporaryRoot()
	return filepath.Join(root, temporaryName(lane.Path)), err
}

// temporaryName is the name of the directory for the temporary files of the lane at path. It is short: the path of a
// socket may have 107 bytes.
func temporaryName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// temporaryRootName is the name of the directory that has those of all lanes of the user.
func temporaryRootName() string { return fmt.Sprintf("muster-%d", max(os.Getuid(), 0)) }

// temporaryRoot makes the directory that has those of all lanes of the user. The name can be guessed, so what another
// user has made there is refused.
func (l *Lanes) temporaryRoot() (string, error) {
	parent, err := l.CheckDirs.parent()
	if err != nil {
		return "", err
	}
	root := filepath.Join(parent, temporaryRootName())
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(root)
	if err == nil && (!info.IsDir() || !durable.IsOwn(info)) {
		err = muster.Errorf(muster.Unavailable, "%s is another user's", root)
	}
	if err != nil {
		return "", err
	}
	return root, os.Chmod(root, 0o700)
}

// temporaryAge is how long the temporary directory of a lane that the table does not know is left alone. The table may
// have been lost while a command runs there.
const temporaryAge = 24 * time.Hour

// RemoveTemporaries removes the temporary directories of lanes that are gone, of all repositories of the user, and
// returns them.
func RemoveTemporaries(ctx context.Context, l *Lanes) (removed []string, err error) {
	if l.options.Ports == nil {
		return nil, nil
	}
	root, err := l.temporaryRoot()
	if err != nil {
		return nil, err
	}
	gone, present, err := l.options.Ports.ForgetGone(ctx)
	if err != nil {
		return nil, err
	}
	lanes := map[string]bool{} // whether a lane is there, for each that the table has had
	for _, dir := range gone {
		lanes[temporaryName(dir)] = false
	}
	for _, dir := range present {
		lanes[temporaryName(dir)] = true
	}
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		isThere, isKnown := lanes[e.Name()]
		info, err := e.Info()
		if err != nil || !e.IsDir() || isThere || !isKnown && time.Since(info.ModTime()) < temporaryAge {
			continue
		}
		if path := filepath.Join(root, e.Name()); durable.RemoveAll(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed, err
}
