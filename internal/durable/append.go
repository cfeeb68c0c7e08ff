package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/failpoint"
)

// Append adds one line to a file of lines and returns the end of the file after it. The caller holds the file's lock.
func (f *Files) Append(path string, line []byte) (end int64, err error) {
	t, err := f.OpenTail(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = t.Close() }()
	if err := t.SetAside(); err != nil {
		return 0, err
	}
	return t.Append(append(bytes.Clone(line), '\n'))
}

// Tail is the end of a file of lines, open for appending. The caller holds the file's lock while it uses one, because
// two writers that both look for a torn line could cut off what the other has just written.
type Tail struct {
	f    *Files
	file File
	path string
	size int64
	// torn is what follows the last newline.
	torn []byte
}

// OpenTail opens a file of lines. It makes the file and the directories above it if they are missing. The file's name
// is durable when it returns, so that no later sync of the content can be lost with the name.
func (f *Files) OpenTail(path string) (*Tail, error) {
	if err := f.Ended(); err != nil {
		return nil, err
	}
	t, flag := &Tail{f: f, path: path}, os.O_RDWR|os.O_APPEND
	// Another process may make the file at the same time. Both get the same file, because the flags do not truncate.
	made := false
	err := f.openIn(path, func() (err error) {
		made = flag&os.O_CREATE != 0
		t.file, err = f.fs.OpenFile(path, flag, 0o600)
		flag |= os.O_CREATE
		return err
	})
	if err != nil {
		return nil, writeError(path, err)
	}
	err = t.findTorn()
	// Before the first write: a file that has something in it has a durable name, whoever made it and was killed then.
	if err == nil {
		err = f.syncName(filepath.Dir(path))
	}
	if err == nil && (made || t.size == 0) {
		err = f.syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = t.file.Close()
		return nil, writeError(path, err)
	}
	return t, nil
}

// findTorn finds the end of the file and what follows the last newline. The file may have grown or shrunk since the
// last look, because not every program takes the lock.
func (t *Tail) findTorn() error {
	fi, err := t.file.Stat()
	if err != nil {
		return err
	}
	t.size, t.torn = fi.Size(), nil
	at, err := LineStart(t.file, t.size)
	if err != nil || at == t.size {
		return err
	}
	if t.size-at > MaxLine { // none of ours is as long, and it must be moved away by somebody who looks at it
		return fmt.Errorf("its last line: %w", tooLarge(MaxLine))
	}
	t.torn = make([]byte, t.size-at)
	n, err := t.file.ReadAt(t.torn, at)
	t.torn = t.torn[:n]
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// End returns the offset after the last whole line.
func (t *Tail) End() int64 { return t.size - int64(len(t.torn)) }

// Torn returns what follows the last newline: the rest of a write that was interrupted, or a line of another program
// that has no newline (yet).
func (t *Tail) Torn() []byte { return t.torn }

// Reread looks at the end of the file again. A program that writes without the lock may have gone on.
func (t *Tail) Reread() error { return writeError(t.path, t.findTorn()) }

// SetAside moves the torn part to the file path.torn and cuts it off here. The copy is durable before the cut, so a
// crash in between only leaves it in both.
func (t *Tail) SetAside() error {
	if len(t.torn) == 0 {
		return nil
	}
	aside, err := t.f.OpenTail(t.path + ".torn")
	if err != nil {
		return err
	}
	defer func() { _ = aside.Close() }()
	if _, err := aside.Append(append(bytes.Clone(t.torn), '\n')); err != nil {
		return err
	}
	if err := t.f.fs.Truncate(t.path, t.End()); err != nil {
		return writeError(t.path, err)
	}
	t.size, t.torn = t.End(), nil
	return nil
}

// Append writes data, which is whole lines, with one write and syncs it. It returns the end after them. A torn part
// that is still there gets its newline first.
func (t *Tail) Append(data []byte) (end int64, err error) {
	if end, err = t.Write(data); err != nil {
		return 0, err
	}
	defer failpoint.HitFile(t.path, "append.end")
	if err := t.f.checkSync(t.path, t.file.Sync()); err != nil {
		return 0, err
	}
	return end, nil
}

// Write is Append without the sync. What it wrote survives the end of this process at once, and a power loss once a
// later Append to the file has returned. What a failed write left behind is cut off again.
func (t *Tail) Write(data []byte) (end int64, err error) {
	if err := t.f.Ended(); err != nil {
		return 0, err
	}
	if len(t.torn) > 0 {
		data = append([]byte{'\n'}, data...)
	}
	failpoint.HitFile(t.path, "append.begin")
	n, err := t.file.Write(data)
	failpoint.HitFile(t.path, "append.written")
	if err != nil || n < len(data) {
		return 0, t.undoWrite(n, err)
	}
	// Where the write ended, not where it was meant to: another program may have appended without the lock.
	if end, err = t.file.Seek(0, io.SeekCurrent); err != nil || end < t.size+int64(len(data)) {
		end = t.size + int64(len(data))
	}
	t.size, t.torn = end, nil
	return end, nil
}

// undoWrite cuts off n bytes of a failed write. If that fails too, the next append finds a torn line and sets it
// aside.
func (t *Tail) undoWrite(n int, err error) error {
	if n > 0 {
		if end, e := t.file.Seek(0, io.SeekCurrent); e == nil && end >= int64(n) {
			_ = t.f.fs.Truncate(t.path, end-int64(n))
		}
	}
	if err == nil {
		return muster.Errorf(muster.Unavailable, "%s took only a part of a write", t.path)
	}
	return writeError(t.path, err)
}

// Close closes the file.
func (t *Tail) Close() error { return t.file.Close() }
