package setup

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clone makes a file share the blocks of another one. It reports whether the file system can do that.
func clone(to, from *os.File) bool { return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil }

// changeTime returns when the inode of a file was changed last. No program can set that.
func changeTime(info fs.FileInfo) int64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Ctim.Nano()
}

// syncAll makes durable all that was written to the file system of a directory. That is much faster than to sync
// thousands of files one by one.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return unix.Syncfs(int(d.Fd()))
}
