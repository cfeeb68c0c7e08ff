//go:build !unix

package sandbox

import "io/fs"

// owner returns -1: files have no number of a user here.
func owner(fs.FileInfo) int { return -1 }
