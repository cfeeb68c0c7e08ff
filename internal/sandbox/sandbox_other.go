//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

// identity returns nothing: only Linux starts sandboxes ahead.
func identity(string) string { return "" }

// changed returns nothing: only Linux has Landlock.
func changed(string) string { return "" }

// userNamespace returns errors.ErrUnsupported: only Linux has namespaces.
func userNamespace(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }
