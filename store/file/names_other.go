//go:build !linux

package file

import "muster/internal/durable"

func fileNames(on durable.FS, dir string) ([]string, error) { return namesByFS(on, dir) }

func stamps(on durable.FS, dir string, n int, name func(i int) string) []stamp {
	return stampsByFS(on, dir, n, name)
}
