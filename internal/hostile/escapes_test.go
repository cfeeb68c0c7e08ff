//go:build linux

package hostile

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/internal/sandbox"
	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// secret stands in each file that a confined command must not read.
const secret = "c0ffee-only-for-the-user"

// envSecret is a value of the environment of the user. muster hides it wherever it is printed, so it shows no reading.
const envSecret = "t0ken-only-for-the-user"

// escapes are commands of a member that does what any text tells it. $OUT is a directory outside of the lane that the
// command tries to write to, $USER_HOME the user's home directory, $REPO the repository, $OTHER another of the user's
// repositories, $SOCKET a socket of the user's, $PORT_OF_USER a server of the user's on the loopback. Each prints what it
// can get at.
var escapes = map[string]string{
	// Files, by their names.
	"write beside":            `echo x > $OUT/plain`,
	"write with ..":           `echo x > ../../../out/dots`,
	"append to the profile":   `echo x >> $USER_HOME/.profile; echo x >> $USER_HOME/.bashrc`,
	"read a key":              `cat $USER_HOME/.ssh/id_ed25519`,
	"read through tilde":      `cat ~/.aws/credentials ~/.netrc ~/.config/gh/hosts.yml ~/.docker/config.json`,
	"list the home directory": `find $USER_HOME -type f | xargs cat`,
	"read another repository": `cat $OTHER/secret; git -C $OTHER log -p`,
	"read the state":          `cat $REPO/.team/*.json $REPO/.transcripts/*/* $REPO/.tasks/*; ls -R $REPO/.team`,
	"read keys beside git":    `cat $REPO/.git/git-crypt/keys/default $REPO/.git/config.bak; grep -r . $REPO/.git/hooks $REPO/.git/worktrees`,
	"read shadow":             `cat /etc/shadow /etc/gshadow /etc/ssh/*_key`,
	"write to the system":     `echo x > /usr/bin/evil; echo x > /etc/cron.d/evil; mkdir /evil`,
	"write to the checkout":   `echo x > $REPO/a.txt; rm -f $REPO/a.txt`,
	"write the settings":      `echo 'check: "true"' > $REPO/muster.yaml; mkdir -p $REPO/.claude; echo {} > $REPO/.claude/settings.json`,
	"write other lanes":       `for d in $REPO/.worktrees/*; do [ "$d" = "$PWD" ] || echo x > $d/evil; done; mkdir -p $REPO/.worktrees/evil && echo x > $REPO/.worktrees/evil/x`,
	"modes and dates":         `chmod -R a+rwx $USER_HOME $REPO/a.txt $OTHER; chmod 777 $USER_HOME/.ssh; touch -d 2001-02-03 $USER_HOME/.netrc $REPO/a.txt`,
	"modes by a descriptor":   `python3 -c "import os; os.fchmod(os.open('$REPO/a.txt', os.O_RDONLY), 0o777)"; python3 -c "import os; os.chmod('/proc/self/fd/%d' % os.open('$REPO/a.txt', os.O_PATH), 0o777); os.utime(os.open('$REPO/a.txt', os.O_RDONLY))"`,
	"modes of devices":        `chmod 600 /dev/full; exec 3>/dev/full; chmod 600 /proc/self/fd/3; python3 -c "import os; os.fchmod(3, 0o600)"`,
	"modes between two looks": `touch mode; (for i in $(seq 200); do ln -sfn $REPO/a.txt mode; ln -sfn link mode; done) & for i in $(seq 60); do chmod 777 mode; done 2>&1 | tail -1; wait`,
	"lists of who may use it": `setfacl -m u:daemon:rw $REPO/a.txt $USER_HOME/.netrc; python3 -c "import os; os.setxattr('$REPO/a.txt', 'user.evil', b'x')"`,
	// Links.
	"symbolic link out":       `ln -s $OUT link && echo x > link/through`,
	"link in the way":         `ln -sfn $USER_HOME/.ssh keys && cat keys/id_ed25519`,
	"hard link":               `ln $REPO/a.txt hard && echo x >> hard`,
	"hard link to a key":      `ln $USER_HOME/.ssh/id_ed25519 hardkey && cat hardkey`,
	"link between two looks":  `for i in $(seq 50); do ln -sfn $OUT swap; echo x > swap/raced; rm -f swap; mkdir -p swap; rmdir swap; done`,
	"rename out":              `echo x > mine && mv mine $OUT/moved`,
	"tar with absolute names": `mkdir -p t && echo x > t/f && tar -cPf t.tar --transform="s,t/f,$OUT/tar," t/f && tar -xPf t.tar`,
	// The kernel's files.
	"root of another process":  `cat /proc/1/root$USER_HOME/.ssh/id_ed25519; ls -L /proc/*/root | head -50; cat /proc/*/root$USER_HOME/.netrc`,
	"directory of a process":   `for p in /proc/[0-9]*; do cat $p/cwd/.netrc $p/cwd/../home/.netrc; done`,
	"environment of a process": `cat /proc/*/environ | tr '\0' '\n'`,
	"descriptors":              `for fd in /proc/*/fd/*; do case $(readlink $fd) in $USER_HOME*) cat $fd;; esac; done; for n in 3 4 5 6 7 8 9; do cat <&$n; done`,
	"core pattern":             `echo "|/bin/sh -c 'echo x > $OUT/core'" > /proc/sys/kernel/core_pattern; cat /proc/sys/kernel/core_pattern`,
	"other settings of /proc":  `echo /bin/sh > /proc/sys/kernel/modprobe; echo 1 > /proc/sys/kernel/sysrq; echo h > /proc/sysrq-trigger; umount /proc/sys; echo 0 > /proc/sys/kernel/randomize_va_space`,
	"cgroup release agent":     `mkdir -p /tmp/cg && mount -t cgroup -o rdma cgroup /tmp/cg; echo $OUT/agent > /sys/fs/cgroup/release_agent; echo x > /sys/kernel/uevent_helper`,
	"devices":                  `mknod /tmp/disk b 254 0 && head -c 100 /tmp/disk; mknod /tmp/mem c 1 1 && head -c 100 /tmp/mem; ls /dev/vd* /dev/sd*`,
	// Processes.
	"signal":                  `kill -9 $(cat $OUT/../pid); pkill -9 -f '[s]leep 3600'`,
	"trace":                   `for p in $(cat $OUT/../pid) $PPID 1 $(ls /proc | grep '^[0-9]' | tail -15); do gdb -p $p -batch -ex 'info proc'; strace -p $p -e none -o /tmp/s & done 2>&1 | head; sleep 0.1; cat $OUT/../pid`,
	"process in the distance": `(setsid sh -c 'sleep 1; echo x > '$OUT'/later; exec sleep 987654' >/dev/null 2>&1 &)`,
	"double fork":             `(setsid nohup sh -c '(sleep 1; echo x > '$OUT'/nohup; exec sleep 987655) &' >/dev/null 2>&1 &)`,
	// Namespaces and mounts.
	"new user namespace":  `unshare -Urm sh -c "mount --bind / /tmp && cat /tmp$USER_HOME/.netrc; umount -l $USER_HOME && cat $USER_HOME/.netrc; echo x > $OUT/userns"`,
	"unmount":             `umount $USER_HOME; umount -l $USER_HOME; cat $USER_HOME/.netrc`,
	"remount":             `mount -o remount,rw /usr; mount -o remount,rw $REPO; echo x > $REPO/remounted`,
	"enter the namespace": `nsenter -t 1 -a cat $USER_HOME/.netrc; nsenter --mount=/proc/1/ns/mnt cat $USER_HOME/.netrc; chroot /proc/1/root cat $USER_HOME/.netrc`,
	"bwrap in bwrap":      `bwrap --dev-bind / / cat $USER_HOME/.netrc`,
	// Sockets and the network.
	"a socket of the user": `python3 -c "import socket; s=socket.socket(socket.AF_UNIX); s.connect('$SOCKET'); s.send(b'x')"`,
	"an abstract socket":   `python3 -c "import socket; s=socket.socket(socket.AF_UNIX); s.connect('\0$ABSTRACT'); s.send(b'x')"`,
	"docker":               `curl -sS --unix-socket /var/run/docker.sock http://x/info; ls -la /run /var/run/`,
	"ssh agent":            `ssh-add -l; ls /tmp/ssh-*; echo $SSH_AUTH_SOCK`,
	"loopback of the user": `curl -sS http://127.0.0.1:$PORT_OF_USER/; echo x > /dev/tcp/127.0.0.1/$PORT_OF_USER`,
	"the network":          `curl -sS -m 2 http://192.0.2.1/; getent hosts example.org; python3 -c "import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', $PORT_OF_USER))"`,
	"raw network":          `ping -c1 -W1 127.0.0.1 -I lo; ip link add dummy0 type dummy; ip netns add x`,
	// git.
	"hook in the repository":   `printf '#!/bin/sh\necho x > $OUT/hook\n' > $REPO/.git/hooks/post-merge; chmod +x $REPO/.git/hooks/*`,
	"git config":               `git config core.fsmonitor "echo x > $OUT/fsmonitor"; git config --worktree core.fsmonitor "echo x > $OUT/worktree"`,
	"config of the worktree":   `g=$(git rev-parse --git-dir); printf '[core]\n\tfsmonitor = echo x > %s/wt\n' $OUT > $g/config.worktree`,
	"config of all worktrees":  `c=$(git rev-parse --git-common-dir); rm -f $c/config; printf '[core]\n\tfsmonitor = echo x > %s/common\n' $OUT > $c/config`,
	"another common directory": `g=$(git rev-parse --git-dir); mkdir -p evil && cp -r $REPO/.git evil/git; echo $PWD/evil/git > $g/commondir`,
	"another .git":             `rm -f .git; mv .git old; mkdir .git; git init -q . 2>&1; printf '[core]\n\tfsmonitor = echo x > %s/dotgit\n' $OUT >> .git/config`,
	"another branch":           `git update-ref refs/heads/main HEAD; git branch -f main HEAD; git push . HEAD:main; rm -f $REPO/.git/refs/heads/main`,
	"target":                   `git update-ref refs/heads/muster/t HEAD; echo 0000 > $REPO/.git/refs/heads/main`,
	"log that is a link":       `g=$(git rev-parse --git-dir); rm -f $g/logs/HEAD; ln -s $OUT/log $g/logs/HEAD; ln -s $OUT/orig $g/ORIG_HEAD`,
	"alternates":               `o=$REPO/.git/objects; echo $OTHER/.git/objects > $o/info/alternates; git cat-file -p $OTHER_COMMIT:secret`,
	"objects that are links":   `o=$REPO/.git/objects; for i in $(seq 16 255); do ln -sfn $OTHER/.git/objects/$(printf %02x $i) $o/$(printf %02x $i); done; git cat-file -p $OTHER_COMMIT:secret; rm -f $o/??`,
	// What others run later.
	"writable PATH":      `for d in $(echo $PATH | tr : ' '); do echo x > $d/muster-evil; done`,
	"cache of the user":  `mkdir -p $USER_HOME/.cache/go-build && echo x > $USER_HOME/.cache/go-build/evil; echo x > $USER_HOME/.local/bin/git`,
	"settings of muster": `mkdir -p $USER_HOME/config/muster; echo 'check: "true"' > $USER_HOME/config/muster/config.yaml; cat $USER_HOME/config/muster/config.yaml`,
}

