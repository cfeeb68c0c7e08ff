//go:build !linux

package durable

import "io/fs"

// readFile opens, describes, reads and closes a file.
func readFile(name string) ([]byte, fs.FileInfo, error) { return readOpened(OS{}, name) }
