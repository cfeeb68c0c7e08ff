package landing

import (
	"fmt"
	"strings"
)

// The texts below are what the owner's model reads: what happened, then what to do.

// conflictText is for an owner whose work does not merge.
func conflictText(branch string, files []string) string {
	return fmt.Sprintf("Your work conflicts with what has landed on %s meanwhile, in %s.\n"+
		"%s was merged into your lane, and the conflicts are marked there. Resolve them: keep what both sides meant "+
		"and leave no marker line (<<<<<<<, =======, >>>>>>>). Where a file has no markers (it is binary, or one side "+
		"deleted it), make it what it should be, then git add it or git rm it. Do not commit the merge: call "+
		"complete_task again, and the runtime commits.", branch, fileList(files), branch)
}

// laneMovedText is for an owner whose lane's branch was moved to another history.
func laneMovedText(branch, base string) string {
	return fmt.Sprintf("Your lane's branch was moved to a history that has no commit in common with %s, so nothing "+
		"of it can be merged.\nIn your lane, run: git reset --soft %s\n"+
		"It leaves all files as they are. Look at git status, then call complete_task again.", branch, base)
}

// targetMovedText is for an owner whose target was moved to another history.
func targetMovedText(branch string) string {
	return fmt.Sprintf("Somebody has moved %s to a history that has no commit in common with your lane, so your work "+
		"cannot be merged into it.\nYou cannot mend that in your lane: tell the lead, who can ask for %s to be moved "+
		"back, then call complete_task again, or release the task.", branch, branch)
}

// maxFiles is how many files fileList names.
const maxFiles = 20

// fileList names the files in one line.
func fileList(files []string) string {
	if more := len(files) - maxFiles; more > 0 {
		return fmt.Sprintf("%s and %d more files", strings.Join(files[:maxFiles], ", "), more)
	}
	return strings.Join(files, ", ")
}

// redText is for an owner on whose work the check failed, or could not run.
func redText(branch string, res CheckResult, merged bool) string {
	var b strings.Builder
	what := "The check failed"
	if res.CannotRun {
		what = "The check could not run"
	}
	fmt.Fprintf(&b, "%s on your work merged with %s: %s (%s, %.1f s).\n",
		what, branch, res.Command, res.How, res.Seconds)
	if merged {
		fmt.Fprintf(&b, "What has landed on %s meanwhile is now merged into your lane, so that you can see it fail "+
			"there.\n", branch)
	}
	fmt.Fprintf(&b, "Mend it in your lane, run the check there, then call complete_task again. Its log: %s\n", res.Log)
	fmt.Fprintf(&b, "Its last lines:\n%s", res.Output)
	return b.String()
}

// lastLines returns the last n lines.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
