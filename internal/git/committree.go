package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // it is what git names objects by
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// CommitTree makes a commit object, as the runtime's identity. No ref moves, and nothing is synced to disk: see Pack.
//
// A stack of landings makes many commits in a row. Where git has just made one, the next ones are written without it:
// that takes a tenth of a millisecond, and a process takes several.
func (r *Repo) CommitTree(ctx context.Context, tree string, parents []string, message string) (string, error) {
	id, err := commitTree(ctx, r, tree, parents, message)
	if err == nil && len(parents) > 0 && IsID(tree) {
		r.files.made.Store(id, madeCommit{tree, parents[0]})
	}
	return id, err
}

// commitTree is CommitTree, which remembers what it has made.
func commitTree(ctx context.Context, r *Repo, tree string, parents []string, message string) (string, error) {
	if id, ok := r.commits.write(ctx, r, tree, parents, message); ok {
		return id, nil
	}
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := r.Do(ctx, Call{Dir: r.common, Args: args, Stdin: message})
	id := strings.TrimSpace(out)
	if err == nil {
		r.commits.note(id, "")
	}
	return id, err
}

// commitWriter writes commits that have the headers of one that git has made: the names and the times of author and
// committer, and the encoding. git makes these of the environment and of the config, so nothing is made up here. A nil
// one writes nothing.
type commitWriter struct {
	mu      sync.Mutex
	pattern string    // the commit of git
	made    time.Time // when git has made it
	headers string    // of pattern, behind its parents; "": they were not read yet
}

// Nothing is lost when such a commit is: what matters of it is packed and synced before a ref names it, and a process
// that dies before has made an object that nobody needs. A file that is half written has a name of its own.

// patternAge is how old the commit of git may be. Its time is that of the commits which have its headers.
const patternAge = 2 * time.Second

// note says that git has just made a commit. headers are those behind its parents, "" where they are not known.
func (w *commitWriter) note(id, headers string) {
	if w == nil || !IsID(id) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pattern, w.made, w.headers = id, time.Now(), headers
}

// write writes a commit and returns its id. ok is false where git has to make it.
func (w *commitWriter) write(
	ctx context.Context, r *Repo, tree string, parents []string, message string,
) (id string, ok bool) {
	if w == nil {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pattern == "" || time.Since(w.made) > patternAge || !isPlainMessage(message) || !IsID(tree) {
		return "", false
	}
	if w.headers == "" {
		text, err := r.Run(ctx, r.common, "cat-file", "commit", w.pattern)
		if w.headers, ok = plainHeaders(text); err != nil || !ok {
			w.pattern = ""
			return "", false
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		if !IsID(p) {
			return "", false
		}
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	b.WriteString(w.headers + "\n" + message)
	id, err := writeLoose(filepath.Join(r.common, "objects"), "commit", b.Bytes(), len(tree))
	return id, err == nil
}

// isPlainMessage reports whether git takes a message as it is.
func isPlainMessage(message string) bool {
	return strings.HasSuffix(message, "\n") && !strings.Contains(message, "\x00") &&
		strings.ToValidUTF8(message, "") == message
}

// plainHeaders returns the headers of a commit behind its tree and its parents. ok is false where there are others than
// the names of author and committer: a signature, for one, is of that commit alone.
func plainHeaders(commit string) (headers string, ok bool) {
	head, _, _ := strings.Cut(commit, "\n\n")
	count := 0
	for line := range strings.SplitSeq(head, "\n") {
		key, _, _ := strings.Cut(line, " ")
		switch key {
		case "tree", "parent":
		case "author", "committer":
			headers += line + "\n"
			count++
		default:
			return "", false
		}
	}
	return headers, count == 2
}

// writeLoose writes an object as git does: its kind, its size and its content, compressed, in a file that is named for
// their hash (gitformat-loose). idLength tells which hash the repository has.
func writeLoose(objects, kind string, content []byte, idLength int) (id string, err error) {
	whole := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	var sum hash.Hash = sha1.New() //nolint:gosec // see above
	if idLength == sha256.Size*2 {
		sum = sha256.New()
	}
	sum.Write(whole)
	id = hex.EncodeToString(sum.Sum(nil))
	dir := filepath.Join(objects, id[:2])
	path := filepath.Join(dir, id[2:])
	if _, err := os.Lstat(path); err == nil {
		return id, nil
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as git makes it
		return "", err
	}
	// A name that begins like this is one of git's temporary objects, which git removes when they are old.
	f, err := os.CreateTemp(dir, "tmp_obj_")
	if err != nil {
		return "", err
	}
	z := zlib.NewWriter(f)
	_, err = z.Write(whole)
	err = errors.Join(err, z.Close(), f.Chmod(0o444), f.Close())
	if err == nil {
		// Whoever reads the object finds all of it, because it has its name only now.
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what stays is removed by git
	}
	return id, err
}
