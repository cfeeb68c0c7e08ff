package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
)

// disk is a simulated disk with a repository, on which syncs are counted.
func disk(t *testing.T, syncs *atomic.Int64) *Store {
	t.Helper()
	sim := simfs.New()
	require.NoError(t, sim.Mkdir("/r", 0o700))
	s, err := OpenOn(durable.New(simfs.Tap{FS: sim, Ask: func(k simfs.Kind, _ string) error {
		if k == simfs.Sync {
			syncs.Add(1)
		}
		return nil
	}}), "/r")
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// What many goroutines append while the file is locked goes out in one sync, and each one's place is that of its own
// line.
func TestAppendsShareASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int64
		s := disk(t, &syncs)
		l := logs{s}
		first, err := l.Append(t.Context(), muster.StreamEvents, muster.Anywhere, line(0))
		require.NoError(t, err)
		unlock, err := l.lock(t.Context(), muster.StreamEvents)
		require.NoError(t, err)
		before := syncs.Load()
		places := make([]muster.Pos, 50)
		var all sync.WaitGroup
		for n := range places {
			all.Go(func() {
				var err error
				if places[n], err = l.Append(t.Context(), muster.StreamEvents, muster.Anywhere, line(n)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		unlock()
		all.Wait()
		if n := syncs.Load() - before; n != 1 {
			t.Errorf("%d syncs", n)
		}
		got := map[muster.Pos]string{}
		for r, err := range l.Read(t.Context(), muster.StreamEvents, first) {
			require.NoError(t, err)
			got[r.Pos] = string(r.Data)
		}
		for n, at := range places {
			if got[at] != string(line(n)) {
				t.Errorf("at %d stands %q", at, got[at])
			}
		}
	})
}

// One whose context ends before the write is not written; the others are, whoever was first.
func TestOneLeavesAGroup(t *testing.T) {
	for left := range 3 {
		synctest.Test(t, func(t *testing.T) {
			var syncs atomic.Int64
			s := disk(t, &syncs)
			b, err := s.boxes.box(t.Context(), "alice")
			require.NoError(t, err)
			unlock, err := b.lock(t.Context())
			require.NoError(t, err)
			errs := make([]error, 3)
			ctxs := []context.Context{t.Context(), t.Context(), t.Context()}
			ctx, cancel := context.WithCancel(t.Context())
			ctxs[left] = ctx
			var all sync.WaitGroup
			for n := range errs {
				all.Go(func() {
					errs[n] = s.Inbox().Put(ctxs[n], "alice",
						muster.Message{ID: muster.MessageID(fmt.Sprint("m", n)), From: "bob",
							Content: strings.Repeat("x", n)})
				})
				synctest.Wait()
			}
			cancel()
			synctest.Wait()
			unlock()
			all.Wait()
			mails, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
			if err != nil || len(mails) != 2 {
				t.Errorf("when %d leaves, there are %v, %v", left, mails, err)
			}
			for n, err := range errs {
				if n == left && !errors.Is(err, context.Canceled) || n != left && err != nil {
					t.Errorf("when %d leaves, %d gets %v", left, n, err)
				}
			}
		})
	}
}

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
		require.NoError(t, errors.Join(sim.Mkdir("/r", 0o700), sim.Mkdir("/r/.team", 0o700), sim.Mkdir("/r/.team/inbox", 0o700)))
		live, err := sim.OpenFile("/r/.team/inbox/alice.jsonl", os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = live.Write([]byte(`{"from":"carol",`))
		require.NoError(t, errors.Join(err, live.Close()))
		s, err := OpenOn(durable.New(sim), "/r")
		require.NoError(t, err)
		defer s.Close()
		b, err := s.boxes.box(t.Context(), "alice")
		require.NoError(t, err)
		unlock, err := b.lock(t.Context())
		require.NoError(t, err)
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
		require.NoError(t, errors.Join(errs...))
		mails, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
		if err != nil || len(mails) != len(errs) {
			t.Errorf("the mails are %v, %v", mails, err)
		}
	})
}

// Another program writes the document while the new content is staged: the Put is stale, and leaves no file behind.
func TestAnOvertakenPutLeavesNoFile(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".tasks", "task_1.json")
	overtakes := false
	s, err := OpenOn(durable.New(simfs.Tap{FS: durable.OS{}, Ask: func(k simfs.Kind, name string) error {
		if overtakes && k == simfs.Write && filepath.Dir(name) == filepath.Dir(path) {
			overtakes = false
			return os.WriteFile(path, []byte("{}"), 0o600)
		}
		return nil
	}}), root)
	require.NoError(t, err)
	defer s.Close()
	tasks := s.Table(muster.TableTasks)
	rev, err := tasks.Put(t.Context(), "1", []byte(`{"n":1}`), muster.None)
	require.NoError(t, err)
	overtakes = true
	if _, err := tasks.Put(t.Context(), "1", []byte(`{"n":2}`), rev); !errors.Is(err, muster.ErrStale) || overtakes {
		t.Errorf("put with %v", err)
	}
	if names, err := filepath.Glob(filepath.Dir(path) + "/*"); err != nil || len(names) != 1 {
		t.Errorf("there is %v, %v", names, err)
	}
}

