// Package trust decides what of a repository muster believes. A repository's content comes from anybody: whoever
// clones one, unpacks one or pulls into one brings files that look like a team's state.
//
// A Registry is what muster remembers about repositories in the user's state directory (paths.UserState). It has a
// secret key, and a Record for each repository in which muster made state, with what the user trusts of its Settings. A
// Mark is the proof in the repository: a file in git's common directory, which no clone and no pull can bring, with a
// random id that is signed with the key. CheckState is what every opening of a repository calls before it reads any
// state.
//
// What a repository brings and what starts a process, widens rights, chooses a server or costs money counts only when
// the user trusts it. Each such thing is an Item. A package that reads such things returns an Item for each of them,
// and leaves out those that Settings.TrustsItem does not know when a run begins; workspace.Trust.Get returns the
// Settings. The function repositoryItems of internal/cli lists where items come from: a package that brings a new kind
// is added there, and the command muster trust, the question at the beginning of a run and the notes about what does
// not count work without a further change. An item's Text must say all that decides what happens, because the user
// reads it, and only a change of it is asked about again. Items are often made of sections of the settings files
// (config.Section).
//
// The package keeps these invariants:
//
//   - A mark is durable before the first file of the state is made (Registry.Mark), so state without a mark was not
//     made by muster.
//   - A mark holds for one directory. A copy of a repository has the mark of the original, and is refused while the
//     original exists.
//   - Nothing here is decided by a file that a clone, a pull or an archive of a working tree can bring.
//
// It does not protect from programs that run as the user: they can read the key. It asks nobody and prints nothing.
package trust

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/text"
)

// Registry is what muster remembers about repositories for one user on one machine. Its methods are safe for use by
// several goroutines and processes.
type Registry struct {
	dir     string
	missing error // why there is no directory
	files   *durable.Files
}

// Record is what is remembered about one repository.
type Record struct {
	ID        string  `json:"id"`
	GitDir    string  `json:"git_dir"` // git's common directory when the repository was last written to
	Root      string  `json:"root"`    // of its main worktree
	CreatedAt float64 `json:"created_at"`
	// Settings is what the user has said about the settings of the repository.
	Settings Settings `json:"settings,omitzero"`
}

// Open returns the registry in the user's state directory. It reads and creates nothing. env returns the value of an
// environment variable, "" when it is not set. Where no such directory is named, each use of the registry is an error.
func Open(env func(string) string) *Registry {
	dir, err := paths.UserState(env)
	if err != nil {
		err = muster.Errorf(muster.Unavailable, "muster has no place to remember its repositories: %w", err).
			WithHint("export XDG_STATE_HOME=DIR")
	}
	return &Registry{dir, err, durable.New(durable.OS{})}
}

// recordPath is where the record of a repository lies. An id is hexadecimal, so it is a file's name.
func (r *Registry) recordPath(id string) string {
	return filepath.Join(r.dir, "repositories", id+".json")
}

func (r *Registry) keyPath() string { return filepath.Join(r.dir, "key") }

// unusable is the error for a registry that cannot be read or written. It is Unavailable.
func (r *Registry) unusable(err error) error {
	// The hint of an error of the file system is about the team's state. Here another one helps.
	if e, is := errors.AsType[*muster.Error](err); is && e.Hint != "" {
		err = errors.New(e.Error())
	}
	return muster.Errorf(muster.Unavailable,
		"muster cannot use its state directory, %s (XDG_STATE_HOME names another): %w", r.dir, err).
		WithHint("export XDG_STATE_HOME=DIR")
}

// Get returns the record with an id. It is the zero Record, with no error, where there is none.
func (r *Registry) Get(id string) (rec Record, err error) {
	data, _, err := r.files.ReadFile(r.recordPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, r.unusable(err)
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		path := r.recordPath(id)
		return Record{}, muster.Errorf(muster.Unavailable,
			"what muster remembers of a repository cannot be read: %s: %w", path, err).
			WithHint("remove it, and trust again what you have trusted: rm %s", text.ShellQuote(path))
	}
	return rec, nil
}

