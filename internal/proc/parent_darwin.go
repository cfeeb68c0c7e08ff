package proc

import "golang.org/x/sys/unix"

// Parent returns the parent of a process, or 0 when it is not known.
func Parent(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}
