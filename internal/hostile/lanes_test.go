//go:build linux

package hostile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// An attack is a case of testdata/lanes: what a member leaves where muster works. An archive is a class. A section that is
// named for the case has the commands that the member runs in its lane. "NAME/PART" has another part, and
// "all/PART" the part of the cases that have none of their own:
//
//   - repository: what the user does before the run, in the repository.
//   - proof: commands in a lane that was made by hand, without muster and a sandbox, after those of the member. They do
//     what muster must not: the judge must find that something fell. So no case holds because its attack is broken.
//   - moment: a key of moments. Without one it is "complete".
//   - after: what the user does after the run. Without one it is whatMusterDoes.
//   - users: anything, where a user without rights is tried besides this one.
type attack map[string]string

// whatMusterDoes are the commands of muster that look into lanes, and the user's git there.
const whatMusterDoes = musterLooks + "\n" + usersGit + "\n" + musterRemoves

const (
	musterLooks = "muster diff 1\nmuster worktree list\nmuster status"
	usersGit    = "for d in .worktrees/*/; do git -C $d status; git -C $d diff; done"
	// The user has changed nothing else, so that what these change is theirs.
	musterRemoves = "muster undo 1\nmuster doctor --repair\nmuster worktree remove task-1-work\nmuster clean --yes\n" +
		"muster archive --yes"
)

// The longest times: of a run, and of each command of the user's after it. A call of the member may take two minutes.
const longestRun, longestCommand = 240 * time.Second, 60 * time.Second

// raceVariable is the environment variable with how many seconds each race takes, instead of 4.
const raceVariable = "MUSTER_TESTS_RACE"

// mostMemory is how many kilobytes muster, or a program that it starts, may have.
const mostMemory = 400 << 10

// stopped is the exit code of a run that the user has stopped.
const stopped = 130

// laneSecret is what only another member may read.
const laneSecret = "c0ffee-of-another-lane"

// TestLanes: nothing that a member leaves in a lane, a submodule, or the directory of a check or set-up has muster run
// its programs outside of a sandbox, change or read what the member may not, hang, or fill the memory.
func TestLanes(t *testing.T) { tryAttacks(t, "testdata/lanes/*.txtar") }

func tryAttacks(t *testing.T, pattern string) {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	for _, file := range files {
		names, attacks := readAttacks(t, file)
		if !tier.IsAll() {
			names = names[:1]
		}
		class := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, name := range names {
			t.Run(class+"/"+name, func(t *testing.T) {
				t.Parallel()
				a := attacks[name]
				t.Run("by hand", a.isReal)
				users := asThisUser
				if a["users"] != "" {
					users = asEachUser
				}
				t.Run("bubblewrap", func(t *testing.T) {
					users(t, func(t *testing.T, w *escapeWorld) { a.isHeld(t, w, whatMusterDoes) })
				})
				if tier.IsAll() {
					t.Run("Landlock", func(t *testing.T) {
						users(t, func(t *testing.T, w *escapeWorld) {
							w.breakBubblewrap()
							a.isHeld(t, w, usersGit) // muster works in lanes as it does with bubblewrap
						})
					})
				}
			})
		}
	}
}

// readAttacks reads the cases of an archive, with their names in its order.
func readAttacks(t *testing.T, file string) (names []string, all map[string]attack) {
	archive := require.Value(txtar.ParseFile(file))(t)
	shared, all := attack{}, map[string]attack{}
	for _, f := range archive.Files {
		name, part, _ := strings.Cut(f.Name, "/")
		switch a := all[name]; {
		case name == "all":
			shared[part] = string(f.Data)
		case a == nil:
			names = append(names, name)
			all[name] = attack{part: string(f.Data)}
		default:
			a[part] = string(f.Data)
		}
	}
	for _, a := range all {
		for part, text := range shared {
			a[part] = cmp.Or(a[part], text)
		}
	}
	return names, all
}

