// Package paths says where a team keeps its state. Every path is below a Dir, the root of the repository's main
// worktree. The layout is a format on disk that other programs rely on. The package only builds names; it opens and
// creates nothing.
package paths

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// Dir is where a team's state lies: the root of a repository's main worktree, or the directory of an archived team
// below Archive, where the names of what lies in it have no dots.
type Dir string

// Excluded are the patterns for .git/info/exclude that keep the state out of the user's commits.
var Excluded = []string{"/.tasks/", "/.team/", "/.transcripts/", "/.worktrees/"}

// IsBelow reports whether a file that git names lies in one of some directories, which begin and end with a slash, on
// any file system: one may not tell upper from lower case, drop dots and blanks at the end of a name, or overlook
// characters without a shape.
func IsBelow(file string, dirs []string) bool {
	at := "/" + foldedPath(file) + "/"
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(at, foldedPath(dir)) })
}

// foldedPath returns a path as the least exact file system takes it.
func foldedPath(file string) string {
	parts := strings.Split(file, "/")
	for i, name := range parts {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // format characters, such as a joiner of width zero
				return -1
			}
			return unicode.ToLower(unicode.ToUpper(r))
		}, name)
		parts[i] = strings.TrimRight(name, ". ")
	}
	return strings.Join(parts, "/")
}

// Tasks is the board: task_N.json, meta.json, claim_events.jsonl.
func (d Dir) Tasks() string { return d.at(".tasks") }

// Team is the team: its members, mail, requests, run and events.
func (d Dir) Team() string { return d.at(".team") }

// Worktrees is where lanes lie, and their index.
func (d Dir) Worktrees() string { return d.at(".worktrees") }

// Transcripts has one directory of session logs for each agent.
func (d Dir) Transcripts() string { return d.at(".transcripts") }

// Members has one document for each member.
func (d Dir) Members() string { return d.at(".team", "members") }

// Requests has one document for each request.
func (d Dir) Requests() string { return d.at(".team", "requests") }

// Hosts has one document for each process's lease.
func (d Dir) Hosts() string { return d.at(".team", "hosts") }

// Inbox has the pending mail.
func (d Dir) Inbox() string { return d.at(".team", "inbox") }

// Locks has the lock files; they are never deleted.
func (d Dir) Locks() string { return d.at(".team", "locks") }

// Kept has what muster last wrote of documents, for as long as a team is at work: see the keeper of store/file.
func (d Dir) Kept() string { return d.at(".team", "locks", "kept") }

// Outputs has the whole of outputs that were too long for a tool result, a directory for each member.
func (d Dir) Outputs() string { return d.at(".team", "outputs") }

// Receipts has a document for each tree that a check has run on.
func (d Dir) Receipts() string { return d.at(".team", "receipts") }

// Scratch has a checkout for each member without a task.
func (d Dir) Scratch() string { return d.at(".team", "scratch") }

// Archive has the state of teams that were put aside.
func (d Dir) Archive() string { return d.at(".team", "archive") }

// Moving names the archive that is being filled, while it is, and when that was interrupted.
func (d Dir) Moving() string { return filepath.Join(d.Archive(), "moving") }

// Collisions is what the last look for collisions has found. It is derived: it may be removed at any time.
func (d Dir) Collisions() string { return d.at(".team", "cache", "collisions.json") }

// Live has what members say while it streams in, for the faces of other processes: see package live. It may be removed
// at any time.
func (d Dir) Live() string { return d.at(".team", "cache", "live") }

// Index is the lanes' index, a local file.
func (d Dir) Index() string { return d.at(".worktrees", "index.json") }

// TableLocks are the lock files of a table. Who writes a document holds one of them, chosen by the document's key. Lock
// files are never deleted, so there is not one for each document.
func (d Dir) TableLocks(table string) []string {
	const count = 16
	paths := make([]string, count)
	for i := range paths {
		paths[i] = filepath.Join(d.TablesLocks(), fmt.Sprintf("%s-%02x.lock", table, i))
	}
	return paths
}

// TablesLocks is the directory of the TableLocks of all tables.
func (d Dir) TablesLocks() string { return filepath.Join(d.Locks(), "table") }

// at joins the names of directories and a file to a path below d. In an archive it has the names that the state has
// there, so that a store can be opened on it as on a repository.
func (d Dir) at(parts ...string) string {
	// An archive is no repository, so no root of one is taken for it.
	above := filepath.Dir(string(d))
	if filepath.Base(above) == "archive" && filepath.Base(filepath.Dir(above)) == ".team" {
		parts[0] = strings.TrimPrefix(parts[0], ".")
	}
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// UserState returns the directory for what muster keeps about the user's machine rather than about a repository, such
// as its log. env returns the value of an environment variable, "" when it is not set. It is an error when no home is
// set.
func UserState(env func(string) string) (string, error) { return userState(runtime.GOOS, env) }

func userState(system string, env func(string) string) (string, error) {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the rule of XDG: a relative one does not count
		return filepath.Join(dir, "muster"), nil
	}
	home, under := env("HOME"), []string{".local", "state", "muster"}
	switch system {
	case "windows":
		home, under = env("LocalAppData"), []string{"muster"}
	case "darwin":
		under = []string{"Library", "Application Support", "muster"}
	}
	if !filepath.IsAbs(home) { // a relative one would lead into the repository
		return "", errors.New("neither XDG_STATE_HOME nor a home directory is set")
	}
	return filepath.Join(append([]string{home}, under...)...), nil
}

// UserCache returns the directory for what muster can make again: the directories and caches of checks, and kept
// results of set-ups. env returns the value of an environment variable, "" when it is not set. It is an error when no
// home is set.
func UserCache(env func(string) string) (string, error) { return userCache(runtime.GOOS, env) }

func userCache(system string, env func(string) string) (string, error) {
	if dir := env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "muster"), nil
	}
	home, under := env("HOME"), []string{".cache", "muster"}
	switch system {
	case "windows":
		home, under = env("LocalAppData"), []string{"muster", "cache"}
	case "darwin":
		under = []string{"Library", "Caches", "muster"}
	}
	if !filepath.IsAbs(home) { // a relative one would lead into the repository
		return "", errors.New("neither XDG_CACHE_HOME nor a home directory is set")
	}
	return filepath.Join(append([]string{home}, under...)...), nil
}
