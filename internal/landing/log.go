package landing

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster"
)

// Of what a check prints its log keeps the first logHead bytes as they come, and at the end the last logTail: a check that
// prints without end does not fill the disk, and what a failing one says last is what matters.
const (
	logHead = 15 << 20
	logTail = 1 << 20
)

// maxTail is how many lines of a log the owner reads, and maxLine how long each.
const (
	maxTail = 100
	maxLine = 500
)

// checkLog takes what a check prints. It is safe for concurrent use.
type checkLog struct {
	file *os.File
	most int // bytes of the head
	last int // bytes of the tail

	mu     sync.Mutex
	size   int64  // of all that was printed
	filed  int64  // of it, what is in the file
	tail   []byte // the last bytes printed, in the file or not
	failed error  // why the file is not what it should be
}

// newLog makes the next file of that name: NAME-1.log, NAME-2.log, ...
func (l *Lander) newLog(name string) (*checkLog, error) {
	dir := filepath.Join(l.o.Outputs, "landing")
	err := os.MkdirAll(dir, 0o700)
	for k := 1; err == nil; k++ {
		var f *os.File
		f, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s-%d.log", name, k)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return &checkLog{file: f, most: logHead, last: logTail}, nil
		}
		if errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be made: %w", err)
}

// Write never fails: a check does not end because its output cannot be kept.
func (l *checkLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size += int64(len(p))
	if room := int64(l.most) - l.filed; room > 0 {
		l.put(p[:min(int64(len(p)), room)])
	}
	if len(p) >= l.last {
		l.tail = append(l.tail[:0], p[len(p)-l.last:]...)
	} else {
		l.tail = append(l.tail, p...)
	}
	if len(l.tail) > 2*l.last { // not at every write
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-l.last:]...)
	}
	return len(p), nil
}

func (l *checkLog) put(p []byte) {
	if l.failed != nil {
		return
	}
	n, err := l.file.Write(p)
	l.filed += int64(n)
	l.failed = err
}

// close writes the end of the log. One that cannot be written is removed: nobody is told of it, and what has no room for
// it needs the room that it takes.
func (l *checkLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rest := l.size - l.filed; rest > 0 {
		end := l.tail[max(0, int64(len(l.tail))-min(rest, int64(l.last))):]
		if int64(len(end)) < rest {
			end = wholeLines(end)
			left := rest - int64(len(end))
			l.put(fmt.Appendf(nil, "\n[... %d bytes are left out here: of %d this log has the first %d and the last %d ...]\n", left, l.size, l.filed, len(end)))
		}
		l.put(end)
	}
	if err := l.file.Close(); l.failed == nil {
		l.failed = err
	}
	if l.failed == nil {
		return nil
	}
	_ = os.Remove(l.file.Name())
	return muster.Errorf(muster.Unavailable, "the check's log cannot be written: %w", l.failed)
}

// lines are the last lines that were printed.
func (l *checkLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	data := l.tail
	if int64(len(data)) < l.size {
		data = wholeLines(data)
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(data), "?"), "\n"), "\n")
	lines = lines[max(0, len(lines)-maxTail):]
	for i, s := range lines {
		if len(s) > maxLine {
			lines[i] = strings.ToValidUTF8(s[:maxLine], "") + " ..."
		}
	}
	return lines
}

// wholeLines is data without the end of a line that it begins with.
func wholeLines(data []byte) []byte {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[i+1:]
	}
	return data
}