// prepare does what the user does before the run.
func (a attack) prepare(w *escapeWorld) {
	w.knowsIdentity()
	w.write("repo/.git/git-crypt/keys/default", secret+"\n")
	w.git("config", "http.https://example.com/.extraheader", "Authorization: "+secret)
	if text := a["repository"]; text != "" {
		w.shell(w.repo, "set -e\n"+text)
	}
}

// ran returns what programs of a member have left where only the user's can write.
func (w *escapeWorld) ran() []os.DirEntry {
	return require.Value(os.ReadDir(filepath.Join(w.base, "out")))(w)
}

// shell runs commands of the user's.
func (w *escapeWorld) shell(dir, commands string) string {
	w.Helper()
	out, err := w.run("bash", "-c", w.functions()+"cd '"+dir+"'\n"+commands)
	if err != nil {
		w.Fatalf("%v\n%s\n%s", err, commands, out)
	}
	return out
}

// isReal fails the test unless plain git, or what else the proof runs, falls for the attack.
func (a attack) isReal(t *testing.T) {
	if a["proof"] == "" {
		t.Fatal("the case has no proof")
	}
	w := newEscapeWorld(t, os.Getuid())
	a.prepare(w)
	w.git("branch", "muster/t")
	lane := filepath.Join(w.repo, ".worktrees", "task-1-work")
	w.git("worktree", "add", "-q", "-b", "wt/task-1-work", lane)
	before := w.look()
	w.shell(lane, "set -e\nRACE=0\n"+a[""])
	out, _ := w.run("timeout", "-k", "1", "100", "bash", "-c", w.functions()+"cd '"+lane+"'\n"+a["proof"])
	if len(w.ran()) == 0 && len(w.fell(before, out)) == 0 {
		t.Errorf("the attack has done nothing:\n%s", out)
	}
}

// isHeld fails the test where the attack succeeds against a run, or against a command of the user's after it: of the
// case, or of after.
func (a attack) isHeld(t *testing.T, w *escapeWorld, after string) {
	a.prepare(w)
	before := w.look()
	out, fell := w.runs(strings.TrimSpace(cmp.Or(a["moment"], "complete")), a[""])
	said := w.transcript()
	if len(fell) == 0 && a["moment"] != "killed\n" && !strings.Contains(said, "planted") {
		fell = append(fell, "or else the commands of the member have failed")
	}
	if len(w.ran()) > 0 {
		fell = append(fell, "a program ran while the team worked")
	}
	t.Logf("the run:\n%s", out)
	for command := range strings.Lines(cmp.Or(a["after"], after)) {
		if len(fell) > 0 {
			break
		}
		_, late := w.afterwards(strings.TrimSpace(command))
		fell = late
		if len(w.ran()) > 0 {
			fell = append(fell, "a program ran at: "+command)
		}
	}
	if len(fell) == 0 {
		fell = w.fell(before, out+said)
	}
	for _, what := range fell {
		t.Errorf("FELL: %.2000s", what)
	}
	if len(fell) > 0 {
		t.Logf("%s", strings.Join(toolResults(said), "\n--\n"))
	}
}

