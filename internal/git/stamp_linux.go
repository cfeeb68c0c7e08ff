package git

import (
	"os"

	"golang.org/x/sys/unix"
)

// stamp tells whether a file has changed since it was looked at. The zero value is of one that is not there. The time
// of the last change of its attributes is a part: no program can set that back.
type stamp struct {
	size, mtime, ctime int64
	inode              uint64
	mode               uint32
}

// stampOf returns the stamp of the file at path, which may be a symbolic link.
func stampOf(path string) stamp { return stampAt(unix.AT_FDCWD, path) }

// stampAt is stampOf for a path that is relative to an open directory.
func stampAt(dir int, path string) stamp {
	var st unix.Stat_t
	if unix.Fstatat(dir, path, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return stamp{}
	}
	return stamp{st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino, st.Mode}
}

// stampsBelow returns the stamps of files with names relative to root. The names are looked up from the root, which
// takes half of the time of looking up whole paths.
func stampsBelow(root string, names []string) []stamp {
	stamps := make([]stamp, len(names))
	dir, err := os.Open(root)
	if err != nil {
		return stamps
	}
	defer dir.Close()
	for i, name := range names {
		stamps[i] = stampAt(int(dir.Fd()), name)
	}
	return stamps
}
