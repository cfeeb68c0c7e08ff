package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/text"
	"muster/internal/trust"
)

// The limits of a directory.
const (
	maxFiles = 500
	maxOld   = 20 // of each name, which others have replaced
)

// The files beside the memories.
const (
	indexFile = "MEMORY.md"
	oldDir    = ".old"
	lockFile  = ".lock"
)

// Dir is a directory of memories. It need not exist: it is made when something is saved. The zero Dir has no memories
// and takes none.
type Dir struct {
	Path     string          // absolute
	Registry *trust.Registry // tells what the user has saved
}

// errNoDir is the error for a Dir that takes no memories.
var errNoDir = muster.Errorf(muster.Unavailable, "nothing can be remembered here: there is no directory for it")

// List returns the memories, the newest first. What is no memory has a Problem and comes last. It writes nothing.
func (d Dir) List() ([]Memory, error) {
	if d.Path == "" {
		return nil, nil
	}
	names, err := durable.OS{}.Names(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "what is remembered cannot be read: %w", err)
	}
	slices.Sort(names)
	var all []Memory
	for _, file := range names {
		name, isMemory := strings.CutSuffix(file, ".md")
		if !isMemory || file == indexFile || strings.HasPrefix(file, ".") {
			continue
		}
		m := d.read(name)
		if len(all) >= maxFiles {
			m.Problem = fmt.Sprintf("there are more than %d", maxFiles)
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b Memory) int {
		if isA, isB := a.Problem != "", b.Problem != ""; isA != isB {
			return map[bool]int{true: 1, false: -1}[isA]
		}
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Get returns the memory with a name. The error is NotFound where there is none that can be used.
func (d Dir) Get(name string) (Memory, error) {
	if d.Path == "" || checkName(name) != nil || durable.IsMissing(d.path(name)) {
		return Memory{}, muster.Errorf(muster.NotFound, "nothing is remembered as %q", name).
			WithHint("see all:  muster memory")
	}
	m := d.read(name)
	if m.Problem != "" {
		return m, muster.Errorf(muster.Invalid, "%s is not used: %s", m.Path, m.Problem)
	}
	return m, nil
}

func (d Dir) path(name string) string { return filepath.Join(d.Path, name+".md") }

func (d Dir) read(name string) Memory {
	m := Memory{Name: text.OneLine(name), Path: d.path(name)}
	if err := checkName(name); err != nil {
		m.Problem = err.Error()
		return m
	}
	text, changed, err := d.text(name)
	if err != nil {
		m.Problem = reason(err)
		return m
	}
	m, signature := parse(name, text, changed)
	m.Path = d.path(name)
	if m.IsUsers = signature != "" && d.Registry.HasSigned(m.signed(), signature); m.IsUsers {
		m.By, m.SawOutput = "", false
	}
	if m.Content == "" {
		m.Problem = "it has no text below its front matter"
	}
	return m
}

// text returns the text of a file, which may be anybody's, and when it was changed.
func (d Dir) text(name string) (content string, changed time.Time, err error) {
	data, err := durable.ReadBelow(d.Path, d.path(name), maxFile)
	if err != nil {
		return "", changed, err
	}
	if slices.Contains(data, 0) {
		return "", changed, errors.New("it is not text")
	}
	if fi, err := os.Lstat(d.path(name)); err == nil {
		changed = fi.ModTime()
	}
	return text.Clean(string(data)), changed, nil
}

// reason returns an error without the path of its file.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Save writes a memory, with its time. Where one of the name was there with another text, that is kept in .old, and
// returned. With m.IsUsers it gets the user's signature: the caller knows that the user has asked for it. The error is
// Invalid for what cannot be saved.
func (d Dir) Save(ctx context.Context, m Memory) (replaced string, err error) {
	if d.Path == "" {
		return "", errNoDir
	}
	if err := m.Check(); err != nil {
		return "", err
	}
	m.Content, m.At = strings.TrimSpace(m.Content), time.Now()
	signature := ""
	if m.IsUsers {
		m.By, m.SawOutput = "", false
		if signature, err = d.Registry.Sign(ctx, m.signed()); err != nil {
			return "", err
		}
	}
	files, unlock, err := d.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	old, _, err := d.text(m.Name)
	if errors.Is(err, fs.ErrNotExist) {
		if all, err := d.List(); err != nil || len(all) >= maxFiles {
			return "", cmp.Or(err, error(muster.Errorf(muster.Invalid,
				"%d memories are here, which is the most: replace one of them", len(all))))
		}
	} else if err != nil {
		return "", muster.Errorf(muster.Invalid, "%s is in the way: %s", d.path(m.Name), reason(err)).
			WithHint("remove it, or save under another name")
	} else if was, _ := parse(m.Name, old, m.At); was.signed() != m.signed() {
		// The old text is durable under its new name before it is replaced.
		if replaced, err = d.keepOld(files, m.Name, old); err != nil {
			return "", err
		}
	}
	if err := files.Replace(d.path(m.Name), []byte(m.render(signature))); err != nil {
		return "", err
	}
	return replaced, d.writeIndex(files)
}

// lock makes this process the only one that changes the directory.
func (d Dir) lock(ctx context.Context) (files *durable.Files, unlock func(), err error) {
	files = durable.New(durable.OS{})
	unlock, err = files.Lock(ctx, filepath.Join(d.Path, lockFile))
	return files, unlock, err
}

// keepOld keeps a text that is about to be replaced, and returns where. Of each name the newest maxOld are kept.
func (d Dir) keepOld(files *durable.Files, name, text string) (path string, err error) {
	for at := time.Now().UnixNano(); ; at++ {
		path = filepath.Join(d.Path, oldDir, fmt.Sprintf("%s.%d.md", name, at))
		if err = files.Create(path, []byte(text)); !errors.Is(err, muster.ErrStale) {
			break
		}
	}
	all := durable.Glob(filepath.Join(d.Path, oldDir), name+".*.md") // in the order of their times
	for _, old := range all[:max(len(all)-maxOld, 0)] {
		err = cmp.Or(err, files.Remove(old))
	}
	return path, err
}

// Forget removes a memory, with the texts that it has replaced. The error is NotFound where there is none.
func (d Dir) Forget(ctx context.Context, name string) error {
	if _, err := d.Get(name); errors.Is(err, muster.ErrNotFound) {
		return err
	}
	files, unlock, err := d.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// The old texts go first: a crash in between leaves what can be forgotten again.
	for _, old := range durable.Glob(filepath.Join(d.Path, oldDir), name+".*.md") {
		if err := files.Remove(old); err != nil {
			return err
		}
	}
	if err := files.Remove(d.path(name)); err != nil {
		return err
	}
	return d.writeIndex(files)
}

// writeIndex makes the index for people anew. Members read what Index returns.
func (d Dir) writeIndex(files *durable.Files) error {
	all, err := d.List()
	if err != nil {
		return err
	}
	text, _ := lines(all, maxLines, maxIndex)
	return files.Replace(filepath.Join(d.Path, indexFile), []byte(text))
}
