package file

import (
	"cmp"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster/internal/durable"
)

// errWatcherClosed is the reason of a failure when the channels of the system's watcher are closed.
var errWatcherClosed = errors.New("the system's watcher is closed")

// run handles the system's events, and looks and sweeps when it is time, until stop is closed. It also sweeps when a
// directory came or went, and when events were lost.
func (w *watcher) run(stop chan struct{}) {
	swept := time.Now()
	pause, _ := w.next(swept)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		// The channels are asked for each time, because a sweep may have opened another watcher. Without one they are
		// nil, and the timer alone wakes the loop.
		var events chan fsnotify.Event
		var errs chan error
		var failure error
		w.mu.Lock()
		if w.stop != stop { // another loop has taken over, and the channels are its own
			w.mu.Unlock()
			return
		}
		if w.sys != nil {
			events, errs = w.sys.Events, w.sys.Errors
		}
		w.mu.Unlock()
		select {
		case <-stop:
			return
		case e, ok := <-events:
			if !ok {
				failure = errWatcherClosed
			} else if !w.handleEvent(e) {
				continue
			}
		case err := <-errs:
			failure = cmp.Or(err, errWatcherClosed)
		case <-timer.C:
			if _, isSweep := w.next(swept); !isSweep {
				w.look(stop)
				pause, _ = w.next(swept)
				timer.Reset(pause)
				continue
			}
		}
		w.sweep(stop, failure)
		swept = time.Now()
		pause, _ = w.next(swept)
		timer.Reset(pause)
	}
}

// next returns the time until the next look, and whether a sweep is due then. swept is the time of the last sweep.
func (w *watcher) next(swept time.Time) (pause time.Duration, isSweep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, near := range w.watched {
		if near == "" {
			return w.pollEvery, true
		}
	}
	pause = min(w.pollEvery, w.sweepEvery)
	return pause, time.Since(swept) >= w.sweepEvery
}

// handleEvent gives hints to those whom an event concerns. It reports whether a watched directory, or one above it,
// came or went.
func (w *watcher) handleEvent(e fsnotify.Event) (structural bool) {
	dir, name := filepath.Split(e.Name)
	if durable.IsTemporary(name) || e.Op == fsnotify.Chmod {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir = filepath.Clean(dir); w.watched[dir] == dir {
		if t := w.topics[topicKey{dir, name}]; t != nil {
			t.hint()
		}
		if t := w.topics[topicKey{dir, ""}]; t != nil && t.note(name) {
			t.hint()
		}
	}
	if !e.Has(fsnotify.Remove) && !e.Has(fsnotify.Rename) && !e.Has(fsnotify.Create) {
		return false
	}
	// Only these make another directory the nearest one, or put a new one where the system still watches an old one.
	for dir := range w.watched {
		rest, ok := strings.CutPrefix(dir, e.Name)
		if ok && (rest == "" || rest[0] == filepath.Separator) {
			return true
		}
	}
	return false
}

// sweep reports a failure of the system's watcher, if there is one: after a mere overflow the watcher goes on,
// otherwise the sweeps replace it. Then it watches all directories anew and looks for what no event has reported. What
// changes after a directory was added to the system's watcher is reported by an event, and what changed before is found
// by the look that follows.
func (w *watcher) sweep(stop chan struct{}, failure error) {
	w.mu.Lock()
	if w.stop != stop { // another loop has taken over, with a watcher of its own
		w.mu.Unlock()
		return
	}
	if failure != nil {
		w.onFailure(failure)
		if !errors.Is(failure, fsnotify.ErrEventOverflow) {
			w.dropSystem()
			w.lostAt = time.Now()
		}
	}
	w.rewatch()
	for key, t := range w.topics {
		if key.file == "" {
			t.last = stampAt(w.fs, key.dir)
			t.note("")
			t.hint()
		}
	}
	w.mu.Unlock()
	w.look(stop)
}

// look gives hints for each file and directory whose stamp has changed since the last look.
func (w *watcher) look(stop chan struct{}) {
	type watchedPath struct {
		path string
		t    *topic
	}
	var all []watchedPath
	w.mu.Lock()
	if w.stop != stop {
		w.mu.Unlock()
		return
	}
	for key, t := range w.topics {
		all = append(all, watchedPath{filepath.Join(key.dir, key.file), t})
	}
	w.mu.Unlock()
	// There may be thousands of inboxes, so they are looked at without the lock, and only who has something new is
	// woken. A file that is so young that it can change without another stamp counts as new.
	for _, p := range all {
		now := stampAt(w.fs, p.path)
		w.mu.Lock()
		if now != p.t.last || now != (stamp{}) && now.settled(time.Now()) == (stamp{}) {
			p.t.last = now
			if p.t.note != nil {
				p.t.note("")
			}
			p.t.hint()
		}
		w.mu.Unlock()
	}
}

// rewatch lets the system watch all directories anew. It asks for a watcher if there is none; without one, the sweeps
// do its work. If they were only added again, the system's watcher could mistake a new directory for the one that was
// at its path before, and keep silent.
func (w *watcher) rewatch() {
	if w.sys == nil && time.Since(w.lostAt) >= w.pollEvery {
		sys, err := w.open()
		if err == nil {
			w.sys = sys
		} else {
			w.lostAt = time.Now()
			w.onFailure(err)
		}
	}
	if w.sys != nil {
		for _, dir := range w.sys.WatchList() {
			_ = w.sys.Remove(dir)
		}
	}
	clear(w.watched)
	for key := range w.topics {
		if _, ok := w.watched[key.dir]; !ok {
			w.attach(key.dir)
		}
	}
}
