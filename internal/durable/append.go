package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
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
	defer t.Close()
	if err := t.SetAside(); err != nil {
		return 0, err
	}
	return t.Append(append(bytes.Clone(line), '\n'))
}

// Tail is the end of a file of lines, open for appending. The caller holds the file's lock while it has one.
type Tail struct {
	f    *Files
	file File
	path string
	size int64
	torn []byte // what follows the last newline
}

// OpenTail opens a file of lines; a missing one is made, and the directories above it.
func (f *Files) OpenTail(path string) (*Tail, error) {
	if err := f.Ended(); err != nil {
		return nil, err
	}
	const flag = os.O_RDWR | os.O_APPEND
	t := &Tail{f: f, path: path}
	var err error
	made := false
	t.file, err = f.fs.OpenFile(path, flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.MakeDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		made = true
		t.file, err = f.fs.OpenFile(path, flag|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, failed(path, err)
	}
	if err := t.look(); err != nil {
		t.file.Close()
		return nil, failed(path, err)
	}
	// Before the first write: a file that has something in it has a durable name, whoever made it and was killed then.
	err = f.named(filepath.Dir(path))
	if err == nil && (made || t.size == 0) {
		err = f.syncDir(filepath.Dir(path))
	}
	if err != nil {
		t.file.Close()
		return nil, err
	}
	return t, nil
}

// look finds the end and what follows the last newline.
func (t *Tail) look() error {
	fi, err := t.file.Stat()
	if err != nil {
		return err
	}
	t.size, t.torn = fi.Size(), nil
	at, err := LineStart(t.file, t.size)
	if err != nil || at == t.size || failpoint.Disabled(failpoint.TailRepair) {
		return err
	}
	t.torn = make([]byte, t.size-at)
	n, err := t.file.ReadAt(t.torn, at)
	t.torn = t.torn[:n]
	if err == io.EOF {
		err = nil
	}
	return err
}

// LineStart is the place after the last newline before end, 0 when there is none.
func LineStart(r io.ReaderAt, end int64) (int64, error) {
	size := int64(1) // mostly the last byte is that newline
	for end > 0 {
		b := make([]byte, min(size, end))
		n, err := r.ReadAt(b, end-int64(len(b)))
		if n < len(b) && err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return end - int64(len(b)) + int64(i) + 1, nil
		}
		end -= int64(len(b))
		size = 64 << 10
	}
	return 0, nil
}

// End is the place after the last whole line.
func (t *Tail) End() int64 { return t.size - int64(len(t.torn)) }

// Torn is what follows the last newline: the rest of a write that did not come to its end, or another program's line
// that has no newline (yet).
func (t *Tail) Torn() []byte { return t.torn }

// Whole reports whether the torn part is a JSON object that only lacks its newline.
func (t *Tail) Whole() bool {
	b := bytes.TrimSpace(t.torn)
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

// Look looks again: a program that writes without the lock may have gone on.
func (t *Tail) Look() error { return failed(t.path, t.look()) }

// SetAside moves the torn part to path.torn, a line for each, and cuts it off here.
func (t *Tail) SetAside() error {
	if len(t.torn) == 0 {
		return nil
	}
	aside, err := t.f.OpenTail(t.path + ".torn")
	if err != nil {
		return err
	}
	defer aside.Close()
	if _, err := aside.Append(append(bytes.Clone(t.torn), '\n')); err != nil {
		return err
	}
	if err := t.f.fs.Truncate(t.path, t.End()); err != nil {
		return failed(t.path, err)
	}
	t.size, t.torn = t.End(), nil
	return nil
}

// Append writes data, whole lines, in one write and syncs it. It returns the end after them. A torn part that is still
// there gets its newline first.
func (t *Tail) Append(data []byte) (end int64, err error) {
	if end, err = t.write(data); err != nil {
		return 0, err
	}
	defer failpoint.HitFile(t.path, "append.end")
	if err := t.f.synced(t.path, t.file.Sync()); err != nil {
		return 0, err
	}
	return end, nil
}

// Write is Append without the sync: what it wrote outlives this process at once, and a power loss when a later Append to
// the file has returned.
func (t *Tail) Write(data []byte) (end int64, err error) { return t.write(data) }

func (t *Tail) write(data []byte) (end int64, err error) {
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
		return 0, t.undo(n, err)
	}
	// Where the write ended, not where it was meant to: another program may have appended without the lock.
	if end, err = t.file.Seek(0, io.SeekCurrent); err != nil || end < t.size+int64(len(data)) {
		end = t.size + int64(len(data))
	}
	t.size, t.torn = end, nil
	return end, nil
}

// undo cuts a write of n bytes off again. If that fails too, the next append finds a torn line and moves it aside.
func (t *Tail) undo(n int, err error) error {
	if n > 0 {
		if end, e := t.file.Seek(0, io.SeekCurrent); e == nil && end >= int64(n) {
			t.f.fs.Truncate(t.path, end-int64(n))
		}
	}
	if err == nil {
		return muster.Errorf(muster.Unavailable, "%s took only a part of a write", t.path)
	}
	return failed(t.path, err)
}

// Close closes the file.
func (t *Tail) Close() error { return t.file.Close() }
