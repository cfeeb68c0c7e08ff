package git

import (
	"os"
	"os/exec"
	"syscall"
)

// newProcessGroup keeps git out of the console's process group: a Ctrl-C is for muster, which lets git finish its last
// write.
func newProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// askToStop kills git: this system has no signal to ask with.
func askToStop(p *os.Process) error { return p.Kill() }
