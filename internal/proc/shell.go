package proc

import "os/exec"

// Shell returns the arguments that run a command line through the POSIX shell. Checks, setup commands and commands in
// lanes go through it: no other place names a shell.
func Shell(command string) []string { return []string{shellProgram("sh"), "-c", command} }

// Bash is Shell through bash, and through sh where there is no bash. It is for the tool that models know as bash.
func Bash(command string) []string {
	if program := shellProgram("bash"); isInPath(program) {
		return []string{program, "-c", command}
	}
	return Shell(command)
}

// isInPath reports whether this process would find the program.
func isInPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
