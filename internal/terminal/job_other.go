//go:build !unix

package terminal

// hasJobControl returns false: nobody could continue a stopped process here.
func hasJobControl() bool { return false }
