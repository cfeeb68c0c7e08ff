//go:build !unix

package terminal

func jobControl() bool { return false }
