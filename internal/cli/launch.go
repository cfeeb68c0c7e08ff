package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"muster"
	"muster/internal/detach"
	"muster/internal/view"
	"muster/team"
)

// launchWait is how long a team may take to begin. Its setup and its first check come later.
const launchWait = 2 * time.Minute

// launcher returns what brings a team to work in the background, for a face that does not host it: on a goal, or where
// it stopped with "". It is nil where no team can work in the background.
func launcher(a *App) func(ctx context.Context, goal string) error {
	if !detach.IsPossible {
		return nil
	}
	return func(ctx context.Context, goal string) error {
		if goal == "" {
			// The settings of the run hold, as for anybody who resumes it.
			return launch(ctx, a, "resume", "--background")
		}
		// A team that stopped gets the goal too. What follows -- is no flag, whatever was typed.
		return launch(ctx, a, "run", "--background", "--add", "--", goal)
	}
}

// launch runs a command of this program that leaves a team at work in the background. The error says what it has
// printed.
func launch(ctx context.Context, a *App, args ...string) error {
	// The command goes on when the face is left: a team in the middle of its start would stop otherwise.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), launchWait)
	defer cancel()
	out, err := detach.Output(ctx, a.workDir(), a.Env, args...)
	if err == nil {
		return nil
	}
	// The words are those of a message in a terminal: a name before it, and further lines below its beginning.
	text := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(out), "muster: "), "\n        ", "\n")
	return muster.Errorf(muster.Unavailable, "the team does not work: %s", cmp.Or(text, muster.PlainText(err)))
}

func merger(t *team.Team) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		// A face that is left leaves nothing half done. It is done in this process, because it ends by itself.
		m, err := team.TargetOf(t).Merge(context.WithoutCancel(ctx))
		return m.Said + mergedText(view.Screen{}, m, later), err
	}
}
