package proc

import (
	"bytes"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// HideEnvironment keeps other processes of this user, and so the commands of agents, from reading the secrets of this
// process in /proc. It overwrites them in the memory with which the process was started, which /proc shows as its
// environment and its arguments; this also holds against root. No command inherits the files that this process has
// inherited beside its input and output. Then it makes the process one that others cannot trace, and whose memory they
// cannot read; this does not hold against root.
//
// It is called once, before the first command starts. os.Environ keeps the values; os.Args shares the memory that is
// overwritten, so the caller copies its arguments before. Without /proc there is nothing to hide.
func HideEnvironment(secrets []string) {
	overwriteSecrets(secrets)
	// A shell may have opened a file with a key, or a pipe, for this process: commands do not inherit it.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	// After the writing, because a process that is not dumpable may not open its own memory.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// overwriteSecrets replaces the secrets in the arguments and the environment by asterisks.
func overwriteSecrets(secrets []string) {
	const shortest = 8 // bytes: a shorter secret may also be a part of a word
	// Where the arguments and the environment begin and end in memory: their numbers in proc_pid_stat(5).
	const argStart, envEnd = 48 - 3, 51 - 3
	fields := statFields(os.Getpid())
	if len(fields) <= envEnd {
		return
	}
	from, to := int64(number(fields[argStart])), int64(number(fields[envEnd]))
	if from <= 0 || to <= from || to-from >= 16<<20 {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	block := make([]byte, to-from)
	if _, err := memory.ReadAt(block, from); err != nil {
		return
	}
	for _, secret := range secrets {
		// A short value is overwritten where it is the whole of a variable. Elsewhere it is a part of a word.
		find, lead := secret, 0
		if len(secret) < shortest {
			find, lead = "="+secret+"\x00", 1
		}
		for at := 0; secret != ""; at += len(secret) {
			i := bytes.Index(block[at:], []byte(find))
			if i < 0 {
				break
			}
			at += i + lead
			_, _ = memory.WriteAt(bytes.Repeat([]byte("*"), len(secret)), from+int64(at))
		}
	}
}
