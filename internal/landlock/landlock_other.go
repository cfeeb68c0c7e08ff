//go:build !linux || !(amd64 || arm64)

package landlock

import (
	"errors"
	"os"
)

// Ruleset is not there on this system.
type Ruleset struct{ *os.File }

// Version returns 0 here.
func Version() int { return 0 }

// New returns errors.ErrUnsupported here.
func New() (*Ruleset, error) { return nil, errors.ErrUnsupported }

// Allow returns errors.ErrUnsupported here.
func (*Ruleset) Allow(string, Access) error { return errors.ErrUnsupported }

// OnThread runs do. It waits for nothing.
func OnThread(do func()) { go do() }

// Restrict returns errors.ErrUnsupported here.
func Restrict(int, []string) error { return errors.ErrUnsupported }

// FilterInNamespaces returns nil here.
func FilterInNamespaces() []byte { return nil }
