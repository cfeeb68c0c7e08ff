// Package race tells a test whether the race detector watches it.
//
// The race detector makes a program that computes five to ten times slower. A test that repeats one thing in thousands
// of cases, in one goroutine, has no more races in all of them than in a sample. Such a test asks InSample before each
// case. test.sh runs its package a second time without the race detector, and there every case is run.
package race

// sampled is how many cases there are for each one in the sample. It is odd, because cases often alternate.
const sampled = 7

// InSample reports whether a test runs its nth case: every one without the race detector, and every seventh with it.
func InSample(n int) bool { return !Enabled || n%sampled == 0 }
