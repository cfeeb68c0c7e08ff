package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/ports"
	"muster/internal/proc"
)

// checkout makes a clean directory with a commit's files, outside the repository, so that a build finds nothing above
// it. It returns what every command in it has, and the function that ends its use. name is that of one of several
// checks.
//
// The directory is a small repository of its own, which reads the objects of the real one and writes its own: a check
// that asks git (git diff --exit-code after generating, git describe, git diff origin/main) gets true answers and can
// break nothing.
func (r *Runner) checkout(ctx context.Context, commit, name string) (spec proc.Spec, remove func(), err error) {
	p, err := r.acquire(name)
	if err != nil {
		return spec, nil, err
	}
	defer func() {
		if err != nil {
			p.release()
		}
	}()
	err = r.prepare(ctx, p, commit)
	if err != nil && ctx.Err() == nil && p.files != "" {
		// Whatever was wrong with what was kept, a slot that is made anew does not have it.
		if err = p.wipe(); err == nil {
			err = r.prepare(ctx, p, commit)
		}
	}
	if err != nil {
		return spec, nil, unavailable(ctx, "the merged tree cannot be checked out", err)
	}
	spec.Dir = p.dir
	spec.Env, err = r.environment(ctx, p)
	return spec, p.release, err
}

// prepare makes the checkout of a commit in a place, and the directory for temporary files. What programs leave there
// goes with the check, also when they were killed.
func (r *Runner) prepare(ctx context.Context, p place, commit string) error {
	err := p.clean()
	if err == nil {
		err = r.fill(ctx, p, commit)
	}
	if err == nil && p.files != "" {
		err = listFiles(p.dir).write(p.files)
	}
	if err == nil {
		err = os.Mkdir(p.temporary, 0o700)
	}
	return err
}

// fill checks the commit out in a place, and makes the git directory of the checkout. Files that are there and as they
// should be stay as they are: go test, for one, notes when the files that a test has read were changed.
func (r *Runner) fill(ctx context.Context, p place, commit string) error {
	files, err := r.gitFiles(ctx, commit)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	if err := durable.RemoveContents(p.git, indexFile); err != nil {
		return err
	}
	if err := r.makeGit(p.git, files); err != nil {
		return err
	}
	if err := git.LinkOthers(r.options.Repo.CommonDir(), p.git); err != nil {
		return err
	}
	if err := r.reset(ctx, p); err != nil {
		return err
	}
	index, err := durable.ReadRegular(filepath.Join(p.git, indexFile), maxIndex)
	if err != nil {
		return err
	}
	files[indexFile] = string(index)
	return r.makeGit(filepath.Join(p.dir, ".git"), files)
}

// reset brings the files of a checkout to the commit. No program runs there meanwhile, and git, which is
// confined, obeys only the git directory of muster's own.
func (r *Runner) reset(ctx context.Context, p place) error {
	err := git.InCheckout(ctx, r.options.Repo, p.dir, p.git, "reset", "-q", "--hard", "--no-recurse-submodules")
	if err != nil {
		if writeErr := probeWrite(filepath.Join(p.git, "probe")); writeErr != nil {
			return fmt.Errorf("%w (%w)", err, writeErr)
		}
	}
	return err
}

// gitFiles returns the files of the git directory of a checkout, by their names.
func (r *Runner) gitFiles(ctx context.Context, commit string) (map[string]string, error) {
	repo := r.options.Repo
	// A check may compare with a tag or with what the remote has.
	refs, err := repo.Run(ctx, repo.CommonDir(), "for-each-ref", "--format=%(objectname) %(refname)",
		"refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"HEAD": commit + "\n", "config": r.config(commit), "packed-refs": refs,
		"objects/info/alternates": filepath.ToSlash(filepath.Join(repo.CommonDir(), "objects")) + "\n",
	}
	// A shallow clone has commits whose parents are missing. Without its list git would call the borrowed objects
	// corrupt.
	for _, name := range []string{"shallow", "info/attributes"} {
		path := filepath.Join(repo.CommonDir(), filepath.FromSlash(name))
		switch text, err := durable.ReadRegular(path, git.MaxFile); {
		case err == nil:
			files[name] = string(text)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return files, nil
}

// makeGit makes a git directory with files.
func (r *Runner) makeGit(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	// What git wants to see in a git directory.
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := root.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return git.LinkKeys(r.options.Repo.CommonDir(), dir)
}

// plainValue matches the values of core settings that say how files look on disk. Nothing else may enter the config.
var plainValue = lazyregexp.New(`^[a-z]+$`)

// config is the config of the checkout: what the user's says about how files look on disk, the drivers that run, and
// nothing more.
func (r *Runner) config(commit string) string {
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if len(commit) == 64 {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n" +
			"[extensions]\n\tobjectformat = sha256\n[core]\n"
	}
	for _, name := range []string{"autocrlf", "eol", "symlinks", "filemode", "ignorecase", "precomposeunicode",
		"longpaths"} {
		if value := r.options.Repo.Configured("core." + name); plainValue().MatchString(value) {
			config += fmt.Sprintf("\t%s = %s\n", name, value)
		}
	}
	return config + r.options.Repo.DriverConfig()
}

// probeWrite writes a small file, removes it, and returns why it could not. git does not say why it cannot write a
// file, and callers wait until a full disk has room again.
func probeWrite(path string) error {
	err := os.WriteFile(path, make([]byte, 64<<10), 0o600)
	_ = os.Remove(path) // it may not have been made
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return nil
}

// environment is the environment of the check: the user's, without what commands of the team may not see and what
// redirects git. The user's Go workspace counts only if it is a part of the tree.
func (r *Runner) environment(ctx context.Context, p place) ([]string, error) {
	dir := p.dir
	workspaces, err := r.options.Repo.Do(ctx, git.Call{Dir: p.git, Env: []string{"GIT_DIR=" + p.git},
		Args: []string{"ls-files", "-z", "--", "go.work", "*/go.work"}})
	if err != nil {
		return nil, unavailable(ctx, "the checked-out files cannot be listed", err)
	}
	// A go.work above the checkout, or one that the user's environment names, would check other files than those that
	// land. "GOWORK=" lets Go look for the tree's own.
	goWork := "GOWORK="
	if workspaces == "" {
		goWork = "GOWORK=off"
	}
	env := withCaches(git.Environ(r.options.Environ), p.cache, p.builds, dir)
	// A slot keeps its ports. A temporary directory gives them back when it is gone.
	if r.options.Ports != nil {
		if own, err := r.options.Ports.Assign(ctx, filepath.Dir(dir), r.options.PortCount, nil); err == nil {
			env = proc.WithVariables(env, ports.Environ(own, env)...)
		}
	}
	return proc.WithVariables(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "PWD="+dir, goWork,
		"TMPDIR="+p.temporary), nil
}
