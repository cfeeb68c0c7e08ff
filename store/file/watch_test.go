package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
)

func opened(t testing.TB, root string) *Store {
	t.Helper()
	s, err := Open(root)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, tab muster.Table, key string, at muster.Rev) muster.Rev {
	t.Helper()
	rev, err := tab.Put(context.Background(), key, fmt.Appendf(nil, `{"now":%d}`, time.Now().UnixNano()), at)
	require.NoError(t, err)
	return rev
}

func hinted(t *testing.T, w <-chan struct{}, after string) {
	t.Helper()
	select {
	case <-w:
	case <-time.After(time.Minute):
		t.Fatalf("no hint after %s", after)
	}
}

// Directories are made, removed and made again under a watch that was there first. No sweep comes in this test.
func TestWatchBeforeItsDirectory(t *testing.T) {
	root := t.TempDir()
	s, other := opened(t, root), opened(t, root)
	s.watch.sweepEvery, s.watch.pollEvery = time.Hour, time.Hour
	watch := s.Table(muster.TableMembers).Watch(t.Context())
	mail := s.Inbox().Watch(t.Context(), "alice")
	log := s.Log().Watch(t.Context(), muster.StreamTranscripts+"alice")
	for range 3 {
		put(t, other.Table(muster.TableMembers), "alice", muster.None)
		hinted(t, watch, "a document in a new directory")
		require.NoError(t, other.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "x"}))
		hinted(t, mail, "mail in a new directory")
		require.NoError(t, did(other.Log().Append(t.Context(), muster.StreamTranscripts+"alice", 0, []byte("{}"))))
		hinted(t, log, "a record in a new directory")
		if n, _ := changes(t, s.Table(muster.TableMembers), 0); n != 1 {
			t.Fatalf("%d documents", n)
		}
		for _, dir := range []string{".team", ".transcripts"} {
			require.NoError(t, os.RemoveAll(filepath.Join(root, dir)))
		}
		hinted(t, watch, "the removal")
		for left := 1; left > 0; { // the events of the removal come one by one
			if left, _ = changes(t, s.Table(muster.TableMembers), 0); left > 0 {
				hinted(t, watch, "the removal")
			}
		}
		for _, w := range []<-chan struct{}{watch, mail, log} {
			select {
			case <-w:
			default:
			}
		}
	}
}

// Where the system cannot watch, or stops to, a sweep takes its place.
func TestSweepWithoutTheSystem(t *testing.T) {
	for _, c := range []string{"none", "fails"} {
		t.Run(c, func(t *testing.T) {
			root := t.TempDir()
			s, other := opened(t, root), opened(t, root)
			s.PollEvery(20 * time.Millisecond)
			var opens atomic.Int32
			s.watch.open = func() (*fsnotify.Watcher, error) {
				if opens.Add(1) > 1 || c == "none" {
					return nil, errors.New("too many watches")
				}
				return fsnotify.NewWatcher()
			}
			rev := put(t, other.Table(muster.TableTasks), "1", muster.None)
			watch := s.Table(muster.TableTasks).Watch(t.Context())
			mail := s.Inbox().Watch(t.Context(), "alice")
			mark := all(t, s)
			if c == "fails" {
				if !s.watch.covers(s.dir.Tasks()) {
					t.Fatal("the system does not watch")
				}
				s.watch.mu.Lock()
				sys := s.watch.sys
				s.watch.mu.Unlock()
				sys.Close()
			}
			for i := range 3 {
				rev = put(t, other.Table(muster.TableTasks), "1", rev)
				for n := 0; n == 0; {
					if n, mark = changes(t, s.Table(muster.TableTasks), mark); n == 0 {
						hinted(t, watch, "another's put")
					}
				}
				require.NoError(t, other.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: fmt.Sprint(i)}))
				hinted(t, mail, "another's mail")
			}
			if c == "fails" && opens.Load() < 2 {
				t.Error("the watcher that has failed is not replaced")
			}
		})
	}
}