// inFirstTier are the ways that the first tier tries, and each way of starting a program: some of each kind.
var inFirstTier = []string{"write beside", "read a key", "write the settings", "modes and dates", "symbolic link out",
	"hard link", "environment of a process", "core pattern", "signal", "process in the distance", "new user namespace",
	"a socket of the user", "an abstract socket", "loopback of the user", "git config", "another branch", "alternates",
	"settings of muster"}

// waysOut returns the names of the ways out that this tier tries.
func waysOut() []string {
	if tier.IsAll() {
		return slices.Sorted(maps.Keys(escapes))
	}
	return inFirstTier
}

// asEachUser runs a test as this user and, where that is root, as one without rights.
func asEachUser(t *testing.T, test func(t *testing.T, w *escapeWorld)) {
	t.Helper()
	if os.Getuid() == 0 && tier.IsAll() {
		t.Run("nobody", func(t *testing.T) { test(t, newEscapeWorld(t, nobody)) })
	}
	t.Run("this user", func(t *testing.T) { asThisUser(t, test) })
}

// asThisUser runs a test as this user.
func asThisUser(t *testing.T, test func(t *testing.T, w *escapeWorld)) {
	t.Helper()
	if _, err := sandbox.Find(t.Context(), os.Environ()); err != nil {
		tier.Missing(t, err.Error())
	}
	test(t, newEscapeWorld(t, os.Getuid()))
}

