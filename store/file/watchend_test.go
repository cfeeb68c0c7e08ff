package file

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster/internal/durable"
)

// A loop that was stopped while it was at work leaves the events to the loop that has taken over since. It would drop
// what it took: nobody is told of an event after which the loop ends.
func TestAStoppedLoopTakesNoEvents(t *testing.T) {
	w := newWatcher(durable.OS{}, t.TempDir(), func(err error) { t.Error(err) })
	sys, err := fsnotify.NewWatcher()
	must(t, err)
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

// atStat is the real file system, in which somebody else acts right before one file is looked at.
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

// A sweep looks at files without the lock. When the store is closed meanwhile, the channels of the watches are closed,
// and the sweep must not send to them.
func TestASweepDuringTheEndTellsNobody(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "x.jsonl")
	disk := &atStat{path: file}
	w := newWatcher(disk, root, func(error) {})
	w.sweepHealthy, w.sweepAlone = time.Hour, time.Hour
	watch := w.subscribe(t.Context(), root, "x.jsonl", nil)
	must(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	w.mu.Lock()
	stop := w.stop
	w.mu.Unlock()
	disk.act = w.close
	w.sweep(stop, nil)
	if _, isOpen := <-watch; isOpen {
		t.Error("there was a hint after the end")
	}
}
