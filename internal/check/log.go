package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/failures"
	"muster/internal/text"
)

// A log keeps the first logHead bytes that a check prints and the last logTail. So a check that prints without end does
// not fill the disk, and the last words of a failing one, which matter most, are there.
const (
	logHead = 15 << 20
	logTail = 1 << 20
	// maxPrinted is how much a check may print. One that prints more is killed, and has failed.
	maxPrinted = 512 << 20
	// maxSearched is how much of that is searched for failures, before the tail.
	maxSearched = 64 << 20
)

// errTooMuchOutput is the error of a check that has printed too much.
var errTooMuchOutput = fmt.Errorf("it printed more than %d MB, which is the most a check may print", maxPrinted>>20)

// The owner of a task reads the failures that were found in the output, up to maxFailures bytes, and its last lines:
// maxTail of them where no failure was found, and otherwise shortTail, each up to maxLine bytes.
const (
	maxFailures = 8 << 10
	maxTail     = 100
	shortTail   = 30
	maxLine     = 500
)

// The logs of checks take up to maxLogBytes, and there are at most maxLogs of them: before a log is made, the oldest
// ones go. The newest keepLogs always stay, because owners that mend their work read them.
const (
	maxLogs     = 200
	maxLogBytes = 256 << 20
	keepLogs    = 10
)

// checkLog is the log of one check. It is safe for concurrent use.
type checkLog struct {
	file     *os.File
	headSize int
	tailSize int

	mu       sync.Mutex
	printed  int64  // bytes that the check printed
	written  int64  // bytes of them that are in the file
	tail     []byte // the last tailSize bytes printed, in the file or not
	finder   failures.Finder
	teller   teller
	writeErr error // why the file is not what it should be
}

// newCheckLog makes the next log of that name: NAME-1.log, NAME-2.log, ... No number is used again while a later log of
// the name is there: messages name logs by their paths.
func newCheckLog(outputs, name string) (*checkLog, error) {
	// The outputs lie two levels below the root of the repository. Nothing is removed where a link leads.
	root, dir := filepath.Dir(filepath.Dir(outputs)), filepath.Join(outputs, "landing")
	err := durable.MakeDirBelow(root, dir)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be made: %w", err)
	}
	err = os.ErrExist
	for k := 1 + tidyLogs(dir, name); errors.Is(err, os.ErrExist); k++ {
		var f *os.File
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.log", name, k))
		if f, err = durable.CreateBelow(root, path); err == nil {
			return &checkLog{file: f, headSize: logHead, tailSize: logTail}, nil
		}
	}
	return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be made: %w", err)
}

// tidyLogs removes the oldest logs of a directory that has too many, and returns the highest number of a log of that
// name. What cannot be read or removed is left: a check is worth more than its room.
func tidyLogs(dir, name string) (highest int) {
	type entry struct {
		path string
		size int64
		at   time.Time
	}
	var all []entry
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		base, isLog := strings.CutSuffix(e.Name(), ".log")
		info, err := e.Info()
		if !isLog || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if digits, ok := strings.CutPrefix(base, name+"-"); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				highest = max(highest, n)
			}
		}
		all = append(all, entry{filepath.Join(dir, e.Name()), info.Size(), info.ModTime()})
	}
	slices.SortFunc(all, func(a, b entry) int { return b.at.Compare(a.at) }) // the newest first
	size := int64(0)
	for i, e := range all {
		size += e.size
		// One more is about to be made, of the largest size that a log has.
		if i >= keepLogs && (i >= maxLogs-1 || size > maxLogBytes-logHead-logTail) {
			_ = os.Remove(e.path)
		}
	}
	return highest
}

// Write fails only with errTooMuchOutput, which ends the check. It does not fail because the output cannot be kept.
func (l *checkLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.printed > maxPrinted {
		return 0, errTooMuchOutput
	}
	l.printed += int64(len(p))
	l.teller.write(p, time.Now())
	if l.printed <= maxSearched {
		_, _ = l.finder.Write(p) // it never fails
	}
	// Above the head the bytes go to the tail only, in memory, and the file stops growing.
	l.put(p[:max(0, min(int64(len(p)), int64(l.headSize)-l.written))])
	l.tail = append(l.tail, p...)[max(0, len(l.tail)+len(p)-l.tailSize):]
	return len(p), nil
}

