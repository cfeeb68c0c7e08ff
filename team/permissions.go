package team

import (
	"muster/internal/permissions"
	"muster/internal/proc"
)

// findPermissions returns what the settings say of permissions, and what the user has allowed in the repository for
// good. A CI service has nobody who could answer a question: there none waits, unless the settings say how long.
func findPermissions(t *Team) (permissions.Settings, []string, error) {
	p, granted, err := t.site.workspace.Trust().Permissions()
	if p.Wait == 0 && proc.Variable(t.site.config.wholeEnviron(), "CI") != "" {
		p.Wait = -1
	}
	return p, granted, err
}