// runs has a team run at whose moment the commands are those of an attack.
func (w *escapeWorld) runs(moment, commands string) (out string, fell []string) {
	commands = fmt.Sprintf("set -e\nRACE=%d\n%s%s\necho pl''anted", int(race(w.T).Seconds()), w.functions(), commands)
	speakers := moments[moment](strings.ReplaceAll(commands, "${", "$${")) // the script has values of its own
	model := w.write("agent.yaml", string(require.Value(json.Marshal(map[string]any{"speakers": speakers}))(w)))
	args := []string{"run", "work", "--team", "t", "--teammates", fmt.Sprint(len(speakers) - 1), "--max-turns", "300",
		"--model", "script/" + model}
	limit := longestRun
	switch moment {
	case "check":
		const command = "if test -f code.sh; then bash code.sh 2>&1; fi; true"
		args = append(args, "--check", command, "--setup", command)
	case "killed":
		c := w.command(w.Context(), w.program(), args...)
		require.NoError(w, c.Start())
		wait.For(w, "the commands of the member", func() bool {
			return len(require.Value(filepath.Glob(w.repo+"/.worktrees/*/planted"))(w)) > 0
		})
		require.NoError(w, c.Process.Kill())
		_ = c.Wait()
		args = []string{"resume", "--model", "script/" + model}
	case "race": // the user looks, too, and stops the team when all has been tried
		limit += race(w.T)
		looking := w.command(w.Context(), "timeout", "-k", "1", fmt.Sprint(limit.Seconds()), "bash", "-c", `
			racing() { test -e .worktrees/task-1-work/racing; }
			look() { timeout -k 1 5 bash -c "$0"; }
			until racing; do look; done
			while racing; do look; done
			sleep 3
			timeout -k 1 20 muster stop`, musterLooks)
		require.NoError(w, looking.Start())
		defer func() {
			_ = looking.Process.Signal(syscall.SIGTERM) // the run may have ended by itself
			_ = looking.Wait()
		}()
	}
	return w.muster(limit, args...)
}

// functions returns what commands begin with.
func (w *escapeWorld) functions() string {
	return w.vars + string(require.Value(os.ReadFile("testdata/lanes/functions.sh"))(w))
}

// race returns how long a race takes.
func race(t *testing.T) time.Duration {
	return require.Value(time.ParseDuration(cmp.Or(os.Getenv(raceVariable), "4") + "s"))(t)
}

// muster runs muster, and tells where it takes too long, needs too much memory, or ends without a reason.
func (w *escapeWorld) muster(limit time.Duration, args ...string) (out string, fell []string) {
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	c := w.command(ctx, w.program(), args...)
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	require.NoError(w, c.Start())
	measured := make(chan memory, 1)
	go func() { measured <- mostUsed(ctx, c.Process.Pid) }()
	_ = c.Wait() // its state has the exit code
	out = text.String()
	if ctx.Err() != nil {
		return out, []string{fmt.Sprintf("muster %s did not end within %v", args[0], limit)}
	}
	cancel()
	if used := <-measured; used.kB > mostMemory {
		fell = append(fell, fmt.Sprintf("%s of muster %s needed %d MB", used.command, args[0], used.kB>>10))
	}
	if code := c.ProcessState.ExitCode(); !slices.Contains([]int{0, 3, stopped}, code) || strings.TrimSpace(out) == "" {
		fell = append(fell, fmt.Sprintf("muster %s ended with %d: %s", args[0], code, out))
	}
	return out, fell
}

// memory is how much a process has had.
type memory struct {
	kB      int
	command string
}

// mostUsed returns the most that a process, or one that it has started, has had, until ctx ends. What wait tells of a
// process counts that of the one which has started it.
func mostUsed(ctx context.Context, pid int) (most memory) {
	for ; ctx.Err() == nil; wait.Elapse(20 * time.Millisecond) {
		all := []string{fmt.Sprint(pid)}
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, children := range tasks {
			ids, _ := os.ReadFile(children)
			all = append(all, strings.Fields(string(ids))...)
		}
		for _, id := range all {
			status, _ := os.ReadFile("/proc/" + id + "/status")
			if found := peakMemory.FindSubmatch(status); found != nil {
				if used, _ := strconv.Atoi(string(found[1])); used > most.kB {
					command, _ := os.ReadFile("/proc/" + id + "/cmdline")
					most = memory{used, strings.ReplaceAll(string(command), "\x00", " ")}
				}
			}
		}
	}
	return most
}

