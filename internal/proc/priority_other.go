//go:build !unix

package proc

// LowerPriority does nothing here.
func LowerPriority(int) {}
