package proc

// Parent returns the parent of a process, or 0 when it is not known.
func Parent(pid int) int {
	t, _ := readProcess(pid)
	return t.parent
}
