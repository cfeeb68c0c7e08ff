// Package failpoint marks the places where a test may kill or stop the process, and the protections that a test may
// switch off.
//
// The code that keeps state calls Hit or HitFile before and after each durable step, and asks Disabled before it
// uses a protection. In the program that people install all three do nothing: the compiler removes the calls and
// the names. With the build tag "failpoint" they call internal/testing/faultinject, which knows the points and what
// happens at each.
//
// Nothing else belongs in this package, because every package that keeps state imports it.
package failpoint

// Safeguard is a protection of the state that a test can switch off, to see that the tests notice its absence.
type Safeguard string

// The safeguards. The code asks for each of them at one place.
const (
	Lock          Safeguard = "lock"           // a lock excludes other processes
	Fence         Safeguard = "fence"          // a write under an older claim is refused
	TailRepair    Safeguard = "tail-repair"    // an append first repairs the torn end that a killed writer left
	SecondCompare Safeguard = "second-compare" // a put compares the document again after it staged the new content
)
