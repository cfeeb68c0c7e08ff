package git

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// privateLane is a repository with the lane a, on the branch wt/a, and what the git of a confined command in it sees.
type privateLane struct {
	*testing.T
	repo      *Repo
	dir       string
	p         *Private
	isMounted bool
}

func newPrivateLane(t *testing.T, isMounted bool) *privateLane {
	t.Helper()
	root := gittest.Repo(t, map[string]string{"a.txt": "first\n"})
	repo := require.Value(Open(t.Context(), root))(t)
	gittest.Git(t, root, "worktree", "add", "-q", "-b", "wt/a", filepath.Join(root, "lanes", "a"))
	l := &privateLane{T: t, repo: repo, dir: filepath.Join(repo.Root(), "lanes", "a"), isMounted: isMounted}
	l.p = l.open()
	return l
}

func (l *privateLane) open() *Private {
	l.Helper()
	p, err := OpenPrivate(l.repo, l.dir, "refs/heads/wt/a", l.isMounted)
	if err == nil {
		if err = p.TakeOver(l.Context()); err == nil || errors.Is(err, muster.ErrInvalid) {
			err = p.Prepare()
		}
	}
	if err == nil && !l.isMounted {
		err = p.Connect()
	}
	require.NoError(l, err)
	return p
}

// confined runs git as a confined command would: its objects and refs are those of the place. Where the sandbox mounts
// them, this has a copy of the git directory with links.
func (l *privateLane) confined(args ...string) string {
	l.Helper()
	if !l.isMounted {
		return gittest.Git(l.T, l.dir, args...)
	}
	view := filepath.Join(l.TempDir(), "git")
	require.NoError(l, os.MkdirAll(filepath.Join(view, "worktrees"), 0o755))
	for name, to := range map[string]string{"objects": filepath.Join(l.p.Dir, "objects"), "refs": filepath.Join(l.p.Dir, "refs"),
		"logs": filepath.Join(l.p.Dir, "logs"), "config": filepath.Join(l.repo.CommonDir(), "config"),
		"HEAD": filepath.Join(l.repo.CommonDir(), "HEAD")} {
		require.NoError(l, os.Symlink(to, filepath.Join(view, name)))
	}
	if packed := filepath.Join(l.repo.CommonDir(), "packed-refs"); !isMissing(packed) {
		require.NoError(l, os.Symlink(packed, filepath.Join(view, "packed-refs")))
	}
	// Of the two ways to say where the common directory is, git's refs follow this one alone.
	link := filepath.Join(l.p.Admin, "commondir")
	require.NoError(l, os.WriteFile(link, []byte(view+"\n"), 0o600))
	defer func() { require.NoError(l, os.WriteFile(link, []byte("../..\n"), 0o600)) }()
	c := exec.Command("git", args...)
	c.Dir = l.dir
	c.Env = append(os.Environ(), "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(l.repo.CommonDir(), "objects"))
	out, err := c.CombinedOutput()
	if err != nil {
		l.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func isMissing(path string) bool { _, err := os.Lstat(path); return errors.Is(err, os.ErrNotExist) }

// spoil runs a script in a directory of the lane's, as hostile commands would.
func (l *privateLane) spoil(dir, script string, vars ...string) {
	l.Helper()
	c := exec.Command("sh", "-e", "-c", "IFS=; "+script) // no variable is split at the space in the repository's path
	c.Dir = dir
	c.Env = append(append(os.Environ(), vars...), "LANE="+l.dir, "COMMON="+l.repo.CommonDir(), "PLACE="+l.p.Dir, "ADMIN="+l.p.Admin)
	if out, err := c.CombinedOutput(); err != nil {
		l.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (l *privateLane) branch() string {
	l.Helper()
	return strings.TrimSpace(gittest.Git(l.T, l.repo.Root(), "rev-parse", "wt/a"))
}

func TestPrivateCommitsAreTakenOver(t *testing.T) {
	for _, isMounted := range []bool{true, false} {
		t.Run(fmt.Sprintf("isMounted=%v", isMounted), func(t *testing.T) { testTakeOver(newPrivateLane(t, isMounted)) })
	}
}

func testTakeOver(l *privateLane) {
	t := l.T
	gittest.Write(t, l.dir, map[string]string{"b.txt": "mine\n"})
	l.confined("add", "b.txt")
	l.confined("commit", "-q", "-m", "mine")
	l.confined("tag", "own")
	was := l.branch()
	if objects := gittest.Git(t, l.repo.Root(), "cat-file", "--batch-all-objects", "--batch-check"); strings.Count(objects, "\n") != 2 {
		t.Errorf("the repository has it already:\n%s", objects)
	}
	require.NoError(l, l.p.TakeOver(t.Context()))
	if now := l.branch(); now == was || gittest.Git(t, l.repo.Root(), "show", "wt/a:b.txt") != "mine" {
		t.Errorf("the branch went from %s to %s", was, now)
	}
	require.NoError(l, l.p.TakeOver(t.Context())) // a command in the background ends later
	gittest.Git(t, l.repo.Root(), "fsck", "--strict")
	if out, err := gittest.Try(l.repo.Root(), "rev-parse", "-q", "--verify", "own"); err == nil {
		t.Errorf("the repository has the lane's own tag: %s", out)
	}
	// What the runtime has moved meanwhile is what the next command sees, and its own tag stays.
	gittest.Git(t, l.repo.Root(), "update-ref", "refs/heads/wt/a", was)
	gittest.Git(t, l.repo.Root(), "branch", "other")
	l.p = l.open()
	if got := strings.TrimSpace(l.confined("rev-parse", "wt/a")); got != was {
		t.Errorf("it sees its branch at %s", got)
	}
	l.confined("rev-parse", "own", "other")
	gittest.Git(t, l.repo.Root(), "branch", "-D", "other")
	gittest.Git(t, l.repo.Root(), "pack-refs", "--all")
	l.p = l.open()
	if out := l.confined("for-each-ref", "--format=%(refname)"); strings.Contains(out, "other") || !strings.Contains(out, "refs/tags/own") {
		t.Errorf("it sees\n%s", out)
	}
	// A branch that the runtime has moved while a command ran stays there, whether the command has moved it too or not.
	main := strings.TrimSpace(gittest.Git(t, l.repo.Root(), "commit-tree", "-p", "main", "-m", "runtime", "main^{tree}"))
	gittest.Git(t, l.repo.Root(), "update-ref", "refs/heads/wt/a", main)
	require.NoError(l, l.p.TakeOver(t.Context()))
	l.confined("commit", "-q", "--allow-empty", "-m", "late")
	if err := l.p.TakeOver(t.Context()); !errors.Is(err, muster.ErrInvalid) || l.branch() != main {
		t.Errorf("%v, and the branch is at %s", err, l.branch())
	}
	gittest.Git(t, l.repo.Root(), "update-ref", "refs/heads/wt/a", was)
	l.p = l.open()
	l.confined("reset", "-q", "--hard")
	// A pack that a command makes is taken over whole.
	gittest.Write(t, l.dir, map[string]string{"c.txt": "packed\n"})
	l.confined("add", "c.txt")
	l.confined("commit", "-q", "-m", "packed")
	l.confined("repack", "-q", "-a", "-d", "-l")
	require.NoError(l, l.p.TakeOver(t.Context()))
	if got := gittest.Git(t, l.repo.Root(), "show", "wt/a:c.txt"); got != "packed" {
		t.Errorf("of the pack came %q", got)
	}
	gittest.Git(t, l.repo.Root(), "fsck", "--strict")
}

// What hostile commands leave in the place changes nothing of the repository, and hangs nothing.
func TestPrivatePlacesAreNotTrusted(t *testing.T) {
	outside := t.TempDir()
	gittest.Write(t, outside, map[string]string{"file": strings.Repeat("1", 40) + "\n"})
	for name, script := range map[string]string{
		"an object that is another":    `mkdir -p objects/aa; cp $(ls $COMMON/objects/??/* | head -n 1) $FAKE`,
		"an object that is a link":     `mkdir -p objects/aa; ln -s $OUT/file $FAKE`,
		"objects that are a link":      `ln -s $OUT objects/aa`,
		"no pack":                      `printf PACK >objects/pack/pack-1.pack`,
		"a branch that is a link":      `ln -sf $OUT/file refs/heads/wt/a`,
		"a branch that is a directory": `rm refs/heads/wt/a; mkdir -p refs/heads/wt/a/b`,
		"a branch that names another":  `echo 'ref: refs/heads/main' >refs/heads/wt/a`,
		"a log that is a link":         `rm -rf $ADMIN/logs; ln -s $OUT $ADMIN/logs`,
		"settings of the worktree":     `printf '[core]\n\tfsmonitor = false\n' >$ADMIN/config.worktree`,
		"refs that are a link":         `rm -r refs/heads; ln -s $OUT refs/heads`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newPrivateLane(t, true)
			was := l.branch()
			l.spoil(l.p.Dir, script, "OUT="+outside, "FAKE=objects/aa/"+strings.Repeat("b", 38))
			require.NoError(l, l.p.TakeOver(t.Context()))
			if now := l.branch(); now != was {
				t.Errorf("the branch went from %s to %s", was, now)
			}
			gittest.Git(t, l.repo.Root(), "fsck", "--strict")
			for _, name := range []string{"logs", "config.worktree"} {
				if st, err := os.Lstat(filepath.Join(l.p.Admin, name)); err == nil && !st.IsDir() {
					t.Errorf("%s is still there", name)
				}
			}
			l.p = l.open()
			if got := strings.TrimSpace(l.confined("rev-parse", "HEAD")); got != was {
				t.Errorf("the next command sees its branch at %s", got)
			}
		})
	}
	// A branch that names a commit which is not there stays as it is, and so does one of a context that has ended.
	l := newPrivateLane(t, true)
	was := l.branch()
	require.NoError(l, os.WriteFile(filepath.Join(l.p.Dir, "refs/heads/wt/a"), []byte(strings.Repeat("1", 40)+"\n"), 0o600))
	if err := l.p.TakeOver(t.Context()); err == nil || l.branch() != was {
		t.Errorf("%v, and the branch is at %s", err, l.branch())
	}
	if _, err := OpenPrivate(l.repo, filepath.Join(l.repo.Root(), "lanes", "none"), "refs/heads/wt/none", true); !errors.Is(err, muster.ErrNotFound) {
		t.Error(err)
	}
	require.NoError(l, RemovePrivate(l.repo, l.dir))
	if !isMissing(l.p.Dir) {
		t.Error("the place is still there")
	}
}

// Commands of agents can read the environment of a git that runs, and filters get it.
func TestGitGetsNoKey(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "ANTHROPIC_API_KEY=k", "GITHUB_TOKEN=github-0123456789", "HTTPS_PROXY=http://me:password@p", "LC_ALL=x",
		"GIT_DIR=/x", "COPY=github-0123456789", "GIT_CONFIG_GLOBAL=/g", "MY_SETTING=1"})
	if want := []string{"PATH=/bin", "GIT_CONFIG_GLOBAL=/g", "MY_SETTING=1", "LC_ALL=C"}; !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q first", got, want)
	}
}
