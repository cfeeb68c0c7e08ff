package trust

import (
	"context"
	"crypto/hmac"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// Standing is whose mark a repository has.
type Standing int

// The standings.
const (
	// Unmarked is a repository in which muster never made state, or whose mark was lost.
	Unmarked Standing = iota
	// Own is a repository whose mark this user's muster made, for it or for the place from which it was moved.
	Own
	// Copied is a copy of a repository that still exists: Mark.Original.
	Copied
	// Foreign is a repository with a mark that this user's muster did not make on this machine.
	Foreign
)

// Mark is what a repository's mark says, compared with the registry.
type Mark struct {
	Standing Standing
	ID       string // "" unless it is Own
	Record   Record // of an own mark; the zero Record where somebody has removed it
	Original string // for Copied: git's common directory of the original
	// Tracked says that git has tracked some of the state since muster made it: it may have come with a commit.
	Tracked bool
}

// IsOwn reports whether the state beside the mark is what this user's muster made.
func (m Mark) IsOwn() bool { return m.Standing == Own && !m.Tracked }

func markPath(common string) string { return filepath.Join(common, "muster", "mark") }

func trackedPath(common string) string { return filepath.Join(common, "muster", "tracked") }

// Look reads the mark of the repository with this common directory. It writes nothing.
func (r *Registry) Look(common string) (Mark, error) {
	if common == "" {
		return Mark{}, nil
	}
	text, err := r.readMark(common)
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{Standing: Unmarked}, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return Mark{Standing: Foreign}, nil // a mark that this user cannot read is another user's
	}
	if err != nil {
		return Mark{}, muster.Errorf(muster.Unavailable, "muster's mark in this repository cannot be read: %w", err)
	}
	key, err := r.key()
	if err != nil {
		return Mark{}, err
	}
	id, signature, _ := strings.Cut(text, " ")
	// The signature is checked before the id becomes part of a path.
	if key == nil || !hmac.Equal([]byte(signature), []byte(sign(key, id))) {
		return Mark{Standing: Foreign}, nil
	}
	rec, err := r.Get(id)
	if err != nil {
		return Mark{}, err
	}
	if rec.GitDir != "" && !sameDirectory(rec.GitDir, common) {
		if there, err := r.readMark(rec.GitDir); err == nil && there == text {
			return Mark{Standing: Copied, Original: rec.GitDir}, nil
		}
	}
	return Mark{Standing: Own, ID: id, Record: rec, Tracked: !durable.IsMissing(trackedPath(common))}, nil
}

func (r *Registry) readMark(common string) (string, error) {
	data, _, err := r.files.ReadFile(markPath(common))
	return strings.TrimSpace(string(data)), err
}

// MemoryDir returns where what is remembered of the repository with this common directory lies: in the user's state
// directory, where no repository can bring anything. It is "" for a repository that has no mark of this user's. It
// writes nothing.
func (r *Registry) MemoryDir(common string) (string, error) {
	mark, err := r.Look(common)
	if err != nil || mark.Standing != Own {
		return "", err
	}
	return filepath.Join(r.dir, "memory", mark.ID), nil
}

// Sign returns a signature for a text, which HasSigned accepts for this user on this machine. It makes the secret key
// where there is none.
func (r *Registry) Sign(ctx context.Context, text string) (signature string, err error) {
	if r.missing != nil {
		return "", r.missing
	}
	unlock, err := r.files.Lock(ctx, filepath.Join(r.dir, "registry.lock"))
	if err != nil {
		return "", r.unusable(err)
	}
	defer unlock()
	key, err := r.makeKey()
	if err != nil {
		return "", err
	}
	return signText(key, text), nil
}

// HasSigned reports whether Sign has returned the signature for the text. It writes nothing.
func (r *Registry) HasSigned(text, signature string) bool {
	key, err := r.key()
	return err == nil && key != nil && hmac.Equal([]byte(signature), []byte(signText(key, text)))
}
