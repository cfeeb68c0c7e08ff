//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// owner returns the number of the user to whom a file belongs.
func owner(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
