package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"muster/internal/durable"
)

// lfsName is the name of the directory in which git-lfs keeps its files, below the common directory: as
// objects/AB/CD/SUM, by the SHA-256 of each. A place has its own, and git-lfs finds those of the repository by its
// alternates.
const lfsName = "lfs"

// MissingFiles returns how many files of git-lfs a commit names that the repository does not have. They are pointers in
// lanes and checks, where nothing is fetched. It is 0 where git-lfs does not run, or keeps its files elsewhere.
func MissingFiles(ctx context.Context, r *Repo, commit string) (n int, err error) {
	if len(r.drivers.armed["filter.lfs"]) == 0 || r.Configured("lfs.storage") != "" {
		return 0, nil
	}
	out, err := r.Run(ctx, r.common, "ls-tree", "-r", "-z", "--full-tree", "--format=%(objectname) %(objectsize)",
		commit)
	if err != nil {
		return 0, err
	}
	// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md; a pointer with extensions may be longer.
	const head, longest = "version https://git-lfs.github.com/spec/v1\noid sha256:", 200
	var ids []string
	for _, entry := range SplitNUL(out) {
		id, size, _ := strings.Cut(entry, " ")
		if bytes, err := strconv.Atoi(size); err == nil && bytes > len(head) && bytes <= longest {
			ids = append(ids, id)
		}
	}
	blobs, err := Blobs(ctx, r, ids, longest, MaxFile)
	for _, data := range blobs {
		rest, isPointer := strings.CutPrefix(string(data), head)
		if sum, _, ok := strings.Cut(rest, "\n"); isPointer && ok && len(sum) == sha256.Size*2 && IsID(sum) &&
			durable.IsMissing(filepath.Join(r.common, lfsName, "objects", sum[:2], sum[2:4], sum)) {
			n++
		}
	}
	return n, err
}

// takeFiles makes the files that git-lfs has written in the place files of the repository, by their content.
func (p *Place) takeFiles(ctx context.Context) error {
	root, err := os.OpenRoot(filepath.Join(p.GitDir(), lfsName))
	if err != nil {
		return ignoreMissing(err)
	}
	defer root.Close()
	const top = "objects"
	return fs.WalkDir(root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		sum := d.Name()
		isSum := len(sum) == sha256.Size*2 && strings.Trim(sum, "0123456789abcdef") == ""
		if !isSum || !d.Type().IsRegular() || name != path.Join(top, sum[:2], sum[2:4], sum) {
			return nil
		}
		if err := p.takeFile(name, sum); err != nil {
			return err
		}
		return ignoreMissing(root.Remove(name))
	})
}

// takeFile copies a file of git-lfs to the repository, where that has none of the sum. One that has another sum than
// its name says is left out.
func (p *Place) takeFile(name, sum string) error {
	to := filepath.Join(p.repo.common, lfsName, filepath.FromSlash(name))
	if !durable.IsMissing(to) {
		return nil
	}
	from, err := durable.OpenBelow(p.Dir, filepath.Join(p.GitDir(), lfsName, filepath.FromSlash(name)), os.O_RDONLY, 0)
	if err != nil {
		if isSpoiled(err) {
			return nil
		}
		return ignoreMissing(err)
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(to), "muster-*")
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash), io.LimitReader(from, MaxUnpacked))
	err = errors.Join(err, file.Chmod(0o444), file.Close())
	if err == nil && hex.EncodeToString(hash.Sum(nil)) == sum {
		err = os.Rename(file.Name(), to)
	} else {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}
