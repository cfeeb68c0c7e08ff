package landing

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	log     string   // the path of what it printed
	tail    []string // its last lines
}

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
		res.log, res.tail = log.file.Name(), log.lines()
		if cerr := log.close(); err == nil {
			err = cerr
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
