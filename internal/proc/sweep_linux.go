package proc

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// wait waits for the program to end and kills what it left behind. Only then is it reaped: until that its number stays
// its own.
func (t *tree) wait(p *os.Process) (*os.ProcessState, error) {
	for unix.Waitid(unix.P_PID, t.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = t.kill()
	defer t.over()
	return p.Wait()
}

// sweep kills what is found of the tree: below the program while it lives, in its session, or with its tag. A process
// that left all three survives.
func (t *tree) sweep() {
	want := CallVar + "=" + t.tag
	self := os.Getpid()
	exterminate(func() (list []task) {
		all := everything()
		for pid, p := range all {
			if p.dead() || pid == self {
				continue
			}
			if pid == t.pid || p.session == t.pid || p.group == t.pid || under(all, pid, t.pid) || ours(pid) && tagged(pid, want, false) {
				list = append(list, p)
			}
		}
		return list
	}, time.Second)
}

// ours tells whether pid runs as the same user: no other's environment can be read.
func ours(pid int) bool {
	var st unix.Stat_t
	return unix.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && int(st.Uid) == os.Geteuid()
}
