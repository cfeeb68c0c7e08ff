package code

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/git"
)

// files lists the files at or below s, sorted, as slash paths relative to it ("." for s itself). In a git
// work tree it leaves out the ignored ones, unless s itself is ignored. It never lists git's own files and
// follows no links.
func (s confinedPath) files(ctx context.Context) ([]string, error) {
	fi, err := s.root.Stat(s.rel)
	if err != nil {
		return nil, s.explain(err)
	}
	if !fi.IsDir() {
		return []string{"."}, nil
	}
	// Git is asked only about the working directory. A read-only root is no work tree, and git would look
	// above it.
	if s.home {
		if list, ok := git.ListFiles(ctx, filepath.Join(s.root.Name(), s.rel)); ok {
			slices.Sort(list)
			return slices.Compact(list), nil // git lists a file once for each side of a conflict
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return s.walk(ctx)
}

// walk lists the files below s where git cannot: outside of a work tree, and in a directory that git ignores.
func (s confinedPath) walk(ctx context.Context) (list []string, err error) {
	top := filepath.ToSlash(s.rel)
	err = fs.WalkDir(s.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == top:
			return s.explain(err)
		case err != nil:
			return nil // a directory that cannot be read must not hide the others
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		case d.Name() != ".git" && !d.IsDir():
			if top != "." {
				name = strings.TrimPrefix(name, top+"/")
			}
			list = append(list, name)
		}
		return nil
	})
	slices.Sort(list)
	return list, err
}

// join returns the path in root of name, which files has listed.
func (s confinedPath) join(name string) string { return filepath.Join(s.rel, filepath.FromSlash(name)) }

// shown returns name, which files has listed, as the model can use it in another call.
func (s confinedPath) shown(name string) string {
	if s.show == "." {
		return name
	}
	return path.Join(filepath.ToSlash(s.show), name)
}
