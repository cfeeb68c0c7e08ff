package git

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// holder is a git that runs: its number, and when it began, which tells it from a later one with the same number.
type holder struct {
	pid  int
	born string
}

// gitsOn are the gits of the lock's owner that run and may work on the repository whose git directory is common: those
// that stand in one of its trees, and those that were told where it is. known is false where /proc is not to be read.
func gitsOn(common string, lock fs.FileInfo) (all []holder, known bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	var places []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := "/proc/" + e.Name() + "/"
		born, isGit := gitBorn(dir)
		if !isGit || !sameOwner(dir, lock) {
			continue
		}
		if places == nil {
			places = placesOf(common)
		}
		if stands(dir, places) {
			all = append(all, holder{pid, born})
		}
	}
	return all, true
}

// gitBorn says when a process began (in clock ticks since the system did), and whether it is a git that has not ended.
func gitBorn(dir string) (born string, isGit bool) {
	stat, err := os.ReadFile(dir + "stat")
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || open < 0 || end < open {
		return "", false
	}
	name, f := string(stat[open+1:end]), bytes.Fields(stat[end+1:])
	if name != "git" && !strings.HasPrefix(name, "git-") || len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return "", false
	}
	return string(f[19]), true
}

func sameOwner(dir string, lock fs.FileInfo) bool {
	its, ok := lock.Sys().(*syscall.Stat_t)
	st, err := os.Stat(dir)
	if !ok || err != nil {
		return ok
	}
	who, ok := st.Sys().(*syscall.Stat_t)
	return !ok || who.Uid == its.Uid
}

// placesOf are the directories of a repository: the git directory, the tree around it, and the linked worktrees.
func placesOf(common string) []string {
	places := []string{common, filepath.Dir(common)}
	links, _ := filepath.Glob(filepath.Join(common, "worktrees", "*", "gitdir")) // the pattern is well formed unless the path is odd
	for _, l := range links {
		if to, err := os.ReadFile(l); err == nil {
			places = append(places, filepath.Dir(strings.TrimSpace(string(to))))
		}
	}
	return places
}

// stands reports whether a git stands in one of the places, or was told of a repository that is elsewhere; what cannot be
// seen counts as yes.
func stands(dir string, places []string) bool {
	at, err := os.Readlink(dir + "cwd")
	if err != nil {
		return true
	}
	env, _ := os.ReadFile(dir + "environ")
	told := ""
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if to, ok := bytes.CutPrefix(v, []byte("GIT_DIR=")); ok {
			told = string(to)
		}
	}
	for _, p := range places {
		for _, path := range []string{at, told} {
			if rel, err := filepath.Rel(p, path); path != "" && err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	words, _ := os.ReadFile(dir + "cmdline")
	return bytes.Contains(words, []byte("--git-dir"))
}
