package sandbox

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// identity tells what a path leads to from all that was or will be there; "" is nothing.
func identity(path string) string {
	id, _ := look(path)
	return id
}

// changed is an identity of a directory that differs after each change of what it has.
func changed(dir string) string {
	id, at := look(dir)
	if now := time.Now(); now.Sub(at) <= tick { // a second change in this step would not be seen
		at = now
	}
	return id + at.String()
}

// look returns the identity of what a path leads to, and when anything of it has changed last. No program can set that
// time back.
func look(path string) (identity string, at time.Time) {
	var st unix.Statx_t
	const mask = unix.STATX_INO | unix.STATX_BTIME | unix.STATX_CTIME | unix.STATX_TYPE | unix.STATX_MNT_ID
	if unix.Statx(unix.AT_FDCWD, path, 0, mask, &st) != nil {
		return "", at
	}
	var id []byte
	for _, n := range []uint64{uint64(st.Dev_major), uint64(st.Dev_minor), st.Ino, st.Mnt_id, uint64(st.Btime.Sec),
		uint64(st.Btime.Nsec), uint64(st.Mode & unix.S_IFMT)} {
		id = append(strconv.AppendUint(id, n, 36), ' ')
	}
	return string(id), time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec))
}

// userNamespace opens the user namespace that owns another namespace.
func userNamespace(of *os.File) (*os.File, error) {
	fd, err := unix.IoctlRetInt(int(of.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "user namespace"), nil
}
