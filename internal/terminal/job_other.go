//go:build !unix

package terminal

import "os"

// hasJobControl returns false: nobody could continue a stopped process here.
func hasJobControl() bool { return false }

// IsForeground returns true: there is no job control here.
func IsForeground(*os.File) bool { return true }

// HasInput returns false: it is not known here.
func HasInput(*os.File) bool { return false }
