package team

import (
	"context"

	"muster"
	"muster/internal/hooks"
)

// hookRunner returns what runs the hooks of the user and of the repository with this root; nil: there are none.
func hookRunner(t *Team, root string) (*hooks.Runner, error) {
	all, err := t.opened.Trust().Hooks(t.config.Home)
	return hooks.NewRunner(all, root, t.secrets), err
}

// landingHook returns what asks the hooks whether a merged tree may land, and nil where there are none for that.
func landingHook(r *hooks.Runner, team muster.Name) func(
	ctx context.Context, t muster.Task, dir string, env []string) (string, error) {
	if !r.Has(hooks.Landing) {
		return nil
	}
	return func(ctx context.Context, t muster.Task, dir string, env []string) (string, error) {
		o, err := r.Run(ctx, hooks.Moment{Event: hooks.Landing, Dir: dir, Env: env, Member: t.Owner, Team: team,
			Task: t.ID, Fields: map[string]any{"task_subject": t.Subject, "task_description": t.Description}})
		return o.Reason, err
	}
}
