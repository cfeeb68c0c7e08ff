package file

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster/internal/durable"
)

// lookEvery is the time between two looks at the stamps of what is watched. A change of which the system does not tell
// is noticed within this time. A look costs one stat for each directory and for each file with a watch of its own.
const lookEvery = 5 * time.Second

// watcher turns what the system reports of the state directories into hints. A store has one; the first watch starts
// it, and the last one stops it. Systems lose reports, so every few seconds a look at a few stamps finds what was
// missed. Where the system cannot watch, or stops to, a sweep takes the place of the look. Beside a healthy watcher a
// sweep is rare: it also finds what was written into a document in place, which changes no stamp of the directory. A
// hint only means that somebody should look, so one too many does no harm.
type watcher struct {
	fs         durable.FS
	root       string
	sweepEvery time.Duration // between two sweeps beside a healthy watcher
	pollEvery  time.Duration // between two sweeps without one, and two looks beside a healthy one
	open       func() (*fsnotify.Watcher, error)

	onFailure func(err error) // is called with the reason why the system does not watch

	mu     sync.Mutex
	topics map[topicKey]*topic
	// watched has what the system watches for each directory with a topic: the directory, or the nearest existing one
	// above it; "" if it watches none.
	watched map[string]string
	sys     *fsnotify.Watcher // nil: there is none, or it has failed
	lostAt  time.Time         // when it failed
	stop    chan struct{}     // ends the goroutine; nil: none runs
	done    bool              // closed for good
}

// topicKey names what somebody watches: a file of a directory, or any file of it if file is "".
type topicKey struct{ dir, file string }

// topic is one file of a directory, or all of them, and who waits for it.
type topic struct {
	// note is called first with the name of a file of the directory, or "" for all of them; if it returns false, the
	// file is none of ours. A topic of one file has no note.
	note func(file string) bool
	subs map[chan struct{}]struct{}
	// last is the stamp of the one file, or of the directory, at the last look.
	last stamp
}

// newWatcher returns a watcher of the state below root. It does nothing before the first subscription.
func newWatcher(fs durable.FS, root string, onFailure func(error)) *watcher {
	return &watcher{
		fs: fs, root: root, sweepEvery: time.Minute, pollEvery: lookEvery,
		onFailure: onFailure, topics: map[topicKey]*topic{}, watched: map[string]string{},
		open: func() (*fsnotify.Watcher, error) {
			if _, ok := fs.(durable.OS); !ok {
				return nil, errors.New("only the real file system can be watched")
			}
			return fsnotify.NewWatcher()
		},
	}
}

// PollEvery sets how often the store looks for changes of which the system does not tell; at first it is 5 seconds.
func (s *Store) PollEvery(pause time.Duration) {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	s.watch.pollEvery = pause
}

// subscribe returns a channel that receives after changes of a file of dir, or of any file if file is "", until ctx
// ends.
func (w *watcher) subscribe(ctx context.Context, dir, file string, note func(string) bool) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done || ctx.Err() != nil {
		return endedWatch()
	}
	if w.stop == nil {
		w.stop = make(chan struct{})
		w.lostAt = time.Time{}
		w.rewatch()
		go w.run(w.stop)
	}
	key := topicKey{dir, file}
	t := w.topics[key]
	if t == nil {
		t = &topic{note: note, subs: map[chan struct{}]struct{}{}}
		w.topics[key] = t
		if _, ok := w.watched[dir]; !ok {
			w.attach(dir)
		}
		// The directory is watched from here on. What changed before is found by the note, or shows in the stamp.
		t.last = stampAt(w.fs, filepath.Join(dir, file))
		if note != nil {
			note("") // whatever happened before this watch was not named
		}
	}
	ch := make(chan struct{}, 1)
	// The channel is registered under the lock under which hints are given, so a change after this call is never
	// missed.
	t.subs[ch] = struct{}{}
	context.AfterFunc(ctx, func() { w.unsubscribe(key, ch) })
	return ch
}

// endedWatch returns the channel of a watch that has ended, or of something that cannot exist.
func endedWatch() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

// unsubscribe ends one watch, and with the last one stops the loop. What the system watches for a directory without
// topics is dropped at the next sweep.
func (w *watcher) unsubscribe(key topicKey, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return // close has closed the channel
	}
	t := w.topics[key]
	delete(t.subs, ch)
	close(ch)
	if len(t.subs) == 0 {
		delete(w.topics, key)
	}
	if len(w.topics) == 0 {
		w.stopLoop()
	}
}

// close ends all watches.
func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	for _, t := range w.topics {
		for ch := range t.subs {
			close(ch)
		}
		clear(t.subs) // a sweep may still have the topic at hand
	}
	clear(w.topics)
	w.stopLoop()
}

// covers reports whether the watcher names every change in dir.
func (w *watcher) covers(dir string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watched[dir] == dir && w.topics[topicKey{dir, ""}] != nil
}

// notify gives hints after a change of this process.
func (w *watcher) notify(dir, file string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.topics[topicKey{dir, file}]; t != nil {
		t.hint()
	}
}

// hint gives every subscriber a hint. One that has not taken the last hint needs no other.
func (t *topic) hint() {
	for ch := range t.subs {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// stopLoop stops the goroutine and closes the system's watcher. As for all methods that follow, the caller holds the
// lock.
func (w *watcher) stopLoop() {
	if w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
	w.dropSystem()
}

// dropSystem gives up the system's watcher.
func (w *watcher) dropSystem() {
	if w.sys != nil {
		_ = w.sys.Close()
		w.sys = nil
	}
	clear(w.watched)
}

// attach lets the system watch dir, or the nearest directory above it that exists.
func (w *watcher) attach(dir string) {
	w.watched[dir] = ""
	for w.sys != nil {
		near := w.nearest(dir)
		if w.watched[dir] = near; near == "" || w.sys.Add(near) != nil {
			w.watched[dir] = ""
		}
		// One that was made before this watch was not announced, and one that has just gone cannot be watched.
		if w.nearest(dir) == near {
			return
		}
	}
}

// nearest returns the deepest directory that exists on the way from the repository's root to path.
func (w *watcher) nearest(path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if _, err := w.fs.Stat(dir); err == nil {
			return dir
		}
		if len(dir) <= len(w.root) {
			return ""
		}
	}
}
