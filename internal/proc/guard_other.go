//go:build !linux

package proc

// canGuard returns false: this system has no subreapers.
func canGuard() bool { return false }

// GuardMain is called first thing in main. This system has no subreapers, so there is never a guard.
func GuardMain() {}

// Guard is a launcher whose tools are started by a guard. This system has none, so New never returns one.
type Guard struct{ *groups }

// newGuard is never called here.
func newGuard() (*Guard, error) { return &Guard{newGroups()}, nil }

// PID is 0: there is no guard.
func (g *Guard) PID() int { return 0 }
