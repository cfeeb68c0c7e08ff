package file

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
		require.NoError(t, did(l.Append(t.Context(), muster.StreamSpend, muster.Anywhere, line(1)))) // no part of that
		unlock()
		all.Wait()
		if n := syncs.Load() - before; n != 2 {
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
			require.NoError(t, s.Inbox().Put(t.Context(), "bob", muster.Message{From: "eve"})) // and to him alone
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
		for _, fails := range []error{nil, io.ErrShortWrite} { // for both
			file.Reset()
			write := func(lines []byte) (muster.Pos, error) {
				_, err := file.Write(lines)
				return muster.Pos(file.Len()), cmp.Or(err, fails)
			}
			var first sync.WaitGroup
			first.Go(func() {
				if end, err := g.append(t.Context(), "f", []byte("one\n"), heldByOthers, write); end != 4 ||
					!errors.Is(err, fails) {
					t.Errorf("the first ends at %d, %v", end, err)
				}
			})
			synctest.Wait()
			if end, err := g.append(t.Context(), "f", []byte("two\n"), free, write); end != 8 ||
				!errors.Is(err, fails) {
				t.Errorf("the second ends at %d, %v", end, err)
			}
			first.Wait()
			if file.String() != "one\ntwo\n" {
				t.Errorf("the file has %q", file.String())
			}
		}
	})
}

// Parts are written together up to maxGroup, and a larger one alone.
func TestGroupsAreBounded(t *testing.T) {
	g := &groups{waiting: map[string][]*groupPart{}}
	for _, size := range []int{maxGroup / 2, maxGroup / 2, 1, 2 * maxGroup, 1} {
		g.waiting["f"] = append(g.waiting["f"], &groupPart{lines: make([]byte, size)})
	}
	var got []int
	for len(g.waiting) > 0 {
		got = append(got, len(g.take("f")))
	}
	if !slices.Equal(got, []int{2, 1, 1, 1}) {
		t.Errorf("the groups have %v parts", got)
	}
}

// Who writes for others can be cancelled while it waits for the end of a line that another program has begun. The mail of
// the others is written nevertheless, and so is its own, since both are one write. The other program ends its line.
func TestTheWriterOfAGroupIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simfs.New()
		require.NoError(t, errors.Join(sim.Mkdir("/r", 0o700), sim.Mkdir("/r/.team", 0o700), sim.Mkdir("/r/.team/inbox", 0o700)))
		live, err := sim.OpenFile("/r/.team/inbox/alice.jsonl", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		defer live.Close()
		require.NoError(t, did(live.Write([]byte(`{"from":"carol",`))))
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
		require.NoError(t, did(live.Write([]byte(`"content":"hi"}`+"\n"))))
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		mails, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
		if err != nil || len(mails) != 1+len(errs) || mails[0].Content != "hi" {
			t.Errorf("the mails are %v, %v", mails, err)
		}
	})
}

// Another program writes the document while the new content is staged: the Put is stale, and leaves no file behind.
func TestAnOvertakenPutLeavesNoFile(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".tasks", "task_1.json")
	at := simfs.Kind("")
	s, err := OpenOn(durable.New(simfs.Tap{FS: durable.OS{}, Ask: func(k simfs.Kind, name string) error {
		if k == at && filepath.Dir(name) == filepath.Dir(path) {
			at = ""
			return os.WriteFile(path, []byte("{}"), 0o600)
		}
		return nil
	}}), root)
	require.NoError(t, err)
	defer s.Close()
	tasks := s.Table(muster.TableTasks)
	rev, err := tasks.Put(t.Context(), "1", []byte(`{"n":1}`), muster.None)
	require.NoError(t, err)
	for step, rev := range []muster.Rev{rev, muster.None} { // a replacement, and a creation at its very end
		at = []simfs.Kind{simfs.Write, simfs.Link}[step]
		if _, err := tasks.Put(t.Context(), "1", []byte(`{"n":2}`), rev); !errors.Is(err, muster.ErrStale) || at != "" {
			t.Errorf("put with %v", err)
		}
		if names, err := filepath.Glob(filepath.Dir(path) + "/*"); err != nil || len(names) != 1 {
			t.Errorf("there is %v, %v", names, err)
		}
		require.NoError(t, os.Remove(path))
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

// A Drop hints at mail that came since the look, and the cleaning at late mail: their own hints may have been taken.
func TestADropTellsOfMailThatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := disk(t, new(atomic.Int64))
		s.watch.pollEvery = time.Hour
		inbox := s.Inbox()
		watch := inbox.Watch(t.Context(), "alice")
		put := func(text string) {
			require.NoError(t, inbox.Put(t.Context(), "alice", muster.Message{From: "bob", Content: text}))
		}
		put("one")
		_, end, err := inbox.Peek(t.Context(), "alice", 0, 10)
		require.NoError(t, err)
		put("two")
		<-watch
		for n := range 2 { // the file is moved, and then the position is not in the live one
			require.NoError(t, inbox.Drop(t.Context(), "alice", end))
			select {
			case <-watch:
			default:
				t.Errorf("after Drop %d there is no hint", n+1)
			}
			put("six")
			<-watch
		}
		mails, end, err := inbox.Peek(t.Context(), "alice", 0, 10)
		require.NoError(t, errors.Join(err, inbox.Drop(t.Context(), "alice", end)))
		if len(mails) != 3 || mails[0].Content != "two" {
			t.Errorf("the mails are %+v", mails)
		}
		b, err := s.boxes.box(t.Context(), "alice")
		require.NoError(t, err)
		f, err := s.fs.OpenFile(b.segment(placeOf(end).gen, placeOf(end).at), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, did(f.Write([]byte(`{"from":"zoe"}`+"\n"))))
		hinted(t, watch, "late mail")
	})
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

// A Drop between Peek's list of the files and its look into them mixes up no two moments.
func TestADropUnderAPeek(t *testing.T) {
	root := t.TempDir()
	other := opened(t, root).Inbox()
	put := func(text string) {
		require.NoError(t, other.Put(t.Context(), "alice", muster.Message{From: "bob", Content: text}))
	}
	put("one")
	_, end, err := other.Peek(t.Context(), "alice", 0, 10)
	require.NoError(t, err)
	s, err := OpenOn(durable.New(&atStat{path: filepath.Join(root, ".team", "inbox", "alice.jsonl"), act: func() {
		require.NoError(t, other.Drop(t.Context(), "alice", end))
		put("two")
	}}), root)
	require.NoError(t, err)
	defer s.Close()
	got, at, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
	if _, want, _ := other.Peek(t.Context(), "alice", 0, 10); err != nil || len(got) != 1 || at != want {
		t.Errorf("%+v up to %d, not to %d, %v", got, at, want, err)
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
		_, leaseErr := s.Leases().Acquire(t.Context(), "host-1")
		if said := fmt.Sprint(err, leaseErr); strings.Count(said, "locks do not work") != 2 {
			t.Errorf("put and acquired with %s", said)
		}
	}
}