// A cleaning that is cut off before the segment is empty, or before it has its new name, delivers nothing twice, and what
// a late program then adds once.
func TestACleaningThatIsCutOff(t *testing.T) {
	cleaningCutOff(t, simfs.Truncate, ".jsonl")
	cleaningCutOff(t, simfs.Rename, "-0.jsonl")
}

func cleaningCutOff(t *testing.T, kind simfs.Kind, suffix string) {
	t.Helper()
	root := t.TempDir()
	s, err := OpenOn(durable.New(simfs.Tap{FS: durable.OS{}, Ask: func(k simfs.Kind, name string) error {
		if k == kind && strings.Contains(name, "alice.segments") && strings.HasSuffix(name, suffix) {
			return errors.New("cut off")
		}
		return nil
	}}), root)
	require.NoError(t, err)
	defer s.Close()
	s.boxes.grace = 0 // the Drop cleans
	inbox := s.Inbox()
	require.NoError(t, inbox.Put(t.Context(), "alice", muster.Message{From: "bob", Content: "x"}))
	_, end, err := inbox.Peek(t.Context(), "alice", 0, 10)
	require.NoError(t, err)
	if err := inbox.Drop(t.Context(), "alice", end); err == nil {
		t.Error("the cleaning was not cut off")
	}
	if mails, _, err := inbox.Peek(t.Context(), "alice", 0, 10); err != nil || len(mails) != 0 {
		t.Errorf("it is delivered again: %+v, %v", mails, err)
	}
	segments, err := filepath.Glob(filepath.Join(root, ".team", "inbox", "alice.segments", "*"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("the segments are %v, %v", segments, err)
	}
	f, err := os.OpenFile(segments[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, did(f.WriteString(`{"from":"bob","content":"late"}`+"\n")))
	require.NoError(t, f.Close())
	if mails, _, err := inbox.Peek(t.Context(), "alice", 0, 10); err != nil || len(mails) != 1 {
		t.Errorf("after the late one there is %+v, %v", mails, err)
	}
}

// Mail that comes between a look and the Drop is told of: its own hint may have been taken for that of the first one.
func TestADropTellsOfMailThatCameMeanwhile(t *testing.T) {
	s := opened(t, t.TempDir())
	inbox := s.Inbox()
	put := func(text string) {
		require.NoError(t, inbox.Put(t.Context(), "alice", muster.Message{From: "bob", Content: text}))
	}
	put("one")
	_, end, err := inbox.Peek(t.Context(), "alice", 0, 10)
	require.NoError(t, err)
	put("two")
	b, err := s.boxes.box(t.Context(), "alice")
	require.NoError(t, err)
	if pending, err := b.drop(placeOf(end)); !pending || err != nil {
		t.Errorf("mail is pending: %t, %v", pending, err)
	}
}

// What stands in a segment where mail should is kept until it is set aside, whichever process does it, and then goes.
func TestWhatIsSetAsideIsCleaned(t *testing.T) {
	root := t.TempDir()
	a, b := opened(t, root), opened(t, root)
	b.boxes.grace = 0 // the Drop cleans
	of, err := b.boxes.box(t.Context(), "alice")
	require.NoError(t, err)
	peek := func(s *Store) muster.Pos {
		_, end, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
		require.NoError(t, err)
		return end
	}
	require.NoError(t, os.MkdirAll(of.segmentDir(), 0o700))
	require.NoError(t, os.WriteFile(of.segment(7, 0)+".bak", []byte("{\"from\":\"eve\"}\n"), 0o600)) // is none
	require.NoError(t, os.WriteFile(of.livePath(), []byte("{\"from\":\"bob\"}\nnonsense\n"), 0o600))
	peek(a)
	require.NoError(t, b.Inbox().Drop(t.Context(), "alice", peek(b)))
	require.NoError(t, os.WriteFile(of.segment(1, 0), []byte(`{"from":`), 0o600)) // a late program has died
	require.NoError(t, did(of.clean()))
	peek(b)
	require.NoError(t, did(of.clean()))
	fi, err := os.Stat(of.segment(1, 0))
	require.NoError(t, err)
	aside, err := os.ReadFile(filepath.Join(a.dir.Inbox(), "alice.rejected.jsonl"))
	require.NoError(t, err)
	if n := bytes.Count(aside, []byte("\n")); fi.Size() != 0 || n != 2 {
		t.Errorf("the segment has %d bytes, and %d lines were set aside", fi.Size(), n)
	}
}

// lax is a file system whose locks exclude nobody.
type lax struct{ durable.OS }

func (l lax) TryLock(name string, _ durable.LockMode) (durable.Locked, error) {
	if f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600); err == nil { // a shared lock makes no file
		_ = f.Close()
	}
	return l.OS.TryLock(name, durable.Shared)
}

// Where locks exclude nobody, nothing is written, however often one tries.
func TestLocksThatExcludeNobody(t *testing.T) {
	s, err := OpenOn(durable.New(lax{}), t.TempDir())
	require.NoError(t, err)
	defer s.Close()
	for range 2 {
		_, err := s.Table(muster.TableTasks).Put(t.Context(), "1", []byte("{}"), muster.None)
		if err == nil || !strings.Contains(err.Error(), "locks do not work") {
			t.Errorf("put with %v", err)
		}
	}
}
