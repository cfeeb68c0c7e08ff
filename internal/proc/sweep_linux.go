package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wait waits for the program to end and kills what it left behind. Only then is the program reaped, because until then
// its pid cannot be another's.
func (t *tree) wait(p *os.Process) (*os.ProcessState, error) {
	for unix.Waitid(unix.P_PID, t.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = t.kill()
	defer t.setReaped()
	return p.Wait()
}

// sweep kills what is found of the tree: below the program while it lives, in its session, or with its tag. A process
// that has left all three survives.
func (t *tree) sweep() {
	want := CallVar + "=" + t.tag
	self := os.Getpid()
	killAll(func() (list []process) {
		all := allProcesses()
		for pid, p := range all {
			if p.isDead() || pid == self {
				continue
			}
			if pid == t.pid || p.session == t.pid || p.group == t.pid || isDescendant(all, pid, t.pid) ||
				hasTag(pid, want, false) {
				list = append(list, p)
			}
		}
		return list
	}, time.Second)
}
