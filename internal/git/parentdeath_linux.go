package git

import (
	"os/exec"
	"syscall"
)

// dieWithParent asks the kernel to end git when muster dies. A git of a killed muster must not go on beside the next
// muster, which undoes what the killed one was doing.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM }
