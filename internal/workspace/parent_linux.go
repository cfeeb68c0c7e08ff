package workspace

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// parent returns the parent of a process, or 0 when it is not known.
func parent(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// pid (name) state ppid ...: the name may hold anything, the last parenthesis ends it.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return n
}
