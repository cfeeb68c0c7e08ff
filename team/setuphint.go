package team

import (
	"context"

	"muster"
)

// missingSetup says that a check may have failed because what the repository depends on is not installed: the run has
// no set-up, and the repository's files ask for one. It is the end of a sentence, "" where there is nothing to say.
//
// It is only a guess. So it stands beside what the check has printed, and nothing is decided by it.
func missingSetup(ctx context.Context, p *runHost, run muster.Run) string {
	if run.Setup != "" || p.team.opened == nil {
		return ""
	}
	proposal, err := SetupOf(p.team).Propose(ctx)
	command := proposal.SetupCommand()
	if err != nil || command == "" {
		return ""
	}
	return ", perhaps because a fresh checkout lacks what it depends on; muster init proposes a set-up, such as " +
		"--setup '" + command + "'"
}
