package file

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster/internal/durable"
)

// debounce is how long after directories came or went all of them are checked. When they come and go quickly, the
// system's watcher may mistake a new one for the old one and keep silent.
const debounce = 100 * time.Millisecond

// run handles the system's events and sweeps, until stop is closed.
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
		if !w.verifyAt.IsZero() && w.verifyAt.Before(next) {
			until = w.verifyAt
		}
		w.mu.Unlock()
		switch w.listen(stop, events, errs, until) {
		case watchStopped:
			return
		case dirsChanged:
		case eventsLost:
			next = time.Now()
		case timeReached:
		}
		if time.Now().Before(next) {
			w.verify(stop)
			continue
		}
		w.sweep(stop)
		next = time.Now().Add(w.interval())
	}
}

// interval returns the time between two sweeps.
func (w *watcher) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sys == nil {
		return w.sweepAlone
	}
	for _, d := range w.dirs {
		if d.watched == "" {
			return w.sweepAlone
		}
	}
	return w.sweepHealthy
}

// verify checks whether the directories are still those that the system watches, some time after one of them came or
// went.
func (w *watcher) verify(stop chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != stop || w.verifyAt.IsZero() || time.Now().Before(w.verifyAt) {
		return
	}
	w.verifyAt = time.Time{}
	for _, d := range w.dirs {
		if w.reattach(d) {
			d.hintAll()
		}
	}
}

// wakeup says why listen returned.
type wakeup int

const (
	timeReached  wakeup = iota // the time has come
	watchStopped               // the watcher has
	eventsLost                 // the system lost events, or itself
	dirsChanged                // directories came or went
)

// listen handles the system's events until a time.
func (w *watcher) listen(stop chan struct{}, events chan fsnotify.Event, errs chan error, until time.Time) wakeup {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	for {
		select {
		case <-stop:
			return watchStopped
		case e, ok := <-events:
			if !ok {
				w.onSystemFailure(stop, errWatcherClosed)
				return eventsLost
			}
			if w.event(e) {
				return dirsChanged
			}
		case err, ok := <-errs:
			if !ok {
				err = errWatcherClosed
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.reportFailure(err)
			} else {
				w.onSystemFailure(stop, err)
			}
			return eventsLost
		case <-t.C:
			return timeReached
		}
	}
}

// errWatcherClosed is the reason of a failure when the channels of the system's watcher are closed.
var errWatcherClosed = errors.New("the system's watcher is closed")

// onSystemFailure falls back to sweeps because of err.
func (w *watcher) onSystemFailure(stop chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == stop {
		w.dropSystem()
		w.lostAt = time.Now()
		w.reportFailure(err)
	}
}

// reportFailure reports that the system does not tell of all changes.
func (w *watcher) reportFailure(err error) {
	if w.onFailure != nil {
		w.onFailure(err)
	}
}

// event gives hints to those whom an event concerns. It reports whether a watched directory came or went.
func (w *watcher) event(e fsnotify.Event) (structural bool) {
	dir, name := filepath.Split(e.Name)
	dir = filepath.Clean(dir)
	if durable.IsTemporary(name) || e.Op == fsnotify.Chmod {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.dirs[dir]; d != nil && d.watched == dir {
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
		if gone || d.watched != d.path {
			w.attach(d)
			d.hintAll()
		}
	}
	if structural {
		w.verifyAt = time.Now().Add(debounce)
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

// sweep looks for what no event has reported: directories that were replaced, and files that have changed. It reads
// the files without the lock, because there may be thousands of inboxes.
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
	if w.sys == nil && time.Since(w.lostAt) >= w.sweepAlone {
		w.reopen()
	}
	for _, d := range w.dirs {
		w.reattach(d)
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
		if now != f.t.last || now == (stamp{}) && w.exists(f.dir, f.file) {
			f.t.last = now
			f.t.hint()
		}
		w.mu.Unlock()
	}
}

// reattach watches d again if it is no longer what the system watches, and returns true if it did.
func (w *watcher) reattach(d *watchedDir) bool {
	if d.watched == d.path && d.info != nil {
		if fi, err := w.fs.Stat(d.path); err == nil && sameFile(fi, d.info) {
			return false
		}
		if w.sys != nil {
			_ = w.sys.Remove(d.path)
		}
	}
	old := d.watched
	w.attach(d)
	return d.watched != old || d.watched == d.path
}

// stampOf returns the stamp of a file, or zero if there is none or it is too young to be trusted.
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

// exists reports whether a file exists. A file that exists but has no stamp is too young to be trusted.
func (w *watcher) exists(dir, file string) bool {
	_, err := w.fs.Stat(filepath.Join(dir, file))
	return err == nil
}

// sameFile reports whether two descriptions are of the same inode. os.SameFile knows only what os.Stat returned, and a
// simulated file system has descriptions of its own.
func sameFile(a, b fs.FileInfo) bool {
	x, _ := inode(a)
	y, _ := inode(b)
	return x == y
}
