package workspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"

	"muster/internal/durable"
	"muster/internal/git"
)

// largestIndex is how many bytes of an index mayTrack reads. About a larger one it asks git.
const largestIndex = 64 << 20

// mayTrack reports whether the index of the main worktree may have paths that begin with one of the names, whatever
// their case; each name begins with a dot. It asks git nothing: false is certain, and true means that tracked must
// tell. The check costs less than a millisecond for a few thousand files, so that each command can make it.
func mayTrack(common string, names []string) bool {
	data, err := durable.ReadRegular(filepath.Join(common, "index"), largestIndex)
	if errors.Is(err, os.ErrNotExist) {
		return false // nothing was ever added
	}
	// In these versions each path stands in full, except that a split index leaves most of them to a second file. See
	// gitformat-index(5).
	if err != nil || len(data) < 12 || string(data[:4]) != "DIRC" || binary.BigEndian.Uint32(data[4:]) > 3 ||
		bytes.Contains(data, []byte("link\x00\x00\x00")) {
		return true
	}
	for rest := data; ; rest = rest[1:] {
		at := bytes.IndexByte(rest, '.')
		if at < 0 {
			return false
		}
		rest = rest[at:]
		for _, name := range names {
			if len(rest) >= len(name) && bytes.EqualFold(rest[:len(name)], []byte(name)) {
				return true
			}
		}
	}
}

// tracked returns the paths in the index of the main worktree that are one of the names, or below one, whatever their
// case.
func tracked(ctx context.Context, r *git.Repo, names []string) ([]string, error) {
	args := []string{"ls-files", "-z", "--"}
	for _, name := range names {
		args = append(args, ":(top,icase,literal)"+name)
	}
	out, err := r.Do(ctx, git.Call{Dir: r.Root(), Args: args})
	return git.SplitNUL(out), err
}
