package landing

import "golang.org/x/sys/unix"

// memory returns the bytes of memory that the machine has; 0: it cannot be told.
func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // the types differ between architectures
}