// Mark marks the repository with this common directory as one in which muster makes state for this user, and returns
// its id. A repository that has a mark of its own keeps it. The mark of a copy, or of another user or machine, is
// replaced: the caller knows that there is no state, or that the user has decided to take it over.
func (r *Registry) Mark(ctx context.Context, common, root string) (id string, err error) {
	if mark, err := r.Look(common); err != nil {
		return "", err
	} else if mark.IsOwn() && mark.Record.GitDir == common && mark.Record.Root == root {
		return mark.ID, nil // nothing is locked or written in the usual case
	}
	if id, err = r.change(ctx, common, root, func(*Settings) {}); err != nil {
		return "", err
	}
	return id, r.files.Remove(trackedPath(common))
}

// change marks a repository where it has no mark of its own yet, and changes what the user has said about its settings.
func (r *Registry) change(ctx context.Context, common, root string, change func(*Settings)) (id string, err error) {
	if common == "" {
		return "", muster.Errorf(muster.Unavailable, "%s has no git directory to mark", root)
	}
	if r.missing != nil {
		return "", r.missing
	}
	// One process at a time makes keys, marks and records, so that of two changes at the same time none is lost.
	unlock, err := r.files.Lock(ctx, filepath.Join(r.dir, "registry.lock"))
	if err != nil {
		return "", r.unusable(err)
	}
	defer unlock()
	mark, err := r.Look(common)
	if err != nil {
		return "", err
	}
	key, err := r.makeKey()
	if err != nil {
		return "", err
	}
	rec := mark.Record
	if mark.Standing != Own {
		rec = Record{}
		mark.ID = newID()
	}
	if rec.ID == "" {
		rec.ID, rec.CreatedAt = mark.ID, muster.UnixTime(time.Now())
	}
	rec.GitDir, rec.Root = common, root
	change(&rec.Settings)
	// The record goes first: a mark that counts has a record, by which a copy is told from its original.
	if err := r.put(rec); err != nil || mark.Standing == Own {
		return mark.ID, err
	}
	return mark.ID, r.files.Replace(markPath(common), []byte(mark.ID+" "+sign(key, mark.ID)+"\n"))
}

func (r *Registry) put(rec Record) error {
	data, err := muster.Encode(rec)
	if err != nil {
		return err
	}
	if err := r.files.Replace(r.recordPath(rec.ID), data); err != nil {
		return r.unusable(err)
	}
	return nil
}

// CheckWritable refuses a directory in which nothing can be remembered. It tries where the directory is, or else where
// it would be made, and leaves nothing behind.
func (r *Registry) CheckWritable() error {
	if r.missing != nil {
		return r.missing
	}
	dir := r.dir
	for _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Stat(dir) {
		dir = filepath.Dir(dir)
	}
	temp, err := os.MkdirTemp(dir, "muster-doctor-")
	if err != nil {
		return r.unusable(err)
	}
	return os.Remove(temp)
}

// makeKey returns the secret key, which it makes where there is none. The caller holds the registry's lock.
func (r *Registry) makeKey() ([]byte, error) {
	key, err := r.key()
	if err != nil || key != nil {
		return key, err
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	if err := r.files.Replace(r.keyPath(), []byte(hex.EncodeToString(key)+"\n")); err != nil {
		return nil, r.unusable(err)
	}
	return key, nil
}

// key returns the secret key, nil where none was made yet.
func (r *Registry) key() ([]byte, error) {
	if r.missing != nil {
		return nil, r.missing
	}
	data, _, err := r.files.ReadFile(r.keyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, r.unusable(err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(key) != sha256.Size {
		return nil, muster.Errorf(muster.Unavailable, "the key of the marks in your repositories is damaged").
			WithHint("remove it, then adopt your repositories again: rm %s", text.ShellQuote(r.keyPath()))
	}
	return key, nil
}

func sign(key []byte, id string) string { return mac(key, "muster repository "+id) }

// signText returns the signature of a text, which is never that of an id.
func signText(key []byte, text string) string { return mac(key, "muster text "+text) }

func mac(key []byte, text string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	return hex.EncodeToString(id)
}

// sameDirectory reports whether two paths lead to one directory.
func sameDirectory(a, b string) bool {
	if a == b {
		return true
	}
	at, err := os.Stat(a)
	if err != nil {
		return false
	}
	bt, err := os.Stat(b)
	return err == nil && os.SameFile(at, bt)
}