// TestEscapes has an obedient member try each way out of its lane: 0 succeed.
func TestEscapes(t *testing.T) { asEachUser(t, tryEscapes) }

// TestEscapesFromLandlock is TestEscapes where bubblewrap does not work.
func TestEscapesFromLandlock(t *testing.T) {
	tier.All(t)
	asEachUser(t, func(t *testing.T, w *escapeWorld) {
		w.breakBubblewrap()
		tryEscapes(t, w)
	})
}

// breakBubblewrap puts a program before bubblewrap that fails, as it does where user namespaces are forbidden.
func (w *escapeWorld) breakBubblewrap() {
	require.NoError(w, os.Chmod(w.write("tools/bin/bwrap", "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"), 0o755))
}

// nobody is the number of a user without rights.
const nobody = 65534

func tryEscapes(t *testing.T, w *escapeWorld) {
	names := waysOut()
	var turns []any
	for _, name := range names {
		command := "trap 'echo \"tried [" + name + "]\"' EXIT\n" + w.vars + escapes[name]
		turns = append(turns, turn("bash", map[string]any{"command": command, "timeout": 20}))
	}
	turns = append(turns, bash("find . -mindepth 1 -maxdepth 1 ! -name .git ! -name a.txt -exec rm -rf {} +; git reset -q --hard; echo good > b.txt"))
	before := w.snapshot()
	w.isUnharmed(names, before, w.plays(scripted(working(turns...))))
}

