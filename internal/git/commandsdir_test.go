package git

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
)

// end ends a command: what it has written is taken over.
func (l *privateLane) end() (changed bool) {
	l.Helper()
	l.must(l.p.TakeOver(l.Context()))
	changed, err := l.p.Disconnect()
	l.must(err)
	return changed
}

// The index, HEAD and a merge under way are the lane's after a command, and what muster does in the lane is what the next
// command sees. Muster's git works in the lane while a command runs.
func TestCommandsGitDir(t *testing.T) {
	l := newPrivateLane(t, false)
	gittest.Write(t, l.dir, map[string]string{"b.txt": "mine\n", "c.txt": "staged\n"})
	if out, err := l.repo.Run(t.Context(), l.dir, "status", "--porcelain"); err != nil || out != "?? b.txt\n?? c.txt\n" {
		t.Errorf("muster's git while a command runs: %q, %v", out, err)
	}
	if dir := DirOf(l.dir); dir != l.p.Admin || AdminDir(l.repo.CommonDir(), l.dir) != dir {
		t.Errorf("the lane's git directory is %s", dir)
	}
	l.confined("add", "b.txt")
	l.confined("commit", "-q", "-m", "mine")
	l.confined("add", "c.txt")
	if l.end() {
		t.Error("the .git file counts as changed")
	}
	if out := gittest.Git(t, l.dir, "status", "--porcelain"); out != "A  c.txt" {
		t.Errorf("the lane's status is %q", out)
	}
	gittest.Git(t, l.dir, "rm", "-q", "--cached", "c.txt")
	gittest.Git(t, l.dir, "checkout", "-q", "-b", "other", "main")
	gittest.Write(t, l.dir, map[string]string{"b.txt": "theirs\n"})
	gittest.Git(t, l.dir, "add", "b.txt")
	gittest.Git(t, l.dir, "commit", "-q", "-m", "theirs")
	gittest.Git(t, l.dir, "checkout", "-q", "wt/a")

	l.p = l.open()
	if out := l.confined("status", "--porcelain"); out != "?? c.txt" {
		t.Errorf("a command sees %q", out)
	}
	if _, err := gittest.Try(l.dir, "merge", "other"); err == nil {
		t.Fatal("there is no conflict")
	}
	l.end()
	if op, err := UnderWay(l.repo, l.dir); op != "merge" || err != nil {
		t.Errorf("%q is under way, %v", op, err)
	}
	if out := gittest.Git(t, l.dir, "status", "--porcelain"); out != "AA b.txt\n?? c.txt" {
		t.Errorf("the lane's status is %q", out)
	}

	// What is aborted is gone on both sides, whoever aborts it.
	l.p = l.open()
	l.confined("merge", "--abort")
	if _, err := gittest.Try(l.dir, "rebase", "other"); err == nil {
		t.Fatal("there is no conflict")
	}
	l.end()
	if op, err := UnderWay(l.repo, l.dir); op != "rebase" || err != nil {
		t.Errorf("%q is under way, %v", op, err)
	}
	gittest.Git(t, l.dir, "rebase", "--abort")
	l.p = l.open()
	if out := l.confined("status"); strings.Contains(out, "rebase") || strings.Contains(out, "merg") {
		t.Errorf("a command sees\n%s", out)
	}
	l.confined("clone", "-q", ".", filepath.Join(t.TempDir(), "clone"))
	l.confined("stash", "-u")
	l.confined("stash", "pop")
	gittest.Git(t, l.repo.Root(), "fsck", "--strict")
}

// A process that dies leaves the lane connected. The next one takes over what is there, and removing the lane works.
func TestCommandsGitDirOutlivesItsProcess(t *testing.T) {
	l := newPrivateLane(t, false)
	gittest.Write(t, l.dir, map[string]string{"b.txt": "mine\n"})
	l.confined("add", "b.txt")
	l.confined("commit", "-q", "-m", "mine")
	l.p = l.open()
	if gittest.Git(t, l.repo.Root(), "show", "wt/a:b.txt") != "mine" {
		t.Error("the commit was not taken over")
	}
	gittest.Write(t, l.dir, map[string]string{"d.txt": "more\n"})
	l.confined("add", "d.txt")
	l.confined("commit", "-q", "-m", "more")
	l.isMounted, l.p = true, nil // the next process has bubblewrap
	p, err := OpenPrivate(l.repo, l.dir, "refs/heads/wt/a", true)
	l.must(err)
	l.must(p.TakeOver(t.Context()))
	l.must(ReplaceLink(l.repo.CommonDir(), l.dir))
	if !isMissing(p.GitDir()) {
		t.Error("the git directory for commands is still there")
	}
	if out := gittest.Git(t, l.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the lane's status is %q", out)
	}
	l.isMounted = false
	l.p = l.open()
	l.must(l.repo.RemoveWorktree(t.Context(), l.dir))
	if !isMissing(l.dir) || !isMissing(p.Admin) {
		t.Error("the lane is still there")
	}
}

