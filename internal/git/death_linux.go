package git

import (
	"os/exec"
	"syscall"
)

// withUs asks the kernel to end git when muster dies: what a killed muster was just doing must not go on beside the next
// one, which takes it back.
func withUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM }
