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

// files lists the files at or below s, as slash paths relative to it ("." for s itself), sorted. In a git work tree the
// ignored ones are left out, unless s itself is ignored; git's own never appear, and links are not followed.
func (s confinedPath) files(ctx context.Context) ([]string, error) {
	fi, err := s.root.Stat(s.rel)
	if err != nil {
		return nil, s.why(err)
	}
	if !fi.IsDir() {
		return []string{"."}, nil
	}
	if s.home {
		if list, ok := git.ListFiles(ctx, s.path()); ok {
			slices.Sort(list)
			return slices.Compact(list), nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return s.walk(ctx)
}

func (s confinedPath) walk(ctx context.Context) (list []string, err error) {
	top := filepath.ToSlash(s.rel)
	err = fs.WalkDir(s.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == top:
			return s.why(err)
		case err != nil:
			return nil // one directory that cannot be read hides nothing else
		case d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.IsDir():
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

// is tells what name, from files, is now: git also lists what was deleted, and directories that are repositories.
func (s confinedPath) is(name string) (mode fs.FileMode, there bool) {
	fi, err := s.root.Lstat(s.join(name))
	if err != nil {
		return 0, false
	}
	return fi.Mode(), !fi.IsDir()
}

func (s confinedPath) join(name string) string { return filepath.Join(s.rel, filepath.FromSlash(name)) }

// named is name, from files, as the model names it.
func (s confinedPath) named(name string) string {
	if s.show == "." {
		return name
	}
	return path.Join(filepath.ToSlash(s.show), name)
}
