package prompt

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"muster/internal/text"
)

// Facts are what a member knows of its surroundings before it looks for itself.
type Facts struct {
	Root string // of the repository
	// Directory is where commands start and relative paths begin, below the root; "" is the root.
	Directory string
	Now       time.Time // of which only the day is said
	Target    string    // the branch on which work lands
	Tip       string    // its commit; "" if it is not known
	Check     string    // the command; "" for none
	// CommandLimits says what commands cannot do; "" where they are not confined.
	CommandLimits string
	// Git says how the user's checkout stands; "" if it is not known.
	Git string
	// Instructions are those of the project and the user, as package instructions returned them.
	Instructions string
	// Skills are the skills that the member can load, as skills.List returned them.
	Skills string
	// Roles are the roles that the lead can give to teammates, as roles.List returned them.
	Roles string
	// Permissions says that rules of the user refuse some calls; "" if none do.
	Permissions string
	// Memory is the index of what is remembered, as memory.Index returned it.
	Memory string
}

// Texts returns the facts as a member reads them first, in two parts. The first is the same for all members of a team
// as long as the project stays what it is, so that a provider that has cached it for one of them knows it for the next.
// The second changes by the day, by the landing, and by what the user does.
func (f Facts) Texts() (stable, now string) {
	var b, c strings.Builder
	b.WriteString(optional("%s\n", f.Instructions) + optional("%s\n", f.Skills) +
		optional("%s\n", f.Roles))
	fmt.Fprintf(&b, "<environment>\nRepository: %s\nPlatform: %s/%s\n", text.EscapeTags(f.Root), runtime.GOOS,
		runtime.GOARCH)
	if f.Directory != "" {
		fmt.Fprintf(&b, "Directory: %[1]s. In every worktree, your commands start in %[1]s and relative paths of all "+
			"tools begin there; where it does not exist, at the top. You may change the whole repository. Paths that "+
			"git and the team name begin at the top. The check command starts at the top.\n",
			text.EscapeTags(f.Directory))
	}
	b.WriteString(optional("Check command: %s\n", text.EscapeTags(f.Check)))
	b.WriteString(optional("Commands: %s\n", f.CommandLimits))
	b.WriteString(optional("Permissions: %s\n", text.EscapeTags(f.Permissions)))
	b.WriteString("</environment>" + optional("\n%s", f.Memory))
	fmt.Fprintf(&c, "<environment>\nDate: %s\n", f.Now.Format("2006-01-02 (Monday)"))
	c.WriteString(optional("The user's checkout: %s\n", text.EscapeTags(f.Git)))
	if f.Target != "" {
		fmt.Fprintf(&c, "Target branch: %s%s\n", text.EscapeTags(f.Target), optional(", now at %.7s", f.Tip))
	}
	return b.String(), c.String() + "</environment>"
}

// SubagentDir tells a subagent or a reviewer where its tools run.
func SubagentDir(dir string) string {
	return fmt.Sprintf("<environment>\nWorking directory: %s, a git worktree. A path below the repository means the "+
		"file there.\n</environment>", dir)
}

// ScratchView tells a member without a task where its tools run.
func ScratchView(dir string) string {
	return fmt.Sprintf("<environment>\nWorking directory: %s, a read-only view of what has landed. "+
		"A claimed task gives you a lane to work in.\n</environment>", dir)
}