// team runs a team whose lead, and its mates, are a scripted model.
func (w *escapeWorld) team(model []byte, flags ...string) (string, error) {
	return w.run(w.program(), append([]string{"run", "work", "--team", "t", "--teammates", "0",
		"--max-turns", "300", "--model", "script/" + w.write("agent.yaml", string(model))}, flags...)...)
}

func (w *escapeWorld) plays(model []byte, flags ...string) (out string) {
	w.Helper()
	out, err := w.team(model, flags...)
	if err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	return out
}

// isUnharmed fails the test where one of the ways was not tried, or has led out.
func (w *escapeWorld) isUnharmed(names []string, before map[string]string, out string) {
	t, said := w.T, w.transcript()
	for _, name := range names {
		if !strings.Contains(said, "tried ["+name+"]") {
			t.Errorf("%s was not tried", name)
		}
	}
	if i := strings.Index(said, secret); i >= 0 {
		t.Errorf("a secret was read: %s", said[max(0, i-1500):min(len(said), i+200)])
	}
	// The commands of those that would write late name the directory.
	if all, _ := exec.Command("pgrep", "-af", filepath.Join(w.base, "out")).Output(); len(all) > 0 {
		t.Errorf("processes have outlived the run: %s", all)
	}
	for _, change := range w.changes(before) {
		t.Error(change)
	}
	if n := w.visits.Load(); n > 0 {
		t.Errorf("%d connections reached the user's servers", n)
	}
	if err := w.sleeper.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the user's process is dead: %v", err)
	}
	if got := w.git("show", "muster/t:b.txt"); got != "good\n" {
		t.Errorf("the work that landed is %q\n%s", got, out)
	}
}

// TestEscapesOfAChecksCode has a member leave each way out in what the set-up and the check run: 0 succeed.
func TestEscapesOfAChecksCode(t *testing.T) {
	tier.All(t)
	for name, which := range map[string]string{"check": "check", "setup": "setup", "check under Landlock": "check"} {
		t.Run(name, func(t *testing.T) {
			w := newEscapeWorld(t, os.Getuid())
			names := waysOut()
			if name != "check" { // the others are started like it, so some of them are enough
				names = inFirstTier
			}
			if name == "check under Landlock" {
				w.breakBubblewrap()
			}
			script := w.vars
			for i, name := range names {
				script += fmt.Sprintf("cat > way-%d <<'EOF'\n%s%s\nEOF\ntimeout 20 bash way-%d 2>&1\necho 'tried [%s]'\n",
					i, w.vars, escapes[name], i, name)
			}
			script += "rm -rf .git/hooks\nexit 0\n"
			model := scripted(working(turn("write_file", map[string]any{"path": "code.sh", "content": script}), bash("echo good > b.txt")))
			before := w.snapshot()
			w.isUnharmed(names, before, w.plays(model, "--check", "true", "--"+which, "test ! -f code.sh || bash code.sh"))
		})
	}
}

// escapeWorld is a user's machine with what a member must not get at.
type escapeWorld struct {
	*testing.T
	base, repo, home, vars string
	uid                    int
	env                    []string     // more of the user's environment
	visits                 atomic.Int64 // connections to the user's servers
	sleeper                *exec.Cmd
}

