package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
)

// A change of which the system does not tell is noticed by the next look, long before a sweep, and looks that find
// nothing give no hints.
func TestALookFindsWhatTheSystemDoesNotTell(t *testing.T) {
	if lookEvery > 5*time.Second {
		t.Errorf("a lost report is noticed after %v", lookEvery)
	}
	root := t.TempDir()
	s, other := opened(t, root), opened(t, root)
	tasks := other.Table(muster.TableTasks)
	rev := put(t, tasks, "1", muster.None)
	require.NoError(t, other.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "x"}))
	wait.Elapse(2 * minStampAge) // so that the stamps count
	s.watch.sweepEvery, s.watch.pollEvery = time.Hour, 20*time.Millisecond
	board := s.Table(muster.TableTasks).Watch(t.Context())
	mail := s.Inbox().Watch(t.Context(), "alice")
	mark := all(t, s)
	s.watch.mu.Lock()
	for _, dir := range s.watch.sys.WatchList() {
		require.NoError(t, s.watch.sys.Remove(dir)) // the watcher has gone deaf
	}
	s.watch.mu.Unlock()
	wait.Elapse(10 * s.watch.pollEvery)
	if len(board) > 0 || len(mail) > 0 {
		t.Errorf("%d hints for the board and %d for the mail, though nothing has changed", len(board), len(mail))
	}
	put(t, tasks, "1", rev)
	hinted(t, board, "a change of a task")
	n := 0
	for _, err := range s.Table(muster.TableTasks).Changes(t.Context(), mark) {
		require.NoError(t, err)
		n++
	}
	if n != 1 {
		t.Errorf("after the hint %d tasks have changed", n)
	}
	require.NoError(t, other.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "y"}))
	hinted(t, mail, "mail")
	put(t, tasks, "2", muster.None)
	hinted(t, board, "a new task")
}

// A file that is so young that it can change without another stamp counts as new at each look.
func TestALookTrustsNoYoungStamp(t *testing.T) {
	root := t.TempDir()
	s, other := opened(t, root), opened(t, root)
	s.watch.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("no watcher here") }
	s.watch.sweepEvery, s.watch.pollEvery = time.Hour, time.Hour
	require.NoError(t, other.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: "x"}))
	path := filepath.Join(root, ".team", "inbox", "alice.jsonl")
	future := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, future, future)) // so that it stays young
	mail := s.Inbox().Watch(t.Context(), "alice")
	for n := range 2 {
		s.watch.look(s.watch.stop)
		select {
		case <-mail:
		default:
			t.Errorf("look %d gives no hint", n+1)
		}
	}
}
