package proc

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Processes that end without a pause do not keep the guard from hearing what it is told, nor from its next try.
func TestWaitTellsOfEverything(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	died := make(chan os.Signal)
	defer close(died)
	w, err := newWaiter(pair[0], died)
	check(t, err)
	died <- unix.SIGCHLD
	died <- unix.SIGCHLD // the first one is written now
	if _, err := unix.Write(pair[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.wait(&guard{}, time.Now().Add(-time.Second)), (wakeReasons{readable: true, ended: true}); got != want {
		t.Errorf("it woke for %+v, want %+v", got, want)
	}
}
