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
	"muster/internal/testing/require"
)

// end ends a command: what it has written is taken over.
func (l *privateLane) end() (changed bool) {
	l.Helper()
	require.NoError(l, l.p.TakeOver(l.Context()))
	changed, err := l.p.Disconnect()
	require.NoError(l, err)
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
	require.NoError(l, err)
	require.NoError(l, p.TakeOver(t.Context()))
	require.NoError(l, ReplaceLink(l.repo.CommonDir(), l.dir))
	if !isMissing(p.GitDir()) {
		t.Error("the git directory for commands is still there")
	}
	if out := gittest.Git(t, l.dir, "status", "--porcelain"); out != "" {
		t.Errorf("the lane's status is %q", out)
	}
	l.isMounted = false
	l.p = l.open()
	require.NoError(l, l.repo.RemoveWorktree(t.Context(), l.dir))
	if !isMissing(l.dir) || !isMissing(p.Admin) {
		t.Error("the lane is still there")
	}
}

// What hostile commands leave in their git directory, or in the place of .git, reaches neither the repository nor
// muster's git.
func TestCommandsGitDirIsNotTrusted(t *testing.T) {
	outside, hostile := t.TempDir(), gittest.Repo(t, map[string]string{"x": "x\n"})
	for name, script := range map[string]string{
		"settings of the worktree":      `printf '[core]\n\tworktree = /\n' >config.worktree`,
		"another repository":            `echo $HOSTILE/.git >commondir`,
		"another worktree":              `echo $HOSTILE/.git >gitdir`,
		"no HEAD":                       `rm HEAD`,
		"a HEAD of nonsense":            `printf nonsense >HEAD`,
		"more than there is":            `printf x >hooks`,
		"other spellings":               `printf %s $HOSTILE >CommonDir`,
		"a HEAD that is none":           `ln -sf /etc/passwd HEAD`,
		"a name that is no text":        `mkdir -p "$(printf 'refs/\377/x')"`,
		"a name that is too long":       `: >logs/$(printf %0253d 0)`,
		"no directory":                  `rm -r logs; : >logs`,
		"what is closed":                `chmod 0 index logs $PLACE/objects $PLACE/refs/heads .`,
		"an index that is a link":       `ln -sf HEAD index`,
		"logs that lead out":            `rm -r logs; ln -s $OUT logs`,
		"a lock":                        `: >HEAD.lock`,
		"the .git of another":           `echo "gitdir: $HOSTILE/.git" >$LANE/.git`,
		"the directory of another lane": `echo "gitdir: $COMMON/muster/lanes/b/git" >$LANE/.git`,
		"a repository of its own":       `rm $LANE/.git; git init -q $LANE`,
		"no .git":                       `rm $LANE/.git`,
		"a .git that is a link":         `rm $LANE/.git; ln -s $COMMON/config $LANE/.git`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newPrivateLane(t, false)
			before := plainFiles(t, l.repo.CommonDir())
			l.spoil(l.p.GitDir(), script, "HOSTILE="+hostile, "OUT="+outside)
			if want := isMissing(filepath.Join(l.p.GitDir(), "HEAD.lock")) && strings.Contains(name, ".git") || strings.HasSuffix(name, "own") ||
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
	require.NoError(l, os.MkdirAll(filepath.Join(l.p.GitDir(), "sequencer"), 0o700))
	huge := filepath.Join(l.p.GitDir(), "sequencer", "huge")
	require.NoError(l, os.WriteFile(huge, nil, 0o600))
	require.NoError(l, os.Truncate(huge, 1<<40))
	if err := l.p.TakeOver(t.Context()); !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("a huge file is taken over: %v", err)
	}
	if got := gittest.Git(t, l.repo.Root(), "show", "wt/a:b.txt"); got != "mine" {
		t.Errorf("the commit has %q", got)
	}
	require.NoError(l, os.Remove(huge))
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
	require.NoError(t, err)
	return all
}
