package git

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// What a turn asks again and again (where a branch is) is read from git's own files: a git process for it would cost more
// than all the rest of a turn. Only the plain case is answered here; every other form is left to git.

// stored is the value of a branch (refs/heads/...), "" when there is none. known is false when only git can tell.
func (r *Repo) stored(ref string) (id string, known bool) {
	if !strings.HasPrefix(ref, "refs/heads/") || strings.ContainsAny(ref, "\\:*?[^~ \x00\n") || strings.Contains(ref, "..") || strings.HasSuffix(ref, "/") {
		return "", false
	}
	// A loose ref counts before a packed one. Where refs are kept in another form, refs/heads is a file, and this is no
	// ErrNotExist.
	data, err := os.ReadFile(filepath.Join(r.common, filepath.FromSlash(ref)))
	if err == nil {
		id = strings.TrimRight(string(data), "\n")
		return id, id != "" && isID(id)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", false
	}
	if st, err := os.Stat(filepath.Join(r.common, "refs", "heads")); err != nil || !st.IsDir() {
		return "", false
	}
	data, err = os.ReadFile(filepath.Join(r.common, "packed-refs"))
	if err != nil {
		return "", errors.Is(err, os.ErrNotExist)
	}
	at := bytes.Index(data, []byte(" "+ref+"\n"))
	if at < 0 {
		return "", true
	}
	id = string(data[bytes.LastIndexByte(data[:at], '\n')+1 : at])
	return id, id != "" && isID(id)
}

// storedCommit is the commit of a branch, or of the main worktree's HEAD, where that can be read; "" where git is to be asked.
func (r *Repo) storedCommit(rev string) string {
	if _, seen := r.seen.Load(rev); seen {
		return rev
	}
	if rev == "HEAD" {
		data, err := os.ReadFile(filepath.Join(r.common, "HEAD"))
		if err != nil {
			return ""
		}
		text := strings.TrimRight(string(data), "\n")
		branch, symbolic := strings.CutPrefix(text, "ref: ")
		if !symbolic {
			return "" // whether there is such a commit, git must say
		}
		rev = branch
	}
	id, known := r.stored(rev)
	if !known || id == "" {
		return ""
	}
	r.seen.Store(id, true)
	return id
}

// LinkedHead is what HEAD points to in the linked worktree at dir: refs/heads/..., or "HEAD" when it is detached. ok is false
// when dir is no plain worktree of this repository, or when only git can tell.
func (r *Repo) LinkedHead(dir string) (head string, ok bool) {
	link := filepath.Join(dir, ".git")
	if st, err := os.Lstat(link); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	admin, ok := strings.CutPrefix(line(link), "gitdir: ")
	admin = filepath.FromSlash(admin)
	if !ok || filepath.Dir(admin) != filepath.Join(r.common, "worktrees") {
		return "", false
	}
	if filepath.FromSlash(line(filepath.Join(admin, "gitdir"))) != link || line(filepath.Join(admin, "commondir")) != "../.." {
		return "", false
	}
	if _, err := os.Lstat(filepath.Join(admin, "config.worktree")); !errors.Is(err, os.ErrNotExist) {
		return "", false // it may say that the files are elsewhere
	}
	at := line(filepath.Join(admin, "HEAD"))
	if at != "" && isID(at) {
		return "HEAD", true
	}
	branch, ok := strings.CutPrefix(at, "ref: ")
	id, known := r.stored(branch)
	return branch, ok && known && id != ""
}

// line is a file of one line; "" when it cannot be read, or has more.
func line(path string) string {
	data, err := os.ReadFile(path)
	text, rest, _ := strings.Cut(string(data), "\n")
	if err != nil || rest != "" {
		return ""
	}
	return text
}
