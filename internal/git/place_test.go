package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// lane is a repository with the lane a, on the branch wt/a, and what the git of a command in it sees.
type lane struct {
	*testing.T
	repo *Repo
	dir  string
	p    *Place
	// unlock ends the lock of what has connected the lane, as the end of its process does.
	unlock func() error
}

func newLane(t *testing.T) *lane {
	t.Helper()
	return laneOf(t, gittest.Repo(t, map[string]string{"a.txt": "first\n"}))
}

// laneOf is newLane for a repository.
func laneOf(t *testing.T, root string) *lane {
	t.Helper()
	repo := require.Value(Open(t.Context(), root))(t)
	l := &lane{T: t, repo: repo, dir: filepath.Join(repo.Root(), "lanes", "a")}
	gittest.Git(t, root, "branch", "wt/a")
	require.NoError(t, os.Mkdir(filepath.Dir(l.dir), 0o700))
	require.NoError(t, repo.AddWorktree(t.Context(), l.dir, "wt/a", ""))
	l.begin()
	return l
}

// begin begins a command where nothing can be shown to it alone, after one that may have been cut off.
func (l *lane) begin() {
	l.Helper()
	if l.unlock != nil {
		_ = l.unlock() // again, where the command has ended
	}
	p, err := OpenPlace(l.repo, l.dir, "refs/heads/wt/a")
	if err == nil {
		if err = p.TakeBranch(l.Context()); err == nil || errors.Is(err, muster.ErrInvalid) {
			var connectErr error
			l.unlock, connectErr = p.connect()
			err = errors.Join(p.Refresh(), connectErr)
		}
	}
	require.NoError(l, err)
	l.p = p
}

// end ends a command. It returns whether that has changed .git.
func (l *lane) end() (changed bool) {
	l.Helper()
	require.NoError(l, l.p.TakeBranch(l.Context()))
	changed = !l.p.isConnected()
	require.NoError(l, l.p.disconnect(l.unlock))
	return changed
}