// Own changes give their hint at once: nothing else does in this test.
func TestOwnChangesHintAtOnce(t *testing.T) {
	s := opened(t, t.TempDir())
	s.watch.pollEvery = time.Hour
	s.watch.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("too many watches") }
	ctx := t.Context()
	tab := s.Table(muster.TableTasks)
	documents, mail, log := tab.Watch(ctx), s.Inbox().Watch(ctx, "alice"), s.Log().Watch(ctx, muster.StreamEvents)
	rev := put(t, tab, "1", muster.None)
	hinted(t, documents, "a put")
	require.NoError(t, tab.Delete(ctx, "1", rev))
	hinted(t, documents, "a deletion")
	require.NoError(t, s.Inbox().Put(ctx, "alice", muster.Message{From: "bob", Content: "x"}))
	hinted(t, mail, "a mail")
	require.NoError(t, did(s.Log().Append(ctx, muster.StreamEvents, 0, []byte("{}"))))
	hinted(t, log, "a record")
	mark := all(t, s)
	put(t, opened(t, string(s.dir)).Table(muster.TableTasks), "2", muster.None)
	if n, _ := changes(t, tab, mark); n != 1 { // those of others are looked for where the system watches nothing
		t.Errorf("%d changes", n)
	}
	s.Close()
	select {
	case <-tab.Watch(ctx):
	default:
		t.Error("there is a watch after the end")
	}
}

// coarse is a file system with a slow clock and nothing but it to tell contents of one size apart.
type coarse struct{ durable.OS }

type coarseInfo struct{ os.FileInfo }

func (i coarseInfo) ModTime() time.Time { return i.FileInfo.ModTime().Truncate(minStampAge / 2) }
func (i coarseInfo) Sys() any           { return nil }

func (c coarse) Stat(name string) (os.FileInfo, error) {
	fi, err := c.OS.Stat(name)
	return coarseInfo{fi}, err
}

type coarseFile struct{ durable.File }

func (f coarseFile) Stat() (os.FileInfo, error) {
	fi, err := f.File.Stat()
	return coarseInfo{fi}, err
}

func (c coarse) OpenFile(name string, flag int, perm os.FileMode) (durable.File, error) {
	f, err := c.OS.OpenFile(name, flag, perm)
	return coarseFile{f}, err
}