// What hostile commands leave in their git directory, or in the place of .git, reaches neither the repository nor
// muster's git.
func TestCommandsGitDirIsNotTrusted(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	hostile := gittest.Repo(t, map[string]string{"x": "x\n"})
	at := func(l *privateLane, name string) string { return filepath.Join(l.p.GitDir(), name) }
	link := func(l *privateLane, name, to string) error {
		l.must(os.RemoveAll(at(l, name)))
		return os.Symlink(to, at(l, name))
	}
	for name, spoil := range map[string]func(l *privateLane) error{
		"settings of the worktree": func(l *privateLane) error {
			return os.WriteFile(at(l, "config.worktree"), []byte("[core]\n\tworktree = /\n"), 0o600)
		},
		"another repository": func(l *privateLane) error {
			return os.WriteFile(at(l, "commondir"), []byte(filepath.Join(hostile, ".git")+"\n"), 0o600)
		},
		"another worktree": func(l *privateLane) error {
			return os.WriteFile(at(l, "gitdir"), []byte(filepath.Join(hostile, ".git")+"\n"), 0o600)
		},
		"no HEAD":                 func(l *privateLane) error { return os.Remove(at(l, "HEAD")) },
		"a HEAD of nonsense":      func(l *privateLane) error { return os.WriteFile(at(l, "HEAD"), []byte("nonsense"), 0o600) },
		"more than there is":      func(l *privateLane) error { return os.WriteFile(at(l, "hooks"), []byte("x"), 0o600) },
		"other spellings":         func(l *privateLane) error { return os.WriteFile(at(l, "CommonDir"), []byte(hostile), 0o600) },
		"a HEAD that is none":     func(l *privateLane) error { return link(l, "HEAD", "/etc/passwd") },
		"a name that is no text":  func(l *privateLane) error { return os.MkdirAll(at(l, "refs/\xff/x"), 0o700) },
		"a name that is too long": func(l *privateLane) error { return os.WriteFile(at(l, "logs/"+strings.Repeat("x", 253)), nil, 0o600) },
		"no directory": func(l *privateLane) error {
			l.must(os.RemoveAll(at(l, "logs")))
			return os.WriteFile(at(l, "logs"), nil, 0o600)
		},
		"what is closed": func(l *privateLane) error {
			return errors.Join(os.Chmod(at(l, "index"), 0), os.Chmod(at(l, "logs"), 0), os.Chmod(l.p.GitDir(), 0), os.Chmod(filepath.Join(l.p.Dir, "objects"), 0), os.Chmod(filepath.Join(l.p.Dir, "refs/heads"), 0))
		},
		"an index that is a link": func(l *privateLane) error { return link(l, "index", "HEAD") },
		"logs that lead out":      func(l *privateLane) error { return link(l, "logs", outside) },
		"a lock":                  func(l *privateLane) error { return os.WriteFile(at(l, "HEAD.lock"), nil, 0o600) },
		"the .git of another": func(l *privateLane) error {
			return os.WriteFile(filepath.Join(l.dir, ".git"), []byte("gitdir: "+filepath.Join(hostile, ".git")+"\n"), 0o600)
		},
		"the directory of another lane": func(l *privateLane) error {
			return os.WriteFile(filepath.Join(l.dir, ".git"), []byte("gitdir: "+filepath.Join(l.repo.CommonDir(), "muster/lanes/b/git")+"\n"), 0o600)
		},
		"a repository of its own": func(l *privateLane) error {
			l.must(os.Remove(filepath.Join(l.dir, ".git")))
			gittest.Git(l.T, l.dir, "init", "-q")
			return nil
		},
		"no .git": func(l *privateLane) error { return os.Remove(filepath.Join(l.dir, ".git")) },
		"a .git that is a link": func(l *privateLane) error {
			l.must(os.Remove(filepath.Join(l.dir, ".git")))
			return os.Symlink(filepath.Join(l.repo.CommonDir(), "config"), filepath.Join(l.dir, ".git"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPrivateLane(t, false)
			before := plainFiles(t, l.repo.CommonDir())
			l.must(spoil(l))
			if want := isMissing(at(l, "HEAD.lock")) && strings.Contains(name, ".git") || strings.HasSuffix(name, "own") ||
				strings.HasSuffix(name, "lane"); l.end() != want {
				t.Errorf("the .git file counts as changed: %v", !want)
			}
			after := plainFiles(t, l.repo.CommonDir())
			for _, file := range slices.Sorted(maps.Keys(before)) {
				if after[file] != before[file] {
					t.Errorf("%s has changed from %q to %q", file, before[file], after[file])
				}
			}
			if len(after) > len(before) {
				t.Errorf("the repository has more files: %d and not %d", len(after), len(before))
			}
			if out := gittest.Git(t, l.dir, "status", "--porcelain"); out != "" {
				t.Errorf("the lane's status is %q", out)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
				t.Errorf("outside there is %v, %v", left, err)
			}
			l.p = l.open()
			if got := l.confined("rev-parse", "--abbrev-ref", "HEAD"); got != "wt/a" {
				t.Errorf("the next command is on %s", got)
			}
		})
	}
}

// What is more than git keeps of a worktree is said, and no reason to lose commits.
func TestCommandsGitDirHasLimits(t *testing.T) {
	l := newPrivateLane(t, false)
	gittest.Write(t, l.dir, map[string]string{"b.txt": "mine\n"})
	l.confined("add", "b.txt")
	l.confined("commit", "-q", "-m", "mine")
	l.must(os.MkdirAll(filepath.Join(l.p.GitDir(), "sequencer"), 0o700))
	huge := filepath.Join(l.p.GitDir(), "sequencer", "huge")
	l.must(os.WriteFile(huge, nil, 0o600))
	l.must(os.Truncate(huge, 1<<40))
	if err := l.p.TakeOver(t.Context()); !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("a huge file is taken over: %v", err)
	}
	if got := gittest.Git(t, l.repo.Root(), "show", "wt/a:b.txt"); got != "mine" {
		t.Errorf("the commit has %q", got)
	}
	l.must(os.Remove(huge))
	l.end()
	if out := gittest.Git(t, l.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the lane's status is %q", out)
	}
}

// plainFiles returns what the files of a git directory hold, without the places and the logs of lanes, which
// are their own.
func plainFiles(t *testing.T, common string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(common, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(path, filepath.Join(common, "muster")) && !strings.Contains(path, "/worktrees/a/logs") {
			data, readErr := os.ReadFile(path)
			all[path], err = string(data), readErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