// command runs git as a command does.
func (l *lane) command(args ...string) string {
	l.Helper()
	out, err := gittest.User(l.dir, args...)
	if err != nil {
		l.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (l *lane) commit(file, text string) {
	l.Helper()
	gittest.Write(l.T, l.dir, map[string]string{file: text})
	l.command("add", file)
	l.command("commit", "-q", "-m", file)
}

func (l *lane) root(args ...string) string {
	l.Helper()
	return gittest.Git(l.T, l.repo.Root(), args...)
}

func (l *lane) branch() string { l.Helper(); return l.root("rev-parse", "wt/a") }

// spoil runs a script in the git directory of commands, as hostile ones would.
func (l *lane) spoil(script string, vars ...string) {
	l.Helper()
	c := exec.Command("sh", "-e", "-c", "IFS=; "+script) // no variable is split at the space in the repository's path
	c.Dir = l.p.GitDir()
	c.Env = append(append(os.Environ(), vars...), "LANE="+l.dir, "COMMON="+l.repo.CommonDir(), "PLACE="+l.p.Dir)
	if out, err := c.CombinedOutput(); err != nil {
		l.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func isMissing(path string) bool { _, err := os.Lstat(path); return errors.Is(err, os.ErrNotExist) }

// What commands commit becomes the repository's with its branch. All other refs stay theirs, and what muster moves is what
// the next command sees.
func TestCommitsOfALaneAreTakenOver(t *testing.T) {
	l := newLane(t)
	was := l.branch()
	l.commit("b.txt", "mine\n")
	l.command("tag", "own")
	if objects := l.root("cat-file", "--batch-all-objects", "--batch-check"); strings.Count(objects, "\n") != 2 {
		t.Errorf("the repository has it already:\n%s", objects)
	}
	require.NoError(l, l.p.TakeBranch(t.Context()))
	if now := l.branch(); now == was || l.root("show", "wt/a:b.txt") != "mine" {
		t.Errorf("the branch went from %s to %s", was, now)
	}
	require.NoError(l, l.p.TakeBranch(t.Context())) // a command in the background ends later
	l.root("fsck", "--strict")
	if out, err := gittest.Try(l.repo.Root(), "rev-parse", "-q", "--verify", "own"); err == nil {
		t.Errorf("the repository has the lane's own tag: %s", out)
	}
	l.root("update-ref", "refs/heads/wt/a", was)
	l.root("branch", "other")
	l.begin()
	if got := l.command("rev-parse", "wt/a"); got != was {
		t.Errorf("it sees its branch at %s", got)
	}
	l.command("rev-parse", "own", "other")
	l.root("branch", "-D", "other")
	l.root("pack-refs", "--all")
	l.begin()
	if out := l.command("for-each-ref", "--format=%(refname)"); strings.Contains(out, "other") || !strings.Contains(out, "refs/tags/own") {
		t.Errorf("it sees\n%s", out)
	}
	// A branch that the runtime has moved while a command ran stays there, whether the command has moved it too or not.
	main := l.root("commit-tree", "-p", "main", "-m", "runtime", "main^{tree}")
	l.root("update-ref", "refs/heads/wt/a", main)
	require.NoError(l, l.p.TakeBranch(t.Context()))
	l.command("commit", "-q", "--allow-empty", "-m", "late")
	if err := l.p.TakeBranch(t.Context()); !errors.Is(err, muster.ErrInvalid) || l.branch() != main {
		t.Errorf("%v, and the branch is at %s", err, l.branch())
	}
	l.root("update-ref", "refs/heads/wt/a", was)
	l.begin()
	l.command("reset", "-q", "--hard")
	l.commit("c.txt", "packed\n")
	l.command("branch", "kept")
	l.command("gc", "-q")
	require.NoError(l, l.p.TakeBranch(t.Context()))
	if got := l.root("show", "wt/a:c.txt"); got != "packed" {
		t.Errorf("of the pack came %q", got)
	}
	l.root("fsck", "--strict")
	// A branch that a command has packed stays when the repository's are packed anew.
	l.root("branch", "another")
	l.root("pack-refs", "--all")
	l.begin()
	l.command("rev-parse", "kept", "another")
	l.command("branch", "-D", "kept")
	l.command("config", "user.email", "me@example.com")
	l.begin()
	if got := l.command("config", "user.email"); got != "me@example.com" {
		t.Errorf("the setting of a command is %q", got)
	}
}

// The git of commands has what it needs: an index and a HEAD that stay, merges, clones, the stash. The user's own git in the
// lane sees the lane's branch while no command runs.
func TestGitOfCommands(t *testing.T) {
	l := newLane(t)
	if dir := DirOf(l.dir); filepath.Dir(dir) != filepath.Join(l.repo.CommonDir(), "worktrees") {
		t.Errorf("the lane's git directory is %s", dir)
	}
	l.commit("b.txt", "mine\n")
	gittest.Write(t, l.dir, map[string]string{"c.txt": "staged\n"})
	l.command("add", "c.txt")
	if l.end() {
		t.Error("the .git file counts as changed")
	}
	if out := l.command("status", "--porcelain"); out != "?? c.txt" {
		t.Errorf("the user sees %q", out)
	}
	l.begin()
	if out := l.command("status", "--porcelain"); out != "A  c.txt" {
		t.Errorf("a command sees %q", out)
	}
	l.command("commit", "-q", "-m", "c")
	l.command("checkout", "-q", "-b", "other", "main")
	l.commit("b.txt", "theirs\n")
	l.command("checkout", "-q", "wt/a")
	if _, err := gittest.User(l.dir, "merge", "other"); err == nil {
		t.Fatal("there is no conflict")
	}
	l.end()
	if l.p.Pending("MERGE_HEAD") == "" {
		t.Error("no merge is under way")
	}
	l.begin()
	if out := l.command("status", "--porcelain"); out != "AA b.txt" {
		t.Errorf("a command sees %q", out)
	}
	l.command("merge", "--abort")
	l.command("clone", "-q", ".", filepath.Join(t.TempDir(), "clone"))
	gittest.Write(t, l.dir, map[string]string{"d.txt": "more\n"})
	l.command("stash", "-u")
	l.command("stash", "pop")
	l.root("fsck", "--strict")
	if head, ok := PlaceHead(l.repo, l.dir); head != "refs/heads/wt/a" || !ok {
		t.Errorf("HEAD is %q, %v", head, ok)
	}
}

// A process that dies leaves the lane connected, with whatever a command has put in the place of .git. The next one
// takes over what is there, and removing the lane works.
func TestAPlaceOutlivesItsProcess(t *testing.T) {
	l := newLane(t)
	l.commit("b.txt", "mine\n")
	l.begin()
	if l.root("show", "wt/a:b.txt") != "mine" {
		t.Error("the commit was not taken over")
	}
	l.commit("d.txt", "more\n")
	require.NoError(l, os.Remove(filepath.Join(l.dir, ".git")))
	l.command("init", "-q")
	status := func() string { // of the lane, or of the repository that the command has made
		t.Helper()
		require.NoError(l, DisconnectAbandoned(l.repo.CommonDir()))
		return l.command("status", "--porcelain")
	}
	if out := status(); !strings.Contains(out, "?? a.txt") {
		t.Errorf("the lane was disconnected while its commands run: %q", out)
	}
	require.NoError(l, l.unlock())
	require.NoError(t, l.p.TakeBranch(t.Context()))
	if out := status(); out != "" {
		t.Errorf("the lane's status is %q", out)
	}
	l.begin()
	require.NoError(l, l.repo.RemoveWorktree(t.Context(), l.dir))
	require.NoError(l, RemovePlace(l.repo, l.dir))
	if !isMissing(l.dir) || !isMissing(l.p.Dir) {
		t.Error("the lane is still there")
	}
	if _, err := OpenPlace(l.repo, l.dir, "refs/heads/wt/a"); !errors.Is(err, muster.ErrNotFound) {
		t.Error(err)
	}
}

// What hostile commands leave in what they write changes nothing of the repository, hangs nothing, and stops no later
// command.
func TestAPlaceIsNotTrusted(t *testing.T) {
	outside, hostile := t.TempDir(), gittest.Repo(t, map[string]string{"x": "x\n"})
	gittest.Write(t, outside, map[string]string{"file": strings.Repeat("1", 40) + "\n"})
	for name, script := range map[string]string{
		"an object that is another":    `mkdir -p $PLACE/git/objects/aa; cp $(ls $COMMON/objects/??/* | head -n 1) $FAKE`,
		"an object that is a link":     `mkdir -p $PLACE/git/objects/aa; ln -s $OUT/file $FAKE`,
		"objects that are a link":      `ln -s $OUT $PLACE/git/objects/aa`,
		"no pack":                      `printf PACK >$PLACE/git/objects/pack/pack-1.pack`,
		"borrowed objects":             `echo $HOSTILE/.git/objects >$PLACE/git/objects/info/alternates`,
		"a branch that is a link":      `ln -sf $OUT/file $PLACE/git/refs/heads/wt/a`,
		"a branch that is a pipe":      `rm $PLACE/git/refs/heads/wt/a; mkfifo $PLACE/git/refs/heads/wt/a`,
		"a branch that is a directory": `rm $PLACE/git/refs/heads/wt/a; mkdir -p $PLACE/git/refs/heads/wt/a/b`,
		"a branch that names another":  `echo 'ref: refs/heads/main' >$PLACE/git/refs/heads/wt/a`,
		"refs that are a link":         `rm -r $PLACE/git/refs/heads; ln -s $OUT $PLACE/git/refs/heads`,
		"settings of the worktree":     `printf '[core]\n\tworktree = /\n' >config.worktree`,
		"another repository":           `echo $HOSTILE/.git >commondir`,
		"a pipe for a repository":      `mkfifo commondir`,
		"another worktree":             `echo $HOSTILE/.git >gitdir`,
		"a lock":                       `: >HEAD.lock`,
		"what is closed":               `chmod 0 index logs $PLACE/git/objects $PLACE/git/refs/heads .`,
		"an index that is a link":      `ln -sf $OUT/file index`,
		"logs that lead out":           `rm -r logs; ln -s $OUT logs`,
		"the .git of another":          `echo "gitdir: $HOSTILE/.git" >$LANE/.git`,
		"the git of another lane":      `echo "gitdir: $COMMON/muster/places/lanes/b/git" >$LANE/.git`,
		"a repository of its own":      `rm $LANE/.git; git init -q $LANE`,
		"no .git":                      `rm $LANE/.git`,
		"a .git that is a link":        `rm $LANE/.git; ln -s $COMMON/config $LANE/.git`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLane(t)
			was, before := l.branch(), plainFiles(t, l.repo.CommonDir())
			l.spoil(script, "HOSTILE="+hostile, "OUT="+outside, "FAKE="+l.p.GitDir()+"/objects/aa/"+strings.Repeat("b", 38))
			isChanged := !slices.Contains([]string{"a lock", "another lane"}, name) && strings.Contains(script, "$LANE/.git")
			if got := l.end(); got != isChanged {
				t.Errorf("the .git file counts as changed: %v", got)
			}
			if now := l.branch(); now != was {
				t.Errorf("the branch went from %s to %s", was, now)
			}
			after := plainFiles(t, l.repo.CommonDir())
			if !maps.Equal(after, before) {
				t.Errorf("the repository was\n%v\nand is\n%v", before, after)
			}
			if text := gittest.Read(t, outside, "file"); text != strings.Repeat("1", 40)+"\n" {
				t.Errorf("outside there is %q", text)
			}
			if out := l.command("status", "--porcelain"); out != "" {
				t.Errorf("the user sees %q", out)
			}
			l.begin()
			if got := strings.TrimSpace(l.command("rev-parse", "wt/a")); got != was {
				t.Errorf("the next command sees its branch at %s", got)
			}
		})
	}
	// A branch that names a commit which is not there stays as it is.
	l := newLane(t)
	was := l.branch()
	require.NoError(l, os.WriteFile(filepath.Join(l.p.GitDir(), "refs/heads/wt/a"), []byte(strings.Repeat("1", 40)+"\n"), 0o600))
	if err := l.p.TakeBranch(t.Context()); !errors.Is(err, muster.ErrInvalid) || l.branch() != was {
		t.Errorf("%v, and the branch is at %s", err, l.branch())
	}
}

// Objects that git would not take from a stranger, and too many of them, are refused.
func TestObjectsThatAreRefused(t *testing.T) {
	tree := func(entry string) string {
		return `t=$(printf '` + entry + `' | git hash-object -t tree -w --stdin --literally); ` +
			`git update-ref refs/heads/wt/a $(git commit-tree -p wt/a -m x $t)`
	}
	const blob = `\\341\\257\\234U\\263\\0\\273\\32\\24\\332\\n\\225Vz\\13\\203\\177\\5\\0\\0`
	for name, script := range map[string]string{
		"a directory .git":  tree(`40000 .git\\0` + blob),
		"its other name":    tree(`40000 GIT~1\\0` + blob),
		"the one above":     tree(`40000 ..\\0` + blob),
		"a name with slash": tree(`100644 a/b\\0` + blob),
		"files not there":   tree(`100644 a\\0` + blob),
		"no commit": `git update-ref --no-deref refs/heads/wt/a $(printf 'tree %s\n\nx' ` +
			`$(git rev-parse wt/a^{tree}) | git hash-object -t commit -w --stdin --literally)`,
		"more files than anybody has": `t=$(git rev-parse wt/a^{tree}); for i in 1 2 3 4 5 6 7; do ` +
			`t=$(for j in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\td%s\n' $t $j; done | git mktree); done; ` +
			`git update-ref refs/heads/wt/a $(git commit-tree -p wt/a -m x $t)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t)
			was, before := l.branch(), plainFiles(t, l.repo.CommonDir())
			c := exec.Command("sh", "-e", "-c", strings.ReplaceAll(script, `\\`, `\`))
			c.Dir = l.dir
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := l.p.TakeBranch(t.Context()); !errors.Is(err, muster.ErrInvalid) {
				t.Errorf("it is taken over: %v", err)
			}
			if now := l.branch(); now != was {
				t.Errorf("the branch went from %s to %s", was, now)
			}
			if after := plainFiles(t, l.repo.CommonDir()); !maps.Equal(after, before) {
				t.Errorf("the repository was\n%v\nand is\n%v", before, after)
			}
		})
	}
}

// Settings of a place are those of the user and the repository, without programs, passwords and other files.
func TestSettingsOfAPlace(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("[column]\n\tco = checkout\n"), 0o600))
	for _, kv := range [][2]string{{"user.name", "Ann \"A\" \\ Other"}, {"column.st", "status\t-s # x"}, {"core.autocrlf", "input"},
		{"http.https://x/.extraheader", "AUTHORIZATION: basic c2VjcmV0"}, {"remote.origin.url", "https://me:secret@host/x"},
		{"core.hooksPath", "hooks"}, {"core.fsmonitor", "evil"}, {"filter.evil.clean", "evil"}, {"include.path", other},
		{"alias.up", "!up"}, {"diff.external", "evil"}, {"diff.pdf.textconv", "evil"}, {"core.worktree", "/"}, {"gpg.program", "evil"}, {"commit.gpgSign", "true"}} {
		if kv[0] != "core.worktree" {
			gittest.Git(t, root, "config", kv[0], kv[1])
		}
	}
	repo := require.Value(Open(t.Context(), root))(t)
	dir := filepath.Join(root, "lanes", "a")
	gittest.Git(t, root, "branch", "wt/a")
	require.NoError(t, os.Mkdir(filepath.Dir(dir), 0o700))
	require.NoError(t, repo.AddWorktree(t.Context(), dir, "wt/a", ""))
	p := require.Value(OpenPlace(repo, dir, "refs/heads/wt/a"))(t)
	out := gittest.Git(t, root, "config", "-f", filepath.Join(p.Dir, "config"), "--list")
	for _, want := range []string{"user.name=Ann \"A\" \\ Other", "column.st=status\t-s # x", "core.autocrlf=input", "column.co=checkout", "alias.up=!up"} {
		if !strings.Contains("\n"+out+"\n", "\n"+want+"\n") {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	for _, not := range []string{"secret", "c2VjcmV0", "evil", "hooks", "gpg"} {
		if strings.Contains(out, not) {
			t.Errorf("there is %q in\n%s", not, out)
		}
	}
}

// plainFiles returns what the files of a git directory hold, without what is of places and the logs of lanes.
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

// Commands of agents can read the environment of a git that runs, and filters get it.
func TestGitGetsNoKey(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "ANTHROPIC_API_KEY=k", "GITHUB_TOKEN=github-0123456789", "HTTPS_PROXY=http://me:password@p", "LC_ALL=x",
		"GIT_DIR=/x", "COPY=github-0123456789", "GIT_CONFIG_GLOBAL=/g", "MY_SETTING=1",
		"GIT_CONFIG_COUNT=4", "GIT_CONFIG_KEY_0=http.https://x/.extraHeader", "GIT_CONFIG_VALUE_0=AUTHORIZATION: basic eDp5",
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*", "GIT_CONFIG_KEY_2=url.https://x:y@z/.insteadOf", "GIT_CONFIG_VALUE_2=https://z/",
		"GIT_CONFIG_KEY_3=a.b", "GIT_CONFIG_VALUE_3=github-0123456789"})
	if want := []string{"PATH=/bin", "GIT_CONFIG_GLOBAL=/g", "MY_SETTING=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "LC_ALL=C"}; !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q first", got, want)
	}
}

// Git with the user's rights does not run where commands of members write, whoever asks for it.
func TestGitIsConfinedInAPlace(t *testing.T) {
	l := newLane(t)
	if out, err := l.repo.Run(t.Context(), l.dir, "status"); !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("it says %q, %v", out, err)
	}
}

// Who starts muster in a lane, or in a repository that a member has made there, works in the repository of the lane. No
// git is asked in the lane, whatever a member has put in the place of its .git.
func TestOpenInALane(t *testing.T) {
	for name, spoil := range map[string]string{
		"as a command sees it": "",
		"a repository instead": "rm .git && git init -q && git commit -q --allow-empty -m x",
		"one inside":           "git init -q deep && git -C deep commit -q --allow-empty -m x",
		"a lane inside": "mkdir -p deep && cd deep && git init -q && git commit -q --allow-empty -m x && " +
			"git worktree add -q lanes/x && mkdir -p .git/muster/places && touch .git/worktrees/x/muster-place",
		"no .git":     "rm .git",
		"a .git pipe": "rm .git && mkfifo .git",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLane(t)
			require.NoError(t, os.MkdirAll(l.dir+"/deep", 0o700))
			sh := exec.Command("sh", "-c", spoil)
			sh.Dir = l.dir
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, dir := range []string{l.dir, l.dir + "/deep", l.dir + "/deep/lanes/x"} {
				if _, err := os.Stat(dir); err != nil {
					continue
				}
				r, err := Open(t.Context(), dir)
				if err != nil || r.Root() != l.repo.Root() || r.CommonDir() != l.repo.CommonDir() || r.Linked() != l.dir {
					t.Errorf("in %s: %+v, %v", dir, r, err)
				}
			}
		})
	}
}

// The user's git in a lane is shown the submodules that the lane began with, and no other repository: it would obey what
// a member has written there. So it is in each format of ids, and where git keeps no logs of refs.
func TestTheUsersGitEntersNoOtherRepository(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Setenv("GIT_DEFAULT_HASH", format)
			root := gittest.Repo(t, map[string]string{"a.txt": "first\n",
				".gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = /none\n"})
			link := func(dir, path string) { // to another repository
				gittest.Git(t, dir, "update-index", "--add", "--cacheinfo",
					"160000,"+gittest.Git(t, root, "rev-parse", "HEAD")+","+path)
			}
			gittest.Git(t, root, "config", "core.logAllRefUpdates", "false")
			link(root, "sub")
			gittest.Git(t, root, "commit", "-q", "-m", "sub")
			l := laneOf(t, root)
			link(l.dir, "nested")
			l.command("commit", "-q", "-m", "nested")
			l.end()
			if got, err := gittest.User(l.dir, "ls-files"); err != nil || got != ".gitmodules\na.txt\nsub" {
				t.Errorf("the user's git sees %q, %v", got, err)
			}
		})
	}
}

// A command that could not begin is no reason why the next one cannot.
func TestConnectFailsOnce(t *testing.T) {
	l := newLane(t)
	l.end()
	next := filepath.Join(l.p.Dir, "next")
	require.NoError(t, os.RemoveAll(next))
	require.NoError(t, os.MkdirAll(filepath.Join(next, "full"), 0o700))
	if _, err := l.p.Connect(); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("with a directory in the way: %v", err)
	}
	require.NoError(t, os.RemoveAll(next))
	disconnect, err := l.p.Connect()
	require.NoError(t, err)
	if changed, err := disconnect(); changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
}

// The name of a ref may be any bytes.
func TestARefWhoseNameIsNoText(t *testing.T) {
	l := newLane(t)
	dir := filepath.Join(l.repo.CommonDir(), "refs", "heads", "f\xfcr")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tier.Missing(t, "this file system has only names in UTF-8")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), []byte(gittest.Git(t, l.repo.Root(), "rev-parse", "HEAD")+"\n"), 0o600))
	if err := l.p.Refresh(); err != nil {
		t.Error(err)
	}
}

// A link in the place of a lane leads to what is not muster's, such as the user's own checkout.
func TestALinkInPlaceOfALaneIsNotFollowed(t *testing.T) {
	l := newLane(t)
	l.end()
	disconnect, err := l.p.Connect()
	require.NoError(t, err)
	users := t.TempDir()
	gittest.Git(t, users, "init", "-q")
	require.NoError(t, os.Rename(l.p.Tree, l.p.Tree+"-away"))
	require.NoError(t, os.Symlink(users, l.p.Tree))
	if _, err := disconnect(); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("disconnected: %v", err)
	}
	if _, err := l.p.Connect(); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("connected: %v", err)
	}
	gittest.Git(t, users, "status")
}

// unconfined is a Helper whose programs may do everything.
type unconfined struct{ proc.Launcher }

func (u unconfined) ForFiles(_, _ []string) proc.Launcher   { return u.Launcher }
func (u unconfined) ForFilters(_, _ []string) proc.Launcher { return u.Launcher }

// TestASlowLookEnds: patterns that take git any time end with what to do about them.
func TestASlowLookEnds(t *testing.T) {
	defer func(before int) { lookTime = before }(lookTime)
	lookTime = 1
	l := newLane(t)
	launcher := require.Value(proc.New(t.Context()))(t)
	t.Cleanup(func() { _ = launcher.Close() })
	SetHelper(l.repo, func(context.Context) (Helper, error) { return unconfined{launcher}, nil })
	deep := strings.Repeat("a/", 40)
	require.NoError(t, os.MkdirAll(filepath.Join(l.dir, deep), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, deep, "c"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, ".gitignore"), []byte(strings.Repeat("**/a/", 10)+"**/b"), 0o600))
	_, err := l.p.Do(t.Context(), Call{Args: []string{"status", "--porcelain"}, ReadsTree: true})
	if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "only to see what has changed") {
		t.Errorf("%v", err)
	}
}

// Other repositories than the place's, such as one that a test makes, get what the user has set for all repositories.
func TestUsersConfig(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	gittest.Git(t, root, "config", "user.name", "Only Here")
	users := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(users, []byte("[user]\n\tname = Ann\n\tsigningKey = x\n[init]\n\tdefaultBranch = trunk\n[commit]\n\tgpgSign\n"+
		"[mytool]\n\tlogin = ann:c2VjcmV0\n[alias]\n\tdep = !curl -H 'Authorization: Bearer c2VjcmV0'\n\tup = !GITLAB_TOKEN=c2VjcmV0 glab\n"+
		"[http \"https://x/\"]\n\textraHeader = AUTHORIZATION: basic c2VjcmV0\n[diff]\n\texternal = evil\n[alias]\n\tst = status\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", users)
	repo := require.Value(Open(t.Context(), root))(t)
	want := "[user]\n\tname = \"Ann\"\n[init]\n\tdefaultbranch = \"trunk\"\n[alias]\n\tst = \"status\"\n"
	if got := repo.UsersConfig(); got != want {
		t.Errorf("the settings are\n%s\nwant\n%s", got, want)
	}
}
