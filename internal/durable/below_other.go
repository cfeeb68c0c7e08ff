//go:build !linux

package durable

import (
	"errors"
	"io/fs"
	"os"
)

// openWithoutLinks does not exist here: the caller looks at each step on the way.
func openWithoutLinks(string, int, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }
