package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/git"
)

// maxShared is how large a file may be that is copied for the members.
const maxShared = 16 << 20

// Share makes a file of the user readable for all members, who have checkouts of their own. path is absolute, or
// relative to the repository. Share returns "" where the checkouts have the file as it is; otherwise it copies it among
// the outputs, which all members may read, and returns the path of the copy. The same content is copied once. The
// error is NotFound when there is no such file.
func Share(ctx context.Context, w *Workspace, path string) (shared string, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.root, path)
	}
	// Files of the repository are opened below its root: a link in it, which another may have made, leads nowhere else.
	below, isBelow := strings.CutPrefix(filepath.Clean(path), w.root+string(filepath.Separator))
	var from fs.FS = os.DirFS(filepath.Dir(path))
	name := filepath.Base(path)
	if isBelow {
		root, err := w.Files()
		if err != nil {
			return "", err
		}
		from, name = root.FS(), filepath.ToSlash(below)
	}
	data, err := readShared(from, name)
	if err != nil {
		return "", err
	}
	// What KeepForMembers has kept is there already.
	if filepath.Dir(path) == filepath.Join(w.Paths().Outputs(), string(muster.User)) {
		return path, nil
	}
	if isBelow {
		if has, err := hasFile(ctx, w, name, data); has || err != nil {
			return "", err
		}
	}
	return KeepForMembers(ctx, w, filepath.Base(path), data)
}

// KeepForMembers keeps what the user gives to the members among the outputs, and returns the path of the file.
func KeepForMembers(ctx context.Context, w *Workspace, name string, data []byte) (path string, err error) {
	// The directory may be the first that muster makes here.
	if err := w.PrepareChange(ctx); err != nil {
		return "", err
	}
	if err := w.Mark(ctx); err != nil {
		return "", err
	}
	// The name has the content's sum, so a file that was changed since is another copy, and the old one stays for those
	// who were told of it.
	name = fmt.Sprintf("%08x-%s", crc32.ChecksumIEEE(data), name)
	path = filepath.Join(w.Paths().Outputs(), string(muster.User), name)
	return path, stateFiles(w).Replace(path, data)
}

// readShared reads a regular file that is not too large.
func readShared(from fs.FS, name string) ([]byte, error) {
	fi, err := fs.Stat(from, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
		return nil, muster.Errorf(muster.NotFound, "there is no file %s", name)
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular(): // reading a pipe or a device could wait for ever
		return nil, muster.Errorf(muster.NotFound, "%s is no file", name)
	case fi.Size() > maxShared:
		return nil, muster.Errorf(muster.Invalid, "it has %d MB, and the limit is %d", fi.Size()>>20, maxShared>>20)
	}
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxShared))
}

// hasFile reports whether the commit that members look at has a file with this content.
func hasFile(ctx context.Context, w *Workspace, name string, data []byte) (bool, error) {
	commit, err := w.LaneBase(ctx, "")
	if err != nil {
		return false, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return false, err
	}
	// The contents are compared, and not git's ids: a filter could give two different files one id.
	at := commit + ":" + name
	blobs, err := git.Blobs(ctx, repo, []string{at}, maxShared, maxShared)
	known, ok := blobs[at]
	return ok && bytes.Equal(known, data), err
}
