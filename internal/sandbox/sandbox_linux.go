package sandbox

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// identity tells what a path leads to from all that was or will be there; "" is nothing.
func identity(path string) string {
	var st unix.Statx_t
	const mask = unix.STATX_INO | unix.STATX_BTIME | unix.STATX_TYPE | unix.STATX_MNT_ID
	if unix.Statx(unix.AT_FDCWD, path, 0, mask, &st) != nil {
		return ""
	}
	var id []byte
	for _, n := range []uint64{uint64(st.Dev_major), uint64(st.Dev_minor), st.Ino, st.Mnt_id, uint64(st.Btime.Sec),
		uint64(st.Btime.Nsec), uint64(st.Mode & unix.S_IFMT)} {
		id = append(strconv.AppendUint(id, n, 36), ' ')
	}
	return string(id)
}

// userNamespace opens the user namespace that owns another namespace.
func userNamespace(of *os.File) (*os.File, error) {
	fd, err := unix.IoctlRetInt(int(of.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "user namespace"), nil
}
