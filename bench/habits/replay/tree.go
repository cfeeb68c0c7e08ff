package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits of the files of a commit. Larger ones, and those with names that no file system takes, are left out.
const (
	maxFile = 1 << 20
	maxName = 255 // bytes of a part of a path
)

// errNone says that the history has no commit from before a session.
var errNone = errors.New("the stored history has no commit from before the session")

// repository is a bare git directory. Only objects are read: nothing that its configuration or attributes name runs.
type repository string

// git starts git and returns what it prints.
func (r repository) git(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	all := append([]string{"-c", "safe.directory=*", "--git-dir=" + string(r)}, args...)
	c := exec.CommandContext(ctx, "git", all...)
	c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1")
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = in, &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return out, nil
}

// before returns the last commit of the main branch from before a time.
func (r repository) before(ctx context.Context, t time.Time) (commit string, err error) {
	out, err := r.git(ctx, nil, "rev-list", "-1", "--before="+t.Format(time.RFC3339), "HEAD")
	if err != nil {
		return "", err
	}
	if commit = strings.TrimSpace(string(out)); commit == "" {
		return "", errNone
	}
	return commit, nil
}

// blob is a file of a commit.
type blob struct{ id, path string }

// files returns the regular files of a commit that are not too large.
func (r repository) files(ctx context.Context, commit string) (all []blob, err error) {
	out, err := r.git(ctx, nil, "ls-tree", "-r", "-l", "-z", commit)
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		about, name, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(about)
		if !ok || len(fields) != 4 || !strings.HasPrefix(fields[0], "100") {
			continue
		}
		if size, err := strconv.Atoi(fields[3]); err == nil && size <= maxFile && !hasLongName(name) {
			all = append(all, blob{fields[2], name})
		}
	}
	return all, nil
}

// hasLongName reports whether a part of a path is too long for a file's name.
func hasLongName(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return len(part) > maxName })
}

// write writes the files below a directory. A name that leads out of it is an error.
func (r repository) write(ctx context.Context, all []blob, to *os.Root) error {
	var ids strings.Builder
	for _, b := range all {
		ids.WriteString(b.id + "\n")
	}
	out, err := r.git(ctx, strings.NewReader(ids.String()), "cat-file", "--batch")
	if err != nil {
		return err
	}
	in := bufio.NewReader(bytes.NewReader(out))
	for _, b := range all {
		head, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		fields := strings.Fields(head)
		if len(fields) != 3 {
			continue // the snapshot does not have it
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return err
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(in, data); err != nil {
			return err
		}
		if err := put(to, b.path, string(data[:size])); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file, with its directories.
func put(to *os.Root, name, content string) error {
	if err := to.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return to.WriteFile(name, []byte(content), 0o600)
}
