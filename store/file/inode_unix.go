//go:build linux || darwin || freebsd || netbsd

package file

import (
	"io/fs"
	"syscall"
)

// inode is a file's inode number and the time of its last change, in nanoseconds.
func inode(fi fs.FileInfo) (number uint64, ctime int64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Ino), ctimeOf(st)
}
