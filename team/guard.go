package team

import "muster/internal/proc"

// Guard makes this program one whose tools cannot outlive it. Call it first thing in main, before flags are read or
// anything is printed, and in TestMain of packages whose tests run teams.
//
// On Linux a run starts this very program a second time, as a small process, the guard. It starts every command, and
// kills all that a command has started, in sessions of its own too, when the command ends, is stopped, or when this
// program dies, by kill -9 too. In that second process Guard serves and never returns, so what stands before it in main
// would be done twice.
//
// Without it, and on other systems, a command has a process group. That is killed as a whole, and on Linux what has
// left it is looked for, but only while this program lives: after a kill -9 what its tools had started goes on.
func Guard() { proc.GuardMain() }
