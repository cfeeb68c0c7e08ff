package landing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
)

// result is what a check said.
type result struct {
	green   bool
	cannot  bool   // it did not run: exit 126 or 127, or the setup failed
	how     string // "exit 1", "no end within 10m0s"
	command string
	seconds float64
	log     string   // the path of the whole output
	tail    []string // its last lines
}

// maxTail is how many lines of a log the owner reads, and maxLine how long each.
const (
	maxTail = 100
	maxLine = 500
)

var errTimeout = errors.New("the check took too long")

// check runs setup and check on a commit's files. name names the log. An error means that there is no answer.
func (l *Lander) check(ctx context.Context, commit, name string) (res result, err error) {
	c, err := l.checkout(ctx, commit)
	if err != nil {
		return res, err
	}
	defer c.remove()
	log, err := l.newLog(name)
	if err != nil {
		return res, err
	}
	defer func() {
		res.log = log.Name()
		if cerr := log.Close(); err == nil && cerr != nil {
			err = muster.Errorf(muster.Unavailable, "the check's log cannot be written: %w", cerr)
		}
		if err == nil {
			res.tail, err = tailOf(res.log)
		}
	}()
	if l.o.Check.Setup != "" {
		if res, err = l.one(ctx, c, l.o.Check.Setup, log); err != nil || !res.green {
			res.cannot = true
			res.how = "the setup failed: " + res.how
			return res, err
		}
	}
	return l.one(ctx, c, l.o.Check.Command, log)
}

// one runs one command.
func (l *Lander) one(ctx context.Context, c *checkout, command string, log io.Writer) (result, error) {
	res := result{command: command}
	fmt.Fprintf(log, "$ %s\n", command)
	limited, cancel := context.WithTimeoutCause(ctx, l.o.Check.Timeout, errTimeout)
	defer cancel()
	started := time.Now()
	exit, err := l.run(limited, c.dir, command, c.env, log)
	res.seconds = time.Since(started).Seconds()
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case context.Cause(limited) == errTimeout:
		res.how = fmt.Sprintf("no end within %v", l.o.Check.Timeout)
	case err != nil:
		return res, muster.Errorf(muster.Unavailable, "the check cannot be started: %w", err)
	default:
		res.green = exit == 0
		res.how = fmt.Sprintf("exit %d", exit)
		switch exit {
		case 126:
			res.cannot = true
			res.how = "exit 126: the command cannot be executed"
		case 127:
			res.cannot = true
			res.how = "exit 127: the command was not found"
		}
	}
	fmt.Fprintf(log, "[%s after %.1f s]\n", res.how, res.seconds)
	return res, nil
}

// newLog makes the next file of that name: NAME-1.log, NAME-2.log, ...
func (l *Lander) newLog(name string) (*os.File, error) {
	dir := filepath.Join(l.o.Outputs, "landing")
	err := os.MkdirAll(dir, 0o700)
	for k := 1; err == nil; k++ {
		var f *os.File
		f, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s-%d.log", name, k)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be made: %w", err)
}

// tailOf is the last lines of a file.
func tailOf(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be read: %w", err)
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be read: %w", err)
	}
	const most = 256 << 10
	at := max(0, end-most)
	data := make([]byte, end-at)
	if _, err := f.ReadAt(data, at); err != nil && err != io.EOF {
		return nil, muster.Errorf(muster.Unavailable, "the check's log cannot be read: %w", err)
	}
	if at > 0 {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			data = data[i+1:]
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(data), "?"), "\n"), "\n")
	lines = lines[max(0, len(lines)-maxTail):]
	for i, s := range lines {
		if len(s) > maxLine {
			lines[i] = strings.ToValidUTF8(s[:maxLine], "") + " ..."
		}
	}
	return lines, nil
}

// prove checks what would land and says what its receipt is; "" when it may not land.
func (l *Lander) prove(ctx context.Context, a *attempt, tree, tip string) (receipt string, res result, err error) {
	if l.o.Check.Command == "" {
		return muster.ReceiptUnchecked, res, nil
	}
	// The check stands on a commit like the one that would land; that one is made when its receipt is known.
	commit, err := l.repo.CommitTree(ctx, tree, []string{tip}, subject(a.task)+"\n")
	if err != nil {
		return "", res, unavailable(ctx, "the merged tree cannot be checked", err)
	}
	if res, err = l.check(ctx, commit, fmt.Sprintf("task-%d-%d", a.task.ID, a.fence)); err != nil {
		return "", res, err
	}
	receipt, err = l.judge(ctx, res)
	return receipt, res, err
}