var peakMemory = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// afterwards runs a command of the user's after the run. An error is an answer, too.
func (w *escapeWorld) afterwards(command string) (out string, fell []string) {
	if args := strings.Fields(command); args[0] == "muster" {
		out, fell = w.muster(longestCommand, args[1:]...)
		return out, slices.DeleteFunc(fell, func(what string) bool { return strings.Contains(what, " ended with 1: ") })
	}
	out, _ = w.run("timeout", "20", "bash", "-c", command) // git may wait for a pipe
	return out, nil
}

// look returns what a member must leave as it is, with the refs that are not of the team and the states of what git
// follows.
func (w *escapeWorld) look() map[string]string {
	files := w.snapshot()
	for line := range strings.Lines(w.git("for-each-ref", "--format=%(refname) %(objectname)%(symref)")) {
		if name, id, _ := strings.Cut(line, " "); !ownRef.MatchString(name) {
			files[name] = id
		}
	}
	// What is kept of submodules is taken over by content, as it is for the repository.
	maps.DeleteFunc(files, func(name, _ string) bool { return ofModule.MatchString(name) })
	odd, _ := w.run("sh", "-c", "find .git -path .git/muster -prune -o -path .git/worktrees -prune -o "+
		"! -type d ! -type f -print")
	files["what is no file in .git"] = odd
	return files
}

// ownRef matches the refs that a run makes.
var ownRef, ofModule = regexp.MustCompile(`^refs/(heads/(muster|wt)|muster)/`),
	regexp.MustCompile(`^repo/\.git/modules/.*/(objects|logs|refs/muster|muster)/`)

// badObjects matches what git fsck says of objects that are not what their names say, and badNames the names of files
// that a checkout must not have.
var (
	badObjects = regexp.MustCompile(`(?m)^.*(hash.* mismatch|corrupt|garbage at end|unable to unpack).*$`)
	badNames   = regexp.MustCompile(`(?im)^(.*/)?(\.git|git~1|\.git[. ]+|\.|\.\.|)(/.*)?$`)
)

// fell returns in which ways the attack has succeeded so far. said is all that the member or a server was told.
func (w *escapeWorld) fell(before map[string]string, said string) (all []string) {
	now := w.look()
	for name, text := range now {
		if was, ok := before[name]; !ok || was != text {
			all = append(all, fmt.Sprintf("changed %s from %q to %q", name, was, text))
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			all = append(all, "removed "+name)
		}
	}
	for _, s := range []string{secret, laneSecret} {
		if i := strings.Index(said, s); i >= 0 {
			all = append(all, "a secret was read: "+said[max(0, i-200):min(len(said), i+100)])
		}
	}
	objects, _ := w.run("bash", "-c", "timeout 60 git fsck --full --no-dangling 2>&1; "+
		"timeout 60 git cat-file --batch-all-objects --batch --buffer | grep -a -m 1 "+secret+"; "+
		"find .git/objects -type f ! -regextype posix-egrep ! -regex "+
		`'.*/([0-9a-f]{2}/([0-9a-f]{38}|tmp_obj_.*)|pack/.*|info/(packs|commit-graph|alternates))'`)
	found := badObjects.FindString(objects)
	if found != "" || strings.Contains(objects, secret) || strings.Contains(objects, ".git/objects/") {
		all = append(all, "the repository's objects: "+cmp.Or(found, objects))
	}
	names, _ := w.run("bash", "-c", "for r in $(git for-each-ref --format='%(objectname)' refs/heads refs/muster); do "+
		"timeout 60 git ls-tree -r -t --full-tree --name-only $r^{tree}; done")
	if found = badNames.FindString(names); strings.TrimSpace(found) != "" {
		all = append(all, "a tree has the name "+found)
	}
	// The commands of attacks name the directory.
	if left, _ := exec.Command("pgrep", "-af", filepath.Join(w.base, "out")).Output(); len(left) > 0 {
		all = append(all, "processes have outlived the run: "+string(left))
	}
	slices.Sort(all)
	return all
}