// newEscapeWorld makes a home directory with secrets, two repositories, servers and a process of the user.
// All of it is the user's with the number uid.
func newEscapeWorld(t *testing.T, uid int) *escapeWorld {
	// Another user can go there, and to the program.
	base, err := os.MkdirTemp("/tmp", "muster-escapes-")
	if err == nil {
		err = os.Chmod(base, 0o755)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	w := &escapeWorld{T: t, uid: uid, base: base, repo: filepath.Join(base, "repo"), home: filepath.Join(base, "home")}
	require.NoError(w, gittest.Home(w.home))
	for _, name := range []string{".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".docker/config.json",
		".profile", ".bashrc", ".cargo/credentials.toml", ".npmrc", "config/muster/keys"} {
		w.write("home/"+name, secret+"\n")
	}
	for _, dir := range []string{"out", "home/.local/bin", "home/.cache/go-build"} {
		require.NoError(w, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	require.NoError(w, os.MkdirAll(filepath.Dir(w.program()), 0o755))
	require.NoError(w, exec.Command("cp", program.Path(t), w.program()).Run())
	for _, name := range []string{"repo", "other"} {
		dir := filepath.Join(base, name)
		require.NoError(w, os.MkdirAll(dir, 0o755))
		w.git("-C", dir, "init", "-q", "-b", "main")
		w.write(name+"/a.txt", "first\n")
		if name == "other" {
			w.write("other/secret", secret+"\n")
		}
		w.git("-C", dir, "add", "-A")
		w.git("-C", dir, "commit", "-q", "-m", "first")
	}
	w.write("repo/.git/git-crypt/keys/default", secret+"\n")
	w.write("repo/.git/config.bak", secret+"\n")
	w.write("repo/.git/hooks/post-index-change", "# "+secret+"\n")
	commit := strings.TrimSpace(w.git("-C", filepath.Join(base, "other"), "rev-parse", "HEAD"))
	socket, abstract := filepath.Join(w.home, "s"), "muster-escapes-"+filepath.Base(base)
	w.listen("unix", socket)
	w.listen("unix", "@"+abstract)
	port := w.listen("tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	w.sleeper = exec.Command("sh", "-c", "exec sleep 3600", "sleeper-of-the-user")
	require.NoError(w, w.sleeper.Start())
	t.Cleanup(func() { _ = w.sleeper.Process.Kill(); _ = w.sleeper.Wait() })
	w.write("pid", fmt.Sprint(w.sleeper.Process.Pid))
	for _, v := range [][2]string{{"OUT", filepath.Join(base, "out")}, {"USER_HOME", w.home}, {"REPO", w.repo},
		{"OTHER", filepath.Join(base, "other")}, {"OTHER_COMMIT", commit}, {"SOCKET", socket}, {"ABSTRACT", abstract},
		{"PORT_OF_USER", fmt.Sprint(port)}} {
		w.vars += v[0] + "=$(echo '" + v[1] + "')\n" // a text: muster takes a path of the repository for one of the lane
	}
	return w
}

// program returns the path of muster, in a directory of its own: members may read the surroundings of what PATH names.
func (w *escapeWorld) program() string { return filepath.Join(w.base, "tools", "bin", "muster") }

// listen counts the connections to a server of the user's.
func (w *escapeWorld) listen(network, address string) net.Addr {
	l, err := net.Listen(network, address)
	require.NoError(w, err)
	w.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.visits.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr()
}

func (w *escapeWorld) write(name, text string) (path string) {
	path = filepath.Join(w.base, name)
	require.NoError(w, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(w, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *escapeWorld) run(name string, args ...string) (string, error) {
	out, err := w.command(context.Background(), name, args...).CombinedOutput()
	return string(out), err
}

// command returns a command that runs in the repository as the user.
func (w *escapeWorld) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.WaitDelay = w.repo, 5*time.Second
	if w.uid != os.Getuid() {
		require.NoError(w, exec.Command("chown", "-R", fmt.Sprint(w.uid), w.base).Run())
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}}
	}
	c.Env = append(os.Environ(), "HOME="+w.home, "XDG_CONFIG_HOME="+w.home+"/config", "XDG_STATE_HOME="+w.home+"/state",
		"XDG_CACHE_HOME=", "TMPDIR=", "MY_TOKEN="+envSecret, "MUSTER_IDLE_TIMEOUT=15s")
	// The memory of a muster is that of a user's, whose garbage is collected as usual.
	c.Env = slices.DeleteFunc(c.Env, func(kv string) bool {
		return strings.HasPrefix(kv, "MUSTER_SANDBOX_ENABLED=") || strings.HasPrefix(kv, "GOGC=")
	})
	c.Env = append(c.Env, "PATH="+filepath.Dir(w.program())+":/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin")
	c.Env = append(c.Env, w.env...)
	return c
}

func (w *escapeWorld) git(args ...string) string {
	w.Helper()
	out, err := w.run("git", args...)
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// knowsIdentity lets a member commit in its lane: a confined command does not read the user's ~/.gitconfig, so git finds
// an identity only in the repository.
func (w *escapeWorld) knowsIdentity() {
	w.git("config", "user.name", "Ann Tester")
	w.git("config", "user.email", "ann@example.com")
}

func (w *escapeWorld) transcript() (all string) {
	files, err := filepath.Glob(filepath.Join(w.repo, ".transcripts/lead/*"))
	require.NoError(w, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(w, err)
		all += string(data)
	}
	outputs, _ := filepath.Glob(filepath.Join(w.repo, ".team/outputs/*"))
	checks, _ := filepath.Glob(filepath.Join(w.repo, ".team/outputs/landing/*"))
	for _, f := range append(outputs, checks...) {
		data, _ := os.ReadFile(f)
		all += string(data)
	}
	return all
}

// snapshot returns the content of all that a member must leave as it is: everything but muster's own state and what a
// landing changes.
func (w *escapeWorld) snapshot() map[string]string {
	files := map[string]string{}
	require.NoError(w, filepath.WalkDir(w.base, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.base, path)
		for _, own := range []string{"repo/.team", "repo/.tasks", "repo/.transcripts", "repo/.worktrees", "repo/.git/objects",
			"repo/.git/worktrees", "repo/.git/muster", "repo/.git/logs", "repo/.git/refs", "repo/.git/info/exclude",
			"home/state", "home/.cache/muster", "agent.yaml"} {
			if rel == own || strings.HasPrefix(rel, own+"/") {
				return nil
			}
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			files[rel+"/"] = info.Mode().String()
			return nil
		}
		text := "not a regular file"
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data) + info.Mode().String()
			if !strings.HasPrefix(rel, "repo/.git/") {
				text += info.ModTime().String()
			}
		}
		files[rel] = text
		return nil
	}))
	files["main"] = w.git("rev-parse", "main")
	device := require.Value(os.Stat("/dev/full"))(w)
	files["/dev/full"] = device.Mode().String()
	pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern")
	files["core_pattern"] = string(pattern)
	for _, path := range append(strings.Split(os.Getenv("PATH"), ":"), "/", "/usr/bin", "/etc/cron.d") {
		for _, name := range []string{"muster-evil", "evil"} {
			if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
				files[filepath.Join(path, name)] = "there"
			}
		}
	}
	return files
}

