package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster/internal/durable"
)

// watcher turns what the system says of the state directories into hints: one for a store, started by the first watch
// and stopped with the last. Where the system cannot watch, or stops to, a sweep every few seconds takes its place;
// beside a healthy one a rare sweep catches what was missed.
type watcher struct {
	fs   durable.FS
	root string
	rare time.Duration // between two sweeps beside a healthy watcher
	poll time.Duration // between two sweeps without one
	open func() (*fsnotify.Watcher, error)

	failing func(err error) // is told why there is no watcher of the system's; nil: nobody is

	mu   sync.Mutex
	dirs map[string]*watchedDir
	n    int               // subscriptions
	sys  *fsnotify.Watcher // nil: there is none, or it has failed
	lost time.Time         // when it failed
	look time.Time         // when all directories are looked at after some of them came or went; zero: not
	stop chan struct{}     // ends the goroutine; nil: none runs
	done bool              // closed for good
}

// watchedDir is a directory that somebody watches.
type watchedDir struct {
	path   string
	topics map[string]*topic // by file name; "" is any file
	on     string            // what the system watches for it: path, or the nearest directory above it that exists
	is     fs.FileInfo       // path, when its watch was made
}

// topic is one file of a directory, or all of them, and who waits for it.
type topic struct {
	note func(file string) bool // told first; false: that file is none of ours
	subs map[chan struct{}]struct{}
	last stamp // of the one file, at the last sweep
}

func newWatcher(fs durable.FS, root string) *watcher {
	w := &watcher{fs: fs, root: root, rare: time.Minute, poll: 5 * time.Second, dirs: map[string]*watchedDir{}}
	w.open = func() (*fsnotify.Watcher, error) {
		if _, ok := fs.(durable.OS); !ok {
			return nil, errors.New("only the real file system can be watched")
		}
		return fsnotify.NewWatcher()
	}
	return w
}

// subscribe returns a channel that receives after changes of a file of dir, "" for any, until ctx ends.
func (w *watcher) subscribe(ctx context.Context, dir, file string, note func(string) bool) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done || ctx.Err() != nil {
		close(ch)
		return ch
	}
	w.start()
	d := w.dirs[dir]
	if d == nil {
		d = &watchedDir{path: dir, topics: map[string]*topic{}}
		w.dirs[dir] = d
		w.attach(d)
	}
	t := d.topics[file]
	if t == nil {
		t = &topic{note: note, subs: map[chan struct{}]struct{}{}}
		d.topics[file] = t
		t.last = w.stampOf(dir, file)
		if note != nil {
			note("") // whatever happened before this watch was not named
		}
	}
	t.subs[ch] = struct{}{}
	w.n++
	context.AfterFunc(ctx, func() { w.unsubscribe(dir, file, ch) })
	return ch
}

func (w *watcher) unsubscribe(dir, file string, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.dirs[dir]
	if d == nil || d.topics[file] == nil {
		return // the store was closed
	}
	t := d.topics[file]
	if _, ok := t.subs[ch]; !ok {
		return
	}
	delete(t.subs, ch)
	close(ch)
	w.n--
	if len(t.subs) == 0 {
		delete(d.topics, file)
	}
	if len(d.topics) == 0 {
		delete(w.dirs, dir)
		w.release(d.on)
	}
	if w.n == 0 {
		w.halt()
	}
}

// close ends all watches.
func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	for _, d := range w.dirs {
		for _, t := range d.topics {
			for ch := range t.subs {
				close(ch)
			}
		}
	}
	w.dirs, w.n = map[string]*watchedDir{}, 0
	w.halt()
}

// covers reports whether every change in dir is named by the watcher.
func (w *watcher) covers(dir string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.dirs[dir]
	return w.sys != nil && d != nil && d.on == dir && d.topics[""] != nil
}

// tell gives hints after a change of our own.
func (w *watcher) tell(dir, file string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.dirs[dir]; d != nil {
		if t := d.topics[file]; t != nil {
			t.hint()
		}
	}
}

