//go:build unix

package git

import (
	"os"
	"os/exec"
	"syscall"
)

// newProcessGroup keeps git out of the terminal's process group: a Ctrl-C is for muster, which lets git finish its last
// write.
func newProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// askToStop asks git to end, so that it can remove its lock files.
func askToStop(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
