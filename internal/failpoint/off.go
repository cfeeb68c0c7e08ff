//go:build !failpoint

package failpoint

// Enabled reports whether this build has failpoints.
const Enabled = false

// Hit marks the failpoint with the given name. It does nothing in this build.
func Hit(string) {}

// HitFile marks the failpoint of one step of writing a state file. It does nothing in this build.
func HitFile(_, _ string) {}
