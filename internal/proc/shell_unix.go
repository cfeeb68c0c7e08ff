//go:build unix

package proc

// shellProgram returns the program of a shell: its name, which is looked up in the PATH of the command.
func shellProgram(name string) string { return name }
