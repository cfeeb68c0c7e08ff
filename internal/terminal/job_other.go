//go:build !unix

package terminal

import "os"

// hasJobControl returns false: nobody could continue a stopped process here.
func hasJobControl() bool { return false }

// HasInput returns false: it is not known here.
func HasInput(*os.File) bool { return false }
