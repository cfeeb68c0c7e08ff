package git

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps git out of the console's process group: a Ctrl-C is for muster, which lets git's last write end.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func askToStop(p *os.Process) error { return p.Kill() }

// syncDir has nothing to do: directories cannot be synced there.
func syncDir(string) error { return nil }
