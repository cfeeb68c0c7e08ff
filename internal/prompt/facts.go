package prompt

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"muster/internal/mailbox"
)

// Facts are what a member knows of its surroundings before it looks for itself.
type Facts struct {
	Root   string    // of the repository
	Now    time.Time // of which only the day is said
	Target string    // the branch on which work lands
	Tip    string    // its commit; "" if it is not known
	Check  string    // the command; "" for none
	// Git says how the user's checkout stands; "" if it is not known.
	Git string
	// Instructions are what Instructions returned for the root.
	Instructions string
}

// String returns the facts as a member reads them first. They begin with what all members share and what changes most
// rarely, and name no member: a provider that has cached them for one member knows them for the next.
func (f Facts) String() string {
	var b strings.Builder
	b.WriteString(optional("%s\n", f.Instructions))
	fmt.Fprintf(&b, "<environment>\nRepository: %s\nPlatform: %s/%s\n", mailbox.Escape(f.Root), runtime.GOOS,
		runtime.GOARCH)
	b.WriteString(optional("Check command: %s\n", mailbox.Escape(f.Check)))
	fmt.Fprintf(&b, "Date: %s\n", f.Now.Format("2006-01-02 (Monday)"))
	b.WriteString(optional("The user's checkout: %s\n", mailbox.Escape(f.Git)))
	if f.Target != "" {
		fmt.Fprintf(&b, "Work lands on: %s%s\n", mailbox.Escape(f.Target), optional(", now at %.7s", f.Tip))
	}
	return b.String() + "</environment>"
}

// SubagentDir tells a subagent where its tools run.
func SubagentDir(dir string) string {
	return fmt.Sprintf("<environment>\nWorking directory: %s, a git worktree. Look and work in it, not in the "+
		"user's checkout.\n</environment>", dir)
}

// ScratchView tells a member without a task where its tools run.
func ScratchView(dir string) string {
	return fmt.Sprintf("<environment>\nWorking directory: %s, a read-only view of what has landed. "+
		"A claimed task gives you a lane to work in.\n</environment>", dir)
}
