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
	if run.Setup != "" {
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

// A check that needs what the sandbox has not fails on the base, too. The rule for a red base would then let every red
// landing pass as no worse than before, so the user is told what else may be the reason.

// confinedHint says what may be the reason that a check fails which passes elsewhere; "" where it is not confined.
func confinedHint(p *runHost) string {
	if p.sandbox == nil || p.config.Sandbox.OpenChecks {
		return ""
	}
	return "; it is confined, without your files, your servers and a network: if it needs them, " +
		"sandbox: {checks: false} in your own config.yaml"
}
