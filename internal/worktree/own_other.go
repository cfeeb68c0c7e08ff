//go:build !unix

package worktree

import "io/fs"

// isOwn reports whether a file is this user's: temporary directories are.
func isOwn(fs.FileInfo) bool { return true }