// put writes to the file, until a write fails.
func (l *checkLog) put(p []byte) {
	if l.writeErr == nil {
		var n int
		n, l.writeErr = l.file.Write(p)
		l.written += int64(n)
	}
}

// close writes the tail and closes the log. A log that could not be written is removed: it is named nowhere, and on a
// full disk its room is needed.
func (l *checkLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// What is not in the file is in the tail, or was left out between the two.
	rest := l.printed - l.written
	end := l.tail[max(0, int64(len(l.tail))-rest):]
	if int64(len(end)) < rest {
		end = wholeLines(end)
		left := rest - int64(len(end))
		l.put(fmt.Appendf(nil, "\n[... %d bytes are left out here: "+
			"of %d this log has the first %d and the last %d ...]\n", left, l.printed, l.written, len(end)))
	}
	l.put(end)
	if l.writeErr = cmp.Or(l.writeErr, l.file.Close()); l.writeErr == nil {
		return nil
	}
	_ = os.Remove(l.file.Name())
	return muster.Errorf(muster.Unavailable, "the check's log cannot be written: %w", l.writeErr)
}

// digest returns what a reader needs of the output: the first failure in a line, "" where none was found, and the
// failures with the last lines, without what stands there again. Files of the checkout in dir are named as in the
// repository: the checkout is gone when this is read. It is called once, when all was printed.
func (l *checkLog) digest(dir string) (failed, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.printed > maxSearched {
		_, _ = l.finder.Write(append([]byte("\n"), l.tail...)) // it never fails
	}
	inRepository := strings.NewReplacer(dir+string(filepath.Separator), "", dir, ".").Replace
	found := l.finder.Failures()
	if len(found) == 0 {
		return "", "Its last lines:\n" + inRepository(l.lines(maxTail))
	}
	failed = found[0].Title()
	if more := len(found) - 1; more > 0 {
		failed += fmt.Sprintf(", and %d more", more)
	}
	told := failures.Lines(found, maxFailures)
	text = fmt.Sprintf("What failed, as its output tells it:\n%sIts last lines:\n%s", told,
		withoutTold(l.lines(shortTail), told))
	return inRepository(failed), inRepository(text)
}

// withoutTold returns the lines that do not stand in told, and have anything but marks below a line.
func withoutTold(lines, told string) string {
	isTold := map[string]bool{}
	for line := range strings.Lines(told) {
		isTold[strings.TrimSpace(line)] = true
	}
	var left []string
	for line := range strings.Lines(lines) {
		bare := strings.TrimSpace(line)
		if bare == "" || !isTold[bare] && strings.Trim(bare, "^~ ") != "" {
			left = append(left, line)
		}
	}
	return strings.Join(left, "")
}

// search lets a function find failures elsewhere than in the output, before digest is called.
func (l *checkLog) search(ctx context.Context, f func(context.Context, *failures.Finder) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f(ctx, &l.finder)
}

// names returns the names of all tests that have failed. isKnown is false where the output does not tell all of them,
// and isStopped says that tests were left out after a failure.
func (l *checkLog) names() (all []string, isKnown, isStopped bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, isKnown = l.finder.Names()
	return all, isKnown && l.printed <= maxSearched, l.finder.IsStopped()
}

// ranNone returns the line that says that no test was found, or "".
func (l *checkLog) ranNone() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.printed > maxSearched {
		return ""
	}
	return l.finder.RanNone()
}

// lines returns the last lines that were printed. The caller holds the mutex.
func (l *checkLog) lines(most int) string {
	data := l.tail
	if int64(len(data)) < l.printed {
		data = wholeLines(data)
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(data), "?"), "\n"), "\n")
	lines = lines[max(0, len(lines)-most):]
	for i, s := range lines {
		lines[i] = text.CutBytes(s, maxLine)
	}
	return strings.Join(lines, "\n")
}

// wholeLines returns data without the part of a line at its beginning.
func wholeLines(data []byte) []byte {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[i+1:]
	}
	return data
}
