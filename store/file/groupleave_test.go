package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/simfs"
)

// Whose lines another goroutine has written waits for no lock any more: another process may hold it for any time.
func TestWhatOthersHaveWrittenWaitsForNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{waiting: map[string][]*groupPart{}}
		heldByOthers := func(ctx context.Context) (func(), error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		free := func(context.Context) (func(), error) { return func() {}, nil }
		var file bytes.Buffer
		write := func(lines []byte) (muster.Pos, error) {
			_, err := file.Write(lines)
			return muster.Pos(file.Len()), err
		}
		var first sync.WaitGroup
		first.Go(func() {
			if end, err := g.append(t.Context(), "f", []byte("one\n"), heldByOthers, write); end != 4 || err != nil {
				t.Errorf("the first ends at %d, %v", end, err)
			}
		})
		synctest.Wait()
		if end, err := g.append(t.Context(), "f", []byte("two\n"), free, write); end != 8 || err != nil {
			t.Errorf("the second ends at %d, %v", end, err)
		}
		first.Wait()
		if file.String() != "one\ntwo\n" {
			t.Errorf("the file has %q", file.String())
		}
	})
}

// Who writes for others can be cancelled while it waits for the end of a line that another program has begun. The mail of
// the others is written nevertheless, and so is its own, since both are one write.
func TestTheWriterOfAGroupIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simfs.New()
		must(t, errors.Join(sim.Mkdir("/r", 0o700), sim.Mkdir("/r/.team", 0o700), sim.Mkdir("/r/.team/inbox", 0o700)))
		live, err := sim.OpenFile("/r/.team/inbox/alice.jsonl", os.O_CREATE|os.O_WRONLY, 0o600)
		must(t, err)
		_, err = live.Write([]byte(`{"from":"carol",`))
		must(t, errors.Join(err, live.Close()))
		s, err := OpenOn(durable.New(sim), "/r")
		must(t, err)
		defer s.Close()
		b, err := s.boxes.box(t.Context(), "alice")
		must(t, err)
		unlock, err := b.lock(t.Context())
		must(t, err)
		writer, cancel := context.WithCancel(t.Context())
		defer cancel()
		errs := make([]error, 3)
		var all sync.WaitGroup
		for n := range errs {
			ctx := t.Context()
			if n == 0 { // who waits first for the lock gets it first
				ctx = writer
			}
			all.Go(func() {
				errs[n] = s.Inbox().Put(ctx, "alice", muster.Message{ID: muster.MessageID(fmt.Sprint(n)), From: "bob"})
			})
			synctest.Wait()
		}
		unlock()
		synctest.Wait()
		cancel()
		all.Wait()
		must(t, errors.Join(errs...))
		mails, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
		if err != nil || len(mails) != len(errs) {
			t.Errorf("the mails are %v, %v", mails, err)
		}
	})
}
