package durable

import (
	"fmt"
	"io/fs"
	"syscall"
)

// ChangeOf returns which file it is and when anything of it has changed last. No program can set that time back.
func ChangeOf(info fs.FileInfo) (changed string, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%d %d.%09d %d", st.Ino, st.Ctimespec.Sec, st.Ctimespec.Nsec, st.Nlink), true
}