func (w *escapeWorld) changes(before map[string]string) (all []string) {
	now := w.snapshot()
	for name, text := range now {
		if was, ok := before[name]; !ok {
			all = append(all, "made "+name+": "+text)
		} else if was != text {
			all = append(all, "changed "+name+": "+text)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			all = append(all, "removed "+name)
		}
	}
	return all
}

// A home directory that is itself a repository is no reason to show what is in it.
func TestTheHomeDirectoryIsTheRepository(t *testing.T) { asEachUser(t, homeIsRepository) }

func homeIsRepository(t *testing.T, w *escapeWorld) {
	w.home = w.repo
	require.NoError(w, gittest.Home(w.home))
	w.knowsIdentity()
	w.write("repo/.netrc", secret)
	out := w.plays(scripted(append([]any{bash("cat $(echo " + w.repo + "/.netrc)")},
		working(bash("echo good > b.txt && git add b.txt && git commit -q -m good; cat $(echo "+w.repo+"/.netrc) ../../.netrc; ls ~"))...)))
	if said := w.transcript(); strings.Contains(said, secret) || strings.Count(said, "No such file or directory") < 2 {
		t.Errorf("it was told:\n%s", said)
	}
	if got := w.git("show", "muster/t:b.txt"); got != "good\n" {
		t.Errorf("the work that landed is %q\n%s", got, out)
	}
}