// hint gives every subscriber a hint; one that has not taken the last one needs no other.
func (t *topic) hint() {
	for ch := range t.subs {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// start starts the goroutine if none runs. The lock is held, as in all that follow.
func (w *watcher) start() {
	if w.stop != nil {
		return
	}
	w.stop = make(chan struct{})
	w.reopen()
	go w.run(w.stop)
}

// reopen asks the system for a watcher; without one the sweeps do its work.
func (w *watcher) reopen() {
	sys, err := w.open()
	if err != nil {
		w.lost = time.Now()
		w.tellFailure(err)
		return
	}
	w.sys = sys
}

func (w *watcher) halt() {
	if w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
	w.fail()
}

// fail gives up the system's watcher.
func (w *watcher) fail() {
	if w.sys != nil {
		w.sys.Close()
		w.sys = nil
	}
	for _, d := range w.dirs {
		d.on, d.is = "", nil
	}
}

// attach lets the system watch d, or the nearest directory above it that exists, up to the repository's root.
func (w *watcher) attach(d *watchedDir) {
	if w.sys == nil {
		d.on, d.is = "", nil
		return
	}
	for {
		dir, fi := w.nearest(d.path)
		old, made := d.on, dir != "" && w.sys.Add(dir) == nil
		if d.on, d.is = dir, fi; !made {
			d.on, d.is = "", nil
		}
		if old != d.on {
			w.release(old)
		}
		// One that was made before this watch was not announced, and one that has just gone cannot be watched.
		if again, _ := w.nearest(d.path); again == dir {
			return
		}
	}
}

// nearest is the deepest directory on the way from the repository's root to path that exists.
func (w *watcher) nearest(path string) (string, fs.FileInfo) {
	for dir := path; len(dir) >= len(w.root); dir = filepath.Dir(dir) {
		if fi, err := w.fs.Stat(dir); err == nil {
			return dir, fi
		}
		if dir == w.root {
			break
		}
	}
	return "", nil
}

// release lets go of a directory that nobody needs any more.
func (w *watcher) release(dir string) {
	if dir == "" || w.sys == nil {
		return
	}
	for _, d := range w.dirs {
		if d.on == dir {
			return
		}
	}
	w.sys.Remove(dir)
}

// shaken is how long after directories came or went all are looked at: when they come and go quickly, the system's
// watcher may take a new one for the old one and keep silent.
const shaken = 100 * time.Millisecond

// run takes what the system says, and sweeps.
func (w *watcher) run(stop chan struct{}) {
	for next := time.Now().Add(w.interval()); ; {
		w.mu.Lock()
		if w.stop != stop {
			w.mu.Unlock()
			return
		}
		var events chan fsnotify.Event
		var errs chan error
		if w.sys != nil {
			events, errs = w.sys.Events, w.sys.Errors
		}
		until := next
		if !w.look.IsZero() && w.look.Before(next) {
			until = w.look
		}
		w.mu.Unlock()
		switch w.listen(stop, events, errs, until) {
		case stopped:
			return
		case changed:
		case missed:
			next = time.Now()
		case late:
		}
		if time.Now().Before(next) {
			w.verify(stop)
			continue
		}
		w.sweep(stop)
		next = time.Now().Add(w.interval())
	}
}

// interval is the time between two sweeps.
func (w *watcher) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sys == nil {
		return w.poll
	}
	for _, d := range w.dirs {
		if d.on == "" {
			return w.poll
		}
	}
	return w.rare
}

// verify looks whether the directories are still those that the system watches, some time after a change of them.
func (w *watcher) verify(stop chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != stop || w.look.IsZero() || time.Now().Before(w.look) {
		return
	}
	w.look = time.Time{}
	for _, d := range w.dirs {
		if w.check(d) {
			d.hintAll()
		}
	}
}

// Why listen came back.
type wakeup int

const (
	late    wakeup = iota // the time has come
	stopped               // the watcher has
	missed                // the system lost events, or itself
	changed               // directories came or went
)

// listen serves the system's events until a time.
func (w *watcher) listen(stop chan struct{}, events chan fsnotify.Event, errs chan error, until time.Time) wakeup {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	for {
		select {
		case <-stop:
			return stopped
		case e, ok := <-events:
			if !ok {
				w.failed(stop, errClosed)
				return missed
			}
			if w.event(e) {
				return changed
			}
		case err, ok := <-errs:
			if !ok {
				err = errClosed
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.tellFailure(err)
			} else {
				w.failed(stop, err)
			}
			return missed
		case <-t.C:
			return late
		}
	}
}

// errClosed is why a watcher has failed whose channels are closed.
var errClosed = errors.New("the system's watcher is closed")

// failed gives up the system's watcher because of err, unless the goroutine has been stopped.
func (w *watcher) failed(stop chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == stop {
		w.fail()
		w.lost = time.Now()
		w.tellFailure(err)
	}
}

// tellFailure tells whoever wants to know that the system does not say, or not all, what has changed.
func (w *watcher) tellFailure(err error) {
	if w.failing != nil {
		w.failing(err)
	}
}

// event hands an event to those whom it concerns. It reports whether a watched directory came or went.
func (w *watcher) event(e fsnotify.Event) (structural bool) {
	dir, name := filepath.Split(e.Name)
	dir = filepath.Clean(dir)
	if durable.Temporary(name) || e.Op == fsnotify.Chmod {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.dirs[dir]; d != nil && d.on == dir {
		if t := d.topics[name]; t != nil {
			t.hint()
		}
		if t := d.topics[""]; t != nil && t.note(name) {
			t.hint()
		}
	}
	gone := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	if !gone && !e.Has(fsnotify.Create) {
		return false
	}
	for _, d := range w.dirs {
		if !within(d.path, e.Name) {
			continue
		}
		structural = true
		if gone || d.on != d.path {
			w.attach(d)
			d.hintAll()
		}
	}
	if structural {
		w.look = time.Now().Add(shaken)
	}
	return structural
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// hintAll gives a hint to everybody who watches something in d.
func (d *watchedDir) hintAll() {
	for _, t := range d.topics {
		if t.note != nil {
			t.note("")
		}
		t.hint()
	}
}

// sweep looks for what no event has told: directories that are others now, files that are not as they were.
func (w *watcher) sweep(stop chan struct{}) {
	type one struct {
		dir, file string
		t         *topic
	}
	var files []one
	w.mu.Lock()
	if w.stop != stop {
		w.mu.Unlock()
		return
	}
	if w.sys == nil && time.Since(w.lost) >= w.poll {
		w.reopen()
	}
	for _, d := range w.dirs {
		w.check(d)
		for file, t := range d.topics {
			if file != "" {
				files = append(files, one{d.path, file, t})
				continue
			}
			t.note("")
			t.hint()
		}
	}
	w.mu.Unlock()
	for _, f := range files { // thousands of inboxes: not under the lock, and only who has something new is woken
		now := w.stampOf(f.dir, f.file)
		w.mu.Lock()
		if now != f.t.last || now == (stamp{}) && w.there(f.dir, f.file) {
			f.t.last = now
			f.t.hint()
		}
		w.mu.Unlock()
	}
}

// check attaches d again, and returns true, when it is not what the system watches any more.
func (w *watcher) check(d *watchedDir) bool {
	if d.on == d.path && d.is != nil {
		if fi, err := w.fs.Stat(d.path); err == nil && sameFile(fi, d.is) {
			return false
		}
		if w.sys != nil {
			w.sys.Remove(d.path)
		}
	}
	old := d.on
	w.attach(d)
	return d.on != old || d.on == d.path
}

// stampOf is the stamp of a file, zero when there is none or it is too young to be trusted.
func (w *watcher) stampOf(dir, file string) stamp {
	if file == "" {
		return stamp{}
	}
	fi, err := w.fs.Stat(filepath.Join(dir, file))
	if err != nil {
		return stamp{}
	}
	return stampOf(fi)
}

func (w *watcher) there(dir, file string) bool {
	_, err := w.fs.Stat(filepath.Join(dir, file))
	return err == nil
}

func sameFile(a, b fs.FileInfo) bool {
	x, _ := inode(a)
	y, _ := inode(b)
	return x == y
}
