package delivery

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/git"
)

// staging is a copy of the index of a checkout.
type staging struct {
	Checkout
	tmp string // a directory with the copy
}

func (x staging) env() []string { return []string{"GIT_INDEX_FILE=" + filepath.Join(x.tmp, "index")} }

// withCopy calls do with a copy of the index.
func (c Checkout) withCopy(do func(staging) error) (err error) {
	x := staging{Checkout: c}
	if x.tmp, err = os.MkdirTemp("", "muster-snapshot-"); err != nil {
		return err
	}
	defer os.RemoveAll(x.tmp)
	if err := x.copyIndex(); err != nil {
		return err
	}
	return do(x)
}

// inCopy stages the files that choose returns in a copy of the index, and returns the tree.
func (c Checkout) inCopy(ctx context.Context, choose func(staging) ([]string, error)) (tree string, err error) {
	err = c.withCopy(func(x staging) error {
		files, err := choose(x)
		if err == nil && len(files) > 0 {
			err = x.add(ctx, files)
		}
		if err != nil {
			return err
		}
		tree, err = c.repo.Do(ctx, git.Call{Dir: c.dir, Env: x.env(), Args: []string{"write-tree"}})
		return err
	})
	return strings.TrimSpace(tree), err
}

// index returns the path of the user's index.
func (c Checkout) index() string {
	return filepath.Join(cmp.Or(git.DirOf(c.dir), c.repo.CommonDir()), "index")
}

// copyIndex copies the index. An index that is missing is an empty one to git.
func (x staging) copyIndex() error {
	err := copyFile(x.index(), filepath.Join(x.tmp, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// restoreIndex puts the copy in the place of the index. The lock is that of git.
func (x staging) restoreIndex() error {
	saved, lock := filepath.Join(x.tmp, "index"), x.index()+".lock"
	if durable.IsMissing(saved) {
		return os.Remove(x.index())
	}
	err := copyFile(saved, lock)
	if err == nil {
		err = os.Rename(lock, x.index())
		if err != nil {
			_ = os.Remove(lock)
		}
	}
	return err
}

// copyFile makes a copy with the time of the file: git compares the content of a file that was written in the second of
// its index. One that is written meanwhile is younger than the copy, which is no harm.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := durable.ReadRegular(from, git.MaxFile)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close(), os.Chmod(to, info.Mode().Perm()),
		os.Chtimes(to, info.ModTime(), info.ModTime()))
	if err != nil { // a lock of git must not stay
		_ = os.Remove(to)
	}
	return err
}

// add stages the files. git add -f, which a tracked file below an ignored directory needs, would also stage what is
// ignored in a directory that has replaced a file.
func (x staging) add(ctx context.Context, files []string) error {
	var gone, there []string
	for _, file := range files {
		info, err := os.Lstat(filepath.Join(x.dir, filepath.FromSlash(file)))
		if err != nil || info.IsDir() {
			gone = append(gone, file)
		} else {
			there = append(there, file)
		}
	}
	if err := x.asUser(ctx, gone, "add", "-u", "--sparse"); err != nil {
		return err
	}
	return x.asUser(ctx, there, "add", "-A", "-f", "--sparse")
}

// asUser lets the user's git do something with the files in the copy of the index, without their hooks, and without a
// file of a split index beside their own. It does nothing without files.
func (x staging) asUser(ctx context.Context, files []string, args ...string) error {
	if len(files) == 0 {
		return nil
	}
	names := filepath.Join(x.tmp, "files")
	if err := os.WriteFile(names, []byte(strings.Join(files, "\x00")), 0o600); err != nil {
		return err
	}
	settings := git.SettingsEnv(os.Environ(), git.Setting{Key: "core.hooksPath", Value: os.DevNull},
		git.Setting{Key: "core.splitIndex", Value: "false"})
	env := slices.Concat(x.env(), settings, []string{"GIT_LITERAL_PATHSPECS=1"})
	_, err := git.RunAsUser(ctx, x.dir, env, append(args, "--pathspec-from-file="+names, "--pathspec-file-nul")...)
	return err
}

// list returns what git ls-files prints of the copy. isWhole is false where git could not read everything.
func (x staging) list(ctx context.Context, env []string, args ...string) (files []string, isWhole bool, err error) {
	var warned bool
	out, err := x.repo.Do(ctx, git.Call{Dir: x.dir, Env: append(x.env(), env...), Warned: &warned,
		Args: append([]string{"ls-files", "-z"}, args...)})
	return git.SplitNUL(out), !warned, err
}
