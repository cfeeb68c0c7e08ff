package git

import (
	"io/fs"
	"syscall"
)

// changeTime returns when the inode of a file was changed last. No program can set that.
func changeTime(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
