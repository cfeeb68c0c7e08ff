//go:build !unix

package code

import (
	"errors"
	"io"
)

// opener opens many files below a path.
type opener struct{ at confinedPath }

// open opens a regular file for reading, and returns its size. It fails for anything else, and for a link.
func (o *opener) open(name string) (f io.ReadCloser, size int64, err error) {
	rel := o.at.join(name)
	fi, err := o.at.root.Lstat(rel)
	if err != nil || !fi.Mode().IsRegular() {
		return nil, 0, errors.New(name + " is not a regular file")
	}
	f, err = o.at.openRegular(rel)
	return f, fi.Size(), err
}

// close has nothing to close.
func (o *opener) close() {}
