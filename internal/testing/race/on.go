//go:build race

package race

// Enabled reports whether the race detector watches this process.
const Enabled = true
