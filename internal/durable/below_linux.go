package durable

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openWithoutLinks opens a file by one system call, which refuses a symbolic link anywhere on the way. The error is
// errors.ErrUnsupported where only the steps on the way can tell: on an old kernel, and where there is a link, which
// may lie above the root.
func openWithoutLinks(name string, flag int, perm fs.FileMode) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flag) | unix.O_CLOEXEC | unix.O_NOCTTY, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if flag&os.O_CREATE != 0 {
		how.Mode = uint64(perm.Perm())
	}
	for {
		switch fd, err := unix.Openat2(unix.AT_FDCWD, name, &how); {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return nil, errors.ErrUnsupported
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}
