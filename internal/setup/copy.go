package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"muster/internal/durable"
)

// stamp is what a file of an entry was like when it was kept. A file that is another now was written by somebody, and
// is never put anywhere: the time of the last change of its inode cannot be set back.
type stamp struct {
	Path    string      `json:"path"` // with slashes
	Mode    fs.FileMode `json:"mode"` // what it gets in a checkout
	Size    int64       `json:"size,omitempty"`
	ModTime int64       `json:"mtime,omitempty"`
	Changed int64       `json:"ctime,omitempty"`
	Link    string      `json:"link,omitempty"` // where a symbolic link leads
}

// copier copies trees of files. Several goroutines copy the files.
type copier struct {
	from, to string
	isKept   bool   // into the store: read-only, and stamped
	own      []byte // the path that a file must not name to work elsewhere

	stamps  []stamp // of directories and links first, then of files
	isBound atomic.Bool
	bytes   atomic.Int64
}

// copyAll copies the roots, paths below from, into an empty directory of the store.
func (c *copier) copyAll(ctx context.Context, roots []string) error {
	var files []int // in stamps
	for _, root := range roots {
		root = strings.TrimSuffix(root, "/")
		if err := os.MkdirAll(filepath.Join(c.to, filepath.FromSlash(path.Dir(root))), 0o700); err != nil {
			return err
		}
		err := filepath.WalkDir(filepath.Join(c.from, filepath.FromSlash(root)),
			func(name string, d fs.DirEntry, err error) error {
				if err != nil || ctx.Err() != nil {
					return cmp.Or(err, context.Cause(ctx))
				}
				rel, err := filepath.Rel(c.from, name)
				if err != nil {
					return err
				}
				s := stamp{Path: filepath.ToSlash(rel)}
				if err := c.enter(name, d, &s); err != nil {
					return err
				}
				if c.stamps = append(c.stamps, s); s.Mode.IsRegular() {
					files = append(files, len(c.stamps)-1)
				}
				if len(c.stamps) > maxEntryFiles {
					return fmt.Errorf("it has more than %d files", maxEntryFiles)
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	// The directories and links are there now. The files do not depend on each other, and the disk is waited for most
	// of the time, so several are copied at once.
	return inParallel(ctx, len(files), func(i int) error { return c.keepFile(&c.stamps[files[i]]) })
}

// enter makes a directory or a link, and notes what each entry is.
func (c *copier) enter(name string, d fs.DirEntry, s *stamp) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	to := filepath.Join(c.to, filepath.FromSlash(s.Path))
	switch s.Mode = info.Mode() & (fs.ModeType | fs.ModePerm); {
	case info.IsDir():
		return os.Mkdir(to, 0o700)
	case s.Mode&fs.ModeSymlink != 0:
		if s.Link, err = os.Readlink(name); err != nil {
			return err
		}
		// A link into the checkout where it was made would lead there from every other one.
		if rel, ok := strings.CutPrefix(s.Link, string(c.own)+string(filepath.Separator)); ok {
			s.Link, err = filepath.Rel(filepath.Dir(name), filepath.Join(c.from, rel))
		} else if s.Link == string(c.own) {
			s.Link, err = filepath.Rel(filepath.Dir(name), c.from)
		}
		return cmp.Or(err, os.Symlink(s.Link, to))
	case info.Mode().IsRegular():
		if path.Base(s.Path) == "pyvenv.cfg" {
			c.isBound.Store(true)
		}
		if c.bytes.Add(info.Size()) > maxEntryBytes {
			return fmt.Errorf("it has more than %d GB", maxEntryBytes>>30)
		}
		return nil
	}
	return fmt.Errorf("%s is neither a file nor a directory nor a link", s.Path)
}

// keepFile copies a file into the store and stamps it.
func (c *copier) keepFile(s *stamp) error {
	from, to := filepath.Join(c.from, filepath.FromSlash(s.Path)), filepath.Join(c.to, filepath.FromSlash(s.Path))
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := copyFile(from, to, 0o400|s.Mode.Perm()&0o111); err != nil {
		return err
	}
	if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	if !c.isBound.Load() && mayBind(s.Path) && info.Size() <= maxSearched {
		data, err := os.ReadFile(to)
		if err != nil {
			return err
		}
		if bytes.Contains(data, c.own) {
			c.isBound.Store(true)
		}
	}
	kept, err := os.Lstat(to)
	if err != nil {
		return err
	}
	s.Size, s.ModTime, s.Changed = kept.Size(), kept.ModTime().UnixNano(), changeTime(kept)
	return nil
}

// maxSearched is the size of the largest file in which the path of its checkout is looked for.
const maxSearched = 8 << 20

// mayBind reports whether a file that names the path of its checkout makes the result useless elsewhere. What builds
// leave beside their products names it too, and nothing reads that later.
func mayBind(file string) bool {
	base := path.Base(file)
	switch path.Ext(base) {
	case ".map", ".d", ".o", ".mk", ".log", ".tsbuildinfo", ".gypi":
		return false
	}
	return base != "Makefile" && base != ".modules.yaml" && !strings.HasPrefix(base, ".pnpm-workspace-state") &&
		!strings.Contains(file, "/.cache/")
}

// put puts an entry into a checkout: all of it, or the roots that are named. Nothing that is there is replaced. After
// an error, what was put is removed again.
func (s *Store) put(ctx context.Context, e Entry, dir string, only []string) (err error) {
	stamps, err := e.stamps()
	if err != nil {
		return errors.Join(err, e.Remove())
	}
	// A place is checked before anything is put there. The lane or the check directory is not in use yet, so nothing
	// changes between the two.
	var begun []string
	defer func() {
		if err != nil {
			err = errors.Join(err, removePut(dir, begun))
		}
	}()
	for _, root := range e.Roots {
		if only != nil && !slices.Contains(only, root) {
			continue
		}
		root = strings.TrimSuffix(root, "/")
		if err := checkPlace(dir, root); err != nil {
			begun = nil // nothing was put, and what is there is somebody's
			return err
		}
		begun = append(begun, root)
	}
	isPut := func(file string) bool {
		return slices.ContainsFunc(begun, func(root string) bool {
			return file == root || strings.HasPrefix(file, root+"/")
		})
	}
	content := filepath.Join(e.dir, contentDir)
	var files, dirs []stamp
	for _, x := range stamps {
		to := filepath.Join(dir, filepath.FromSlash(x.Path))
		switch {
		case !filepath.IsLocal(filepath.FromSlash(x.Path)):
			err = fmt.Errorf("an entry of %s names %s", e.dir, x.Path)
		case !isPut(x.Path):
		case x.Mode.IsDir():
			dirs = append(dirs, x)
			err = os.Mkdir(to, 0o700)
		case x.Mode&fs.ModeSymlink != 0:
			err = os.Symlink(x.Link, to)
		default:
			files = append(files, x)
		}
		if err != nil {
			return err
		}
	}
	err = inParallel(ctx, len(files), func(i int) error { return putFile(content, dir, files[i]) })
	if errors.Is(err, errSpoiled) {
		err = errors.Join(err, e.Remove())
	}
	for _, d := range slices.Backward(dirs) { // the inner ones first
		if err == nil {
			err = os.Chmod(filepath.Join(dir, filepath.FromSlash(d.Path)), d.Mode.Perm()|0o700)
		}
	}
	return err
}

// errSpoiled is the error of a kept file that is not what it was.
var errSpoiled = errors.New("a file of a kept set-up has changed since it was kept")

// putFile puts one file of an entry into a checkout.
func putFile(content, dir string, x stamp) error {
	// Looking at the file costs little beside the copy. Its content is not read a second time: nobody can change that
	// and leave the time of the last change of its inode as it was.
	from, to := filepath.Join(content, filepath.FromSlash(x.Path)), filepath.Join(dir, filepath.FromSlash(x.Path))
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != x.Size || info.ModTime().UnixNano() != x.ModTime ||
		changeTime(info) != x.Changed {
		return fmt.Errorf("%w: %s", errSpoiled, x.Path)
	}
	if err := copyFile(from, to, x.Mode.Perm()|0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// checkPlace checks that nothing is at a path of a checkout, and that no link leads out of the checkout on the way.
func checkPlace(dir, root string) error {
	if !filepath.IsLocal(filepath.FromSlash(root)) || root == "." {
		return fmt.Errorf("%q is no path in a checkout", root)
	}
	if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(root))); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("%w: %s", errOccupied, root))
	}
	for up := path.Dir(root); up != "."; up = path.Dir(up) {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(up)))
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no directory", up)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removePut removes what was put into a checkout.
func removePut(dir string, roots []string) (err error) {
	for _, root := range roots {
		name := filepath.Join(dir, filepath.FromSlash(root))
		info, errStat := os.Lstat(name)
		switch {
		case errors.Is(errStat, fs.ErrNotExist):
		case errStat == nil && info.IsDir():
			err = errors.Join(err, durable.RemoveAll(name))
		default:
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// copyFile copies a regular file to a name that is free: as a clone that shares its blocks until one of the two is
// written, where the file system can do that.
func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	// A clone costs no room and takes the same time for a large file as for a small one.
	if !clone(out, in) {
		_, err = io.Copy(out, in)
	}
	// The umask may have taken bits away.
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// inParallel calls f for 0 to n-1, several at a time, until one fails or ctx ends.
func inParallel(ctx context.Context, n int, f func(i int) error) error {
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(min(2*runtime.NumCPU(), 16))
	for i := 0; i < n && within.Err() == nil; i++ {
		all.Go(func() error { return f(i) })
	}
	return cmp.Or(all.Wait(), context.Cause(ctx))
}
