package git

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"muster/internal/durable"
)

// lockOwner is a running git that may hold a lock.
type lockOwner struct {
	pid     int
	started string // tells it from a later process with the same pid
}

// lockOwners returns the running gits of the lock's user that may work on the repository with the git directory common:
// those that run in one of its trees, and those that were told where it is. known is false where /proc cannot be read.
func lockOwners(common string, lock fs.FileInfo) (all []lockOwner, known bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		dir := "/proc/" + e.Name() + "/"
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		started, isGit := gitStart(dir)
		if isGit && isSameUser(dir, lock) && isInTrees(dir, treesOf(common)) {
			all = append(all, lockOwner{pid, started})
		}
	}
	return all, true
}

// gitStart reads /proc/PID and reports whether the process is a git that has not ended, and when it started, in clock
// ticks since boot.
func gitStart(dir string) (started string, isGit bool) {
	stat, err := os.ReadFile(dir + "stat")
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || open < 0 || end < open {
		return "", false
	}
	// PID (NAME) STATE ...: the name may hold anything, so the fields count from its end. A zombie (Z, X) holds
	// nothing.
	name, f := string(stat[open+1:end]), bytes.Fields(stat[end+1:])
	if name != "git" && !strings.HasPrefix(name, "git-") || len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return "", false
	}
	return string(f[19]), true
}

// isSameUser reports whether the process runs as the user whose file the lock is. What cannot be told counts as yes.
func isSameUser(dir string, lock fs.FileInfo) bool {
	st, err := os.Stat(dir)
	return err != nil || st.Sys().(*syscall.Stat_t).Uid == lock.Sys().(*syscall.Stat_t).Uid
}

// treesOf returns the directories of a repository: the git directory, the tree around it, and the linked worktrees.
func treesOf(common string) []string {
	trees := []string{common, filepath.Dir(common)}
	for _, l := range durable.Glob(common, "worktrees/*/gitdir") {
		if to, err := readFile(l); err == nil {
			trees = append(trees, filepath.Dir(strings.TrimSpace(string(to))))
		}
	}
	return trees
}

// isInTrees reports whether a git runs in one of the trees, or was told of a repository that may be elsewhere. What
// cannot be seen counts as yes: a lock is not broken while its owner may live.
func isInTrees(dir string, trees []string) bool {
	at, err := os.Readlink(dir + "cwd")
	if err != nil {
		return true
	}
	places := []string{at}
	env, _ := os.ReadFile(dir + "environ")
	for v := range strings.SplitSeq(string(env), "\x00") {
		if to, ok := strings.CutPrefix(v, "GIT_DIR="); ok && to != "" {
			places = append(places, to)
		}
	}
	for _, tree := range trees {
		for _, place := range places {
			if rel, err := filepath.Rel(tree, place); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	// A git that was told of its repository on its command line may work on any.
	words, _ := os.ReadFile(dir + "cmdline")
	return bytes.Contains(words, []byte("--git-dir"))
}
