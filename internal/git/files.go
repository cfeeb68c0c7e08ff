package git

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster/internal/durable"
)

// Refs are read from git's own files. A turn asks again and again where a branch is, and a git process for it would
// cost more than all the rest of the turn. Only the plain cases are answered here; all else is left to git.

// commits are what is known of commits without git.
type commits struct {
	known sync.Map // by id, those that git has named or a branch was at: they need not be asked about again
	made  sync.Map // by id, those that this process has made, each a madeCommit
}

// madeCommit is what a commit says, which nothing can change.
type madeCommit struct{ tree, parent string }

// refValue returns the value of a ref that all worktrees share, "" when there is none. ok is false where git must tell.
func (r *runner) refValue(ref string) (id string, ok bool) {
	if strings.ContainsAny(ref, "\\:*?[^~ \x00\n") || strings.Contains(ref, "..") || strings.HasSuffix(ref, "/") {
		return "", false
	}
	file := filepath.Join(r.common, filepath.FromSlash(ref))
	if st, err := os.Lstat(file); err == nil && !st.Mode().IsRegular() { // git takes a symbolic link for a symbolic ref
		return "", false
	}
	// A loose ref counts before a packed one. Where refs are kept in another form, refs/heads is a file, and this is no
	// ErrNotExist.
	data, err := readFile(file)
	if err == nil {
		id = strings.TrimRight(string(data), "\n")
		return id, id != "" && IsID(id)
	}
	if !errors.Is(err, os.ErrNotExist) || !r.hasRefFiles() {
		return "", false
	}
	data, err = readFile(filepath.Join(r.common, "packed-refs"))
	if err != nil {
		return "", errors.Is(err, os.ErrNotExist)
	}
	at := bytes.Index(data, []byte(" "+ref+"\n"))
	if at < 0 {
		return "", true
	}
	id = string(data[bytes.LastIndexByte(data[:at], '\n')+1 : at])
	return id, id != "" && IsID(id)
}

// hasRefFiles reports whether the repository keeps its refs in files of their own and in packed-refs. In any other
// form, such as reftable, a missing file does not mean a missing ref.
func (r *runner) hasRefFiles() bool {
	st, err := os.Stat(filepath.Join(r.common, "refs", "heads"))
	return err == nil && st.IsDir()
}

// readCommit returns the commit of a branch, or of the main worktree's HEAD, where that can be read. It is "" when git
// must be asked.
func (r *Repo) readCommit(rev string) string {
	if _, ok := r.commits.known.Load(rev); ok {
		return rev
	}
	if rev == "HEAD" {
		_, rev, _ = strings.Cut(readLine(filepath.Join(r.common, "HEAD")), "ref: ")
	}
	// git lets a branch name nothing but a commit, so the type of the object need not be asked for.
	if !strings.HasPrefix(rev, "refs/heads/") {
		return ""
	}
	id, ok := r.refValue(rev)
	if !ok || id == "" {
		return ""
	}
	r.commits.known.Store(id, true)
	return id
}

// MadeAt returns the commit at which the runtime made a branch (refs/heads/...), as the first entry in the log of the
// branch says. No clone brings such a log. It is "" where git keeps none, and where something else made the branch.
func MadeAt(r *Repo, branch string) string {
	const limit = 1 << 20 // bytes of a log: some 5,000 moves
	data, _ := durable.ReadRegular(filepath.Join(r.common, "logs", filepath.FromSlash(branch)), limit)
	entry, _, _ := strings.Cut(string(data), "\n") // OLD NEW NAME <EMAIL> TIME ZONE\tMESSAGE
	ids, message, _ := strings.Cut(entry, "\t")
	f := strings.Fields(ids)
	if message != LogMessage || len(f) < 2 || strings.Trim(f[0], "0") != "" || !IsID(f[1]) {
		return ""
	}
	return f[1]
}

// MaxFile is how large a file of git's own may be that muster reads, in bytes: the packed refs of a million branches,
// or the index of a million files.
const MaxFile = 128 << 20

// readFile reads a file of git's, which may be missing. It does not wait for a pipe.
func readFile(path string) ([]byte, error) { return durable.ReadRegular(path, MaxFile) }

// readLine returns the content of a file of one line, "" when it cannot be read or has more.
func readLine(path string) string {
	data, err := readFile(path)
	text, rest, _ := strings.Cut(string(data), "\n")
	if err != nil || rest != "" {
		return ""
	}
	return text
}
