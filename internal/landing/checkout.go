package landing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"muster/internal/git"
	"muster/internal/proc"
)

// checkout is a clean directory with a commit's files, outside the repository: there is nothing above it that a build could
// find. It is a small repository of its own, which reads the objects of the real one and writes its own, so that a
// check that asks git (git diff --exit-code after generating, git describe) gets true answers and can break nothing.
type checkout struct {
	dir    string
	env    []string
	top    string // what is removed in the end
	remove func()
}

func (l *Lander) checkout(ctx context.Context, commit string) (*checkout, error) {
	top, remove, err := l.lanes.CheckDirs.Create()
	if err != nil {
		return nil, err
	}
	c := &checkout{top: top, dir: filepath.Join(top, filepath.Base(l.repo.Root())), remove: remove}
	if err := l.fill(ctx, c.dir, commit); err != nil {
		c.remove()
		return nil, unavailable(ctx, "the merged tree cannot be checked out", err)
	}
	if c.env, err = l.environment(ctx, c); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

// simple are the values of core settings that say how files look on disk.
var simple = regexp.MustCompile(`^[a-z]+$`)

func (l *Lander) fill(ctx context.Context, dir, commit string) error {
	meta := filepath.Join(dir, ".git")
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(meta, filepath.FromSlash(d)), 0o700); err != nil {
			return err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if len(commit) == 64 {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n[core]\n"
	}
	out, err := l.repo.Run(ctx, l.repo.Root(), "config", "-z", "--get-regexp", `^core\.(autocrlf|eol|symlinks|filemode|ignorecase|precomposeunicode|longpaths)$`)
	if exit, ok := errors.AsType[*git.ExitError](err); err != nil && !(ok && exit.Code == 1) { // 1: none is set
		return err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok && simple.MatchString(value) {
			config += fmt.Sprintf("\t%s = %s\n", strings.TrimPrefix(key, "core."), value)
		}
	}
	shallow, err := os.ReadFile(filepath.Join(l.repo.CommonDir(), "shallow"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files := map[string]string{
		"HEAD": commit + "\n", "config": config,
		"objects/info/alternates": filepath.ToSlash(filepath.Join(l.repo.CommonDir(), "objects")) + "\n",
	}
	if len(shallow) > 0 {
		files["shallow"] = string(shallow)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(meta, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if _, err = l.repo.Run(ctx, dir, "reset", "-q", "--hard", "--no-recurse-submodules"); err != nil {
		if full := probe(filepath.Join(meta, "room")); full != nil {
			return fmt.Errorf("%w (%w)", err, full)
		}
	}
	return err
}

// probe writes a small file, removes it, and says why it could not: git does not say why it cannot write a file, and that
// there is no room is waited out.
func probe(path string) error {
	err := os.WriteFile(path, make([]byte, 64<<10), 0o600)
	_ = os.Remove(path)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// environment is the check's: the user's, without what no command of the team sees and what redirects git, and with a Go workspace only if it is part of the tree.
func (l *Lander) environment(ctx context.Context, c *checkout) ([]string, error) {
	work, err := l.repo.Run(ctx, c.dir, "ls-files", "-z", "--", "go.work", "*/go.work")
	if err != nil {
		return nil, unavailable(ctx, "the checked-out files cannot be listed", err)
	}
	set := []string{"GIT_CEILING_DIRECTORIES=" + c.top, "PWD=" + c.dir}
	if work == "" {
		set = append(set, "GOWORK=off")
	} else {
		set = append(set, "GOWORK=")
	}
	set = append(set, l.o.Env...)
	env := slices.DeleteFunc(git.Environ(proc.Withhold(os.Environ())), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(env, set...), nil
}
