// Package landlock confines programs of Linux without namespaces: what they do with files by Landlock
// (https://docs.kernel.org/userspace-api/landlock.html), and what else of the kernel they may use by a seccomp filter.
// It needs no rights and no other program, so it works where user namespaces are forbidden. It holds for root, too.
//
//   - A Ruleset (ruleset_linux.go) names the files and directories that may be used. All others cannot be opened,
//     made, changed or removed.
//   - Restrict (restrict_linux.go) puts this thread, and all that it starts, under a ruleset for good. It takes away
//     all capabilities of root, and its filter (filter_linux.go) refuses what Landlock does not know: sockets, shared
//     memory of System V and message queues, keyrings, new namespaces, the priority of other processes.
//   - The mode, the owner and the dates of files are changed by this process on behalf of the program, below the
//     directories that it may write (attributes_linux.go).
//
// FilterInNamespaces is the filter without Landlock, for programs that have namespaces of their own.
//
// Landlock allows and never forbids: what is below a directory that may be read may be read, too. Whoever wants to
// leave out a part of a directory names all others (package sandbox). The kernel has no check for the names, sizes and
// dates of files: all can be seen, and so can other processes.
package landlock

// MinVersion is the oldest version of Landlock's interface that is used. Before it the kernel, Linux 6.2, cannot keep
// a program from cutting off any file by its name.
const MinVersion = 3

// signalVersion is the version since which signals to processes outside are refused, Linux 6.12.
const signalVersion = 6

// Access is what may be done with a file, and with all that is below a directory.
type Access int

// The kinds of access.
const (
	List   Access = iota // list the directory; nothing with a file
	Read                 // read and execute
	Device               // read and write what is there: for the devices of /dev
	Write                // also make, change and remove
)

// KeepsSignals reports whether signals from confined programs to others are refused here.
func KeepsSignals() bool { return Version() >= signalVersion }