// A change within one tick of the file system's clock is seen.
func TestCoarseClock(t *testing.T) {
	root := t.TempDir()
	s, err := OpenOn(durable.New(coarse{}), root)
	require.NoError(t, err)
	defer s.Close()
	path := filepath.Join(root, ".tasks", "task_1.json")
	require.NoError(t, os.Mkdir(s.dir.Tasks(), 0o700))
	var mark muster.Mark
	for i := range 5 {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"n":%d}`, i), 0o600))
		n := 0
		for c, err := range s.Table(muster.TableTasks).Changes(t.Context(), mark) {
			if err != nil || string(c.Data) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Errorf("%s %v", c.Data, err)
			}
			n, mark = n+1, c.Mark
		}
		if n != 1 {
			t.Errorf("change %d was seen %d times", i, n)
		}
	}
}

// The sweep beside a healthy watcher, and the one after lost events, find what no event has told. What this process has
// read and written needs none.
func TestSweepBesideAHealthyWatcher(t *testing.T) {
	for _, overflows := range []bool{false, true} {
		root := t.TempDir()
		s := opened(t, root)
		tasks := s.Table(muster.TableTasks)
		put(t, tasks, "1", muster.None)
		s.watch.sweepEvery, s.watch.pollEvery = 300*time.Millisecond, time.Hour
		if overflows {
			s.watch.sweepEvery = time.Hour
		}
		watch := tasks.Watch(t.Context())
		mark := all(t, s)
		s.watch.mu.Lock()
		sys := s.watch.sys
		s.watch.mu.Unlock()
		require.NoError(t, sys.Remove(s.dir.Tasks())) // a watch that has gone deaf
		write(t, root, 1, `{"by":"hand"}`)
		if overflows {
			var read, written int
			require.NoError(t, did(tasks.Get(t.Context(), "1")))
			read, mark = changes(t, tasks, mark)
			put(t, tasks, "2", muster.None)
			if written, mark = changes(t, tasks, mark); read != 1 || written != 1 {
				t.Errorf("%d and %d changes", read, written)
			}
			write(t, root, 1, `{"by":"foot"}`)
			sys.Errors <- fsnotify.ErrEventOverflow
		}
		for n := 0; n == 0; {
			if n, mark = changes(t, tasks, mark); n == 0 {
				hinted(t, watch, "the sweep")
			}
		}
	}
}

// A directory that comes before the one above it is watched is watched. What the system has no room to watch is swept.
func TestWhatTheSystemRefusesToWatch(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, ".team")
	w := newWatcher(&atStat{path: root, act: func() { _ = os.Mkdir(dir, 0o700) }}, root, nil)
	sys, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	w.sys = sys
	w.attach(dir)
	_, isSweep := w.next(time.Now())
	require.NoError(t, sys.Close()) // it refuses from now on
	if w.attach(root); isSweep || w.watched[dir] != dir || w.watched[root] != "" {
		t.Errorf("watched is %v", w.watched)
	}
	if _, isSweep := w.next(time.Now()); !isSweep {
		t.Error("what is not watched is not swept")
	}
}

// changes returns how many documents of a table have changed after a mark, and the mark to go on from.
func changes(t testing.TB, tab muster.Table, since muster.Mark) (n int, mark muster.Mark) {
	t.Helper()
	mark = since
	for c, err := range tab.Changes(context.Background(), since) {
		require.NoError(t, err)
		n, mark = n+1, c.Mark
	}
	return n, mark
}

// all reads all tasks.
func all(t testing.TB, s *Store) muster.Mark {
	t.Helper()
	_, mark := changes(t, s.Table(muster.TableTasks), 0)
	return mark
}

// counting is the real file system, with a count of what is looked at.
type counting struct {
	durable.FS
	stats, opens, lists atomic.Int64
	closed, unlisted    atomic.Bool // no file can be opened, no directory listed
}

func (c *counting) Stat(name string) (os.FileInfo, error) {
	c.stats.Add(1)
	return c.FS.Stat(name)
}

func (c *counting) OpenFile(name string, flag int, perm os.FileMode) (durable.File, error) {
	if c.opens.Add(1); c.closed.Load() {
		return nil, syscall.EMFILE
	}
	return c.FS.OpenFile(name, flag, perm)
}

func (c *counting) Names(dir string) ([]string, error) {
	if c.lists.Add(1); c.unlisted.Load() {
		return nil, syscall.EMFILE
	}
	return c.FS.Names(dir)
}

func (c *counting) reset() { c.stats.Store(0); c.opens.Store(0); c.lists.Store(0) }

// With a watch, a change costs a look at one file; without one a look at each file's times; Get and Put never list.
func TestChangesLookAtLittle(t *testing.T) {
	const tasks = 300
	root := withTasks(t, tasks)
	disk := &counting{FS: durable.OS{}}
	s, err := OpenOn(durable.New(disk), root)
	require.NoError(t, err)
	defer s.Close()
	s.watch.open, s.watch.sweepEvery = fsnotify.NewWatcher, time.Hour
	letStampsAge(t)

	tab := s.Table(muster.TableTasks)
	d, err := tab.Get(t.Context(), "7")
	require.NoError(t, err)
	put(t, tab, "7", d.Rev)
	if n := disk.lists.Load(); n > 0 {
		t.Errorf("a Get and a Put listed %d directories", n)
	}
	all(t, s)
	letStampsAge(t)
	mark := all(t, s)

	disk.reset()
	if n, _ := changes(t, tab, mark); n > 0 {
		t.Errorf("%d changes of nothing", n)
	}
	if disk.lists.Load() != 1 || disk.stats.Load() > tasks+5 || disk.opens.Load() > 2 {
		t.Errorf("unwatched: %d lists, %d stats, %d opens", disk.lists.Load(), disk.stats.Load(), disk.opens.Load())
	}

	watch := tab.Watch(t.Context())
	mark = all(t, s)
	d, err = tab.Get(t.Context(), "7")
	require.NoError(t, err)
	disk.reset()
	put(t, tab, "7", d.Rev)
	hinted(t, watch, "a put")
	if n, _ := changes(t, tab, mark); n != 1 {
		t.Errorf("%d changes", n)
	}
	if disk.lists.Load() > 0 || disk.stats.Load() > 10 || disk.opens.Load() > 10 {
		t.Errorf("watched: %d lists, %d stats, %d opens", disk.lists.Load(), disk.stats.Load(), disk.opens.Load())
	}
}

// A change whose file cannot be opened once is found by the next look.
func TestAFailedLookForgetsNothing(t *testing.T) {
	root := withTasks(t, 2)
	disk := &counting{FS: durable.OS{}}
	s, err := OpenOn(durable.New(disk), root)
	require.NoError(t, err)
	defer s.Close()
	s.watch.open, s.watch.sweepEvery, s.watch.pollEvery = fsnotify.NewWatcher, time.Hour, time.Hour
	tab := s.Table(muster.TableTasks)
	watch := tab.Watch(t.Context())
	all(t, s)
	letStampsAge(t)
	mark := all(t, s)
	d, err := tab.Get(t.Context(), "2")
	require.NoError(t, err)
	put(t, opened(t, root).Table(muster.TableTasks), "2", d.Rev)
	hinted(t, watch, "a put of another process")
	disk.closed.Store(true)
	for _, err := range tab.Changes(t.Context(), mark) {
		if err == nil {
			t.Error("it was found in a file that cannot be opened")
		}
	}
	disk.closed.Store(false)
	if n, _ := changes(t, tab, mark); n != 1 {
		t.Errorf("%d changes", n)
	}
}

// A directory that cannot be listed is not an empty one, and a file that cannot be opened is not missing.
func TestWhatCannotBeOpenedIsNotMissing(t *testing.T) {
	disk := &counting{FS: durable.OS{}}
	s, err := OpenOn(durable.New(disk), withTasks(t, 1))
	require.NoError(t, err)
	defer s.Close()
	tasks, log := s.Table(muster.TableTasks), s.Log()
	for _, fails := range []*atomic.Bool{&disk.unlisted, &disk.closed} {
		fails.Store(true)
		_, _, err := s.Inbox().Peek(t.Context(), "alice", 0, 1)
		errs := []error{err, did(log.Append(t.Context(), muster.StreamEvents, muster.Anywhere, line(1))),
			did(log.Tail(t.Context(), muster.StreamEvents, 1))}
		for _, err := range log.Read(t.Context(), muster.StreamEvents, 0) {
			errs = append(errs, err)
		}
		for _, err := range tasks.Changes(t.Context(), 0) {
			errs = append(errs, err)
		}
		if disk.closed.Load() {
			errs = append(errs, did(tasks.Put(t.Context(), "1", line(1), "other")), did(tasks.Get(t.Context(), "1")))
		}
		for _, err := range errs {
			if !errors.Is(err, muster.ErrUnavailable) || len(errs) < 5 {
				t.Errorf("the errors are %v, one %v", errs, err)
			}
		}
		fails.Store(false)
	}
}

// A document that changes, and changes back, while a listing is read is in the listing all the same.
func TestAListingMissesNoDocument(t *testing.T) {
	root := withTasks(t, 3)
	letStampsAge(t)
	s := opened(t, root)
	s.Log().Watch(t.Context(), muster.StreamClaims)
	temp := filepath.Join(root, ".tasks", durable.TemporaryName("task_1.json"))
	notes := filepath.Join(root, ".tasks", "notes.txt")
	require.NoError(t, errors.Join(os.WriteFile(temp, nil, 0o600), os.WriteFile(notes, nil, 0o600)))
	all(t, s)
	old := time.Now().Add(-2 * maxTemporaryAge)
	require.NoError(t, errors.Join(os.Chtimes(temp, old, old), os.Chtimes(notes, old, old))) // a young one stays
	all(t, s)
	require.NoError(t, did(os.Stat(notes))) // it is not ours
	if _, err := os.Stat(temp); err == nil {
		t.Error("the temporary file of a dead process is there")
	}
	var mark muster.Mark
	var got []string
	for c, err := range s.Table(muster.TableTasks).Changes(t.Context(), 0) { // reads each file when it comes to it
		require.NoError(t, err)
		mark = c.Mark
		switch got = append(got, c.Key); c.Key {
		case "1":
			write(t, root, 2, `{"n":1}`)
		case "3":
			write(t, root, 2, `{"n":0}`)
		}
	}
	if !slices.Equal(got, []string{"1", "3", "2"}) {
		t.Errorf("listed was %q", got)
	}
	write(t, root, 1, `{"n":2}`)
	if n, _ := changes(t, s.Table(muster.TableTasks), mark); n != 1 { // who watches a stream watches no documents
		t.Errorf("%d changes", n)
	}
}

// Many inboxes are one directory to the system, and no goroutine each. Without a watch the watcher ends.
func TestManyWatches(t *testing.T) {
	s := opened(t, t.TempDir())
	require.NoError(t, os.MkdirAll(s.dir.Inbox(), 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := runtime.NumGoroutine()
	watches := make([]<-chan struct{}, 100)
	for i := range watches {
		watches[i] = s.Inbox().Watch(ctx, muster.Name("m"+strconv.Itoa(i)))
	}
	if n, dirs := runtime.NumGoroutine()-before, len(s.watch.sys.WatchList()); n > 5 || dirs != 1 {
		t.Errorf("%d goroutines, and the system watches %d directories", n, dirs)
	}
	require.NoError(t, s.Inbox().Put(ctx, "m47", muster.Message{From: "bob", Content: "x"}))
	hinted(t, watches[47], "a mail")
	s.watch.sweep(s.watch.stop, nil)
	for i, w := range watches {
		if i != 47 && len(w) > 0 {
			t.Errorf("a mail to another and a sweep woke %d", i)
		}
	}
	cancel()
	for _, w := range watches {
		for range w {
		}
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	if s.watch.stop != nil || s.watch.sys != nil || len(s.watch.topics) > 0 {
		t.Error("the watcher goes on without a watch")
	}
}

// What is delivered is removed after the grace, by the timer or by a later process; what is not stays.
func TestSegmentsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := disk(t, new(atomic.Int64))
		deliver := func() {
			t.Helper()
			require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "x"}))
			ms, end, err := s.Inbox().Peek(t.Context(), "alice", 0, 10)
			if err != nil || len(ms) != 1 {
				t.Fatal(ms, err)
			}
			require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
		}
		look := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			b, err := s.boxes.box(t.Context(), "alice")
			require.NoError(t, err)
			segs, err := b.segments()
			require.NoError(t, err)
			bytes := int64(0)
			for _, p := range segs {
				bytes += p.size
			}
			if isClean := len(segs) == 1 && bytes == 0; isClean != want || len(segs) == 0 {
				t.Errorf("%s there are %d segments with %d bytes", when, len(segs), bytes)
			}
		}
		for range 3 {
			deliver()
		}
		look("at once", false)
		time.Sleep(segmentGrace - time.Second)
		look("within the grace", false)
		time.Sleep(2 * time.Second)
		look("after the grace", true)
		deliver()
		s.Close()
		time.Sleep(2 * segmentGrace)
		look("after the end", false)
		var err error
		s, err = OpenOn(s.files, "/r")
		require.NoError(t, err)
		defer s.Close()
		deliver()
		look("in another process", false)
		time.Sleep(segmentGrace + time.Second)
		look("in another process, after the grace", true)
		deliver()
		unlock, err := s.lock(t.Context(), "inbox", "alice")
		require.NoError(t, err)
		time.Sleep(3 * segmentGrace)
		unlock()
		time.Sleep(3 * segmentGrace)
		look("after somebody has locked the inbox", true)
	})
}

// letStampsAge waits until the change times of all files are old enough to be trusted. Nothing can set them, and the
// file system's clock is not that of a synctest bubble.
func letStampsAge(t testing.TB) {
	t.Helper()
	begin := time.Now()
	wait.For(t, "the stamps of all files are old", func() bool { return time.Since(begin) > minStampAge+20*time.Millisecond })
}

// A loop that was stopped while it was at work leaves the events to the loop that has taken over since. It would drop
// what it took: nobody is told of an event after which the loop ends.
func TestAStoppedLoopTakesNoEvents(t *testing.T) {
	w := newWatcher(durable.OS{}, t.TempDir(), func(err error) { t.Error(err) })
	sys, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	defer sys.Close()
	const waiting = 50
	events := make(chan fsnotify.Event, waiting)
	for range waiting {
		events <- fsnotify.Event{Name: "x", Op: fsnotify.Write}
	}
	sys.Events = events
	stopped := make(chan struct{})
	close(stopped)
	w.sys, w.stop = sys, make(chan struct{}) // as the loop that runs now has them
	for range waiting {
		w.run(stopped)
	}
	if n := len(events); n != waiting {
		t.Errorf("%d events are left of %d", n, waiting)
	}
}

// atStat is the real file system, in which somebody else acts right before one file is looked at, or is first opened.
type atStat struct {
	durable.OS
	path string
	act  func()
}

func (f *atStat) Stat(name string) (os.FileInfo, error) {
	if name == f.path && f.act != nil {
		f.act()
	}
	return f.OS.Stat(name)
}

func (f *atStat) OpenFile(name string, flag int, perm os.FileMode) (durable.File, error) {
	if act := f.act; name == f.path && act != nil {
		f.act = nil
		act()
	}
	return f.OS.OpenFile(name, flag, perm)
}

// A sweep looks at files without the lock. When the store is closed meanwhile, the channels of the watches are closed,
// and the sweep must not send to them.
func TestASweepDuringTheEndTellsNobody(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "x.jsonl")
	disk := &atStat{path: file}
	w := newWatcher(disk, root, func(error) {})
	w.sweepEvery, w.pollEvery = time.Hour, time.Hour
	watch := w.subscribe(t.Context(), root, "x.jsonl", nil)
	require.NoError(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	w.mu.Lock()
	stop := w.stop
	w.mu.Unlock()
	disk.act = w.close
	w.sweep(stop, nil)
	if _, isOpen := <-watch; isOpen {
		t.Error("there was a hint after the end")
	}
}
