//go:build failpoint

package failpoint

import "muster/internal/testing/faultinject"

// Enabled reports whether this build has failpoints.
const Enabled = true

// Hit marks the failpoint with the given name. If the process is armed there, it ends or stops in this call.
func Hit(name string) { faultinject.Hit(name) }

// HitFile marks the failpoint of one step of writing a state file. The point's name is made of the kind of file that
// path names and the step, for example "tasks.put.begin".
func HitFile(path, step string) { faultinject.HitFile(path, step) }
