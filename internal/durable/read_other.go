//go:build !linux

package durable

import "io/fs"

func readFile(name string) ([]byte, fs.FileInfo, error) { return readOpened(OS{}, name) }
