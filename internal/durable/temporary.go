package durable

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A temporary file is beside the file that it becomes, and its name is .BASE.SPACE-PID-RANDOM.tmp: PID is the process
// that writes it, and SPACE names the system's table of processes in which that number counts. So whoever finds one
// can tell whether its writer has died.

// TemporaryName returns a new name for a temporary file of this process that is to become base.
func TemporaryName(base string) string {
	return fmt.Sprintf(".%s.%s-%d-%s%s", base, processSpace(), os.Getpid(), strings.ToLower(rand.Text()[:8]),
		temporarySuffix)
}

const temporarySuffix = ".tmp"

// IsTemporary reports whether a file's name is one that a writer gives to a temporary file. A killed process leaves
// such files behind.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporarySuffix)
}

// minTemporaryAge is how old a temporary file is before it counts as left behind, if its name does not tell who wrote
// it. A file is written and renamed within moments, so an older one belongs to nobody who is alive.
const minTemporaryAge = time.Minute

// IsAbandoned reports whether the temporary file of that name, last written at modified, was left by a process that has
// died. A file whose writer lives is never reported before minTemporaryAge, so that no writer loses its file.
func IsAbandoned(name string, modified time.Time) bool {
	if !IsTemporary(name) {
		return false
	}
	if time.Since(modified) > minTemporaryAge {
		return true
	}
	rest := strings.TrimSuffix(name, temporarySuffix)
	parts := strings.Split(rest[strings.LastIndexByte(rest, '.')+1:], "-")
	if len(parts) != 3 || parts[0] != processSpace() {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	return err == nil && pid > 0 && hasDied(pid)
}

// processSpace names the table of processes in which this process has its number. Two containers that share a
// repository have different ones, and neither can tell whether a process of the other lives.
var processSpace = sync.OnceValue(func() string {
	// The link is pid:[NUMBER] on Linux. Other systems have one table only, and no link.
	link, _ := os.Readlink("/proc/self/ns/pid")
	number, _ := strconv.ParseUint(strings.Trim(link, "pid:[]"), 10, 64)
	return strconv.FormatUint(number, 36)
})
