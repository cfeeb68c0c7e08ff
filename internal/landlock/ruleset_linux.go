//go:build amd64 || arm64

package landlock

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Version returns the version of Landlock's interface that this kernel has; 0 where it has none, or it is switched off.
func Version() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Ruleset says which files may be used. Another process can be given its file.
type Ruleset struct{ *os.File }

const (
	rightsOf3 = unix.LANDLOCK_ACCESS_FS_TRUNCATE<<1 - 1 // all of version 3

	onFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	reading = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
)

// rights are those of the kernel for each kind of access.
var rights = map[Access]uint64{
	List:   unix.LANDLOCK_ACCESS_FS_READ_DIR,
	Read:   reading,
	Device: reading | unix.LANDLOCK_ACCESS_FS_WRITE_FILE,
	// A program that could make devices would get round all rules.
	Write: rightsOf3 &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK),
}

// New returns a ruleset that allows nothing. The caller closes it. The error is that of the system.
func New() (*Ruleset, error) {
	version := Version()
	if version < MinVersion {
		return nil, unix.ENOSYS
	}
	// Each version has made the structure longer. An older kernel takes one that ends in zeros, and refuses rights that
	// it does not know.
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rightsOf3}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 9 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if version >= signalVersion {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return &Ruleset{os.NewFile(fd, "landlock ruleset")}, nil
}

// Allow allows access to what path leads to, through links, and to all that is below. The error is that of the system.
func (r *Ruleset) Allow(path string, a Access) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	allowed := rights[a]
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		allowed &= onFiles
	}
	if allowed == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: allowed, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return &os.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}
