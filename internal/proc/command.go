package proc

import (
	"os/exec"
	"slices"
	"strings"
)

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

// withheldVariables never reach a command: the keys of models, and what would lead git to another repository.
var withheldVariables = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY",
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_CONFIG_PARAMETERS",
}

// Withhold returns env without what no command may see that agents or their work run: the keys of models, muster's own
// settings (MUSTER_*), and what would lead git to another repository.
func Withhold(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasPrefix(name, "MUSTER_") || slices.Contains(withheldVariables, name)
	})
}
