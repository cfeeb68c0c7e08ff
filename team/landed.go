package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
)

// missingTasks are the tasks whose commits are on the target no longer, and the commits that together hold the work of
// all.
func (p *runHost) missingTasks(
	ctx context.Context, tasks []muster.Task,
) (ids []muster.TaskID, heads []string, err error) {
	var commits []string
	for _, x := range tasks {
		if x.Landed != nil && x.Landed.Commit != "" {
			commits = append(commits, x.Landed.Commit)
		}
	}
	if len(commits) == 0 {
		return nil, nil, nil
	}
	off, heads, err := p.repository.MissingCommits(ctx, p.target(), commits)
	gone := map[string]bool{}
	for _, c := range off {
		gone[c] = true
	}
	for _, x := range tasks {
		if x.Landed != nil && gone[x.Landed.Commit] {
			ids = append(ids, x.ID)
		}
	}
	return ids, heads, err
}

// verifyLanded looks whether all that landed in the run is still there: somebody may have moved the target, or removed
// it.
func (p *runHost) verifyLanded(ctx context.Context, sum *Summary) {
	mine := slices.DeleteFunc(slices.Clone(sum.Tasks), func(x muster.Task) bool { return !sum.Run.Has(x) })
	ids, heads, err := p.missingTasks(ctx, mine)
	said := ""
	switch {
	case err != nil:
		said = fmt.Sprintf("Whether all that landed is still on %s cannot be told: %v", p.branch, err)
	case len(ids) > 0:
		sum.Off = ids
		said = fmt.Sprintf("%s no longer on %s, which somebody has moved or removed; to have it back: %s",
			landedAndNow(ids), p.branch, p.recoveryCommand(ctx, heads))
	default:
		return
	}
	sum.Text = strings.TrimSpace(said + "\n" + sum.Text)
	if sum.Code == 0 {
		sum.Code = 3
	}
}

// recoveryCommand is what to type so that the target has the commits again.
func (p *runHost) recoveryCommand(ctx context.Context, heads []string) string {
	if at, err := p.repository.Resolve(ctx, p.target()); err == nil && at != "" {
		return fmt.Sprintf("git switch %s && git merge %s", p.branch, strings.Join(heads, " "))
	}
	way := fmt.Sprintf("git branch %s %s", p.branch, heads[0])
	if more := heads[1:]; len(more) > 0 {
		way += fmt.Sprintf(" && git switch %s && git merge %s", p.branch, strings.Join(more, " "))
	}
	return way
}

// validateTarget refuses to go on where the target is gone, with the commit to bring it back at, or checked out.
func (p *runHost) validateTarget(ctx context.Context) error {
	err := p.repository.ValidateTarget(ctx, p.target())
	gone, ok := errors.AsType[*muster.Error](err)
	if !ok || !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	if tasks, lerr := p.Board.List(ctx); lerr == nil {
		if _, heads, lerr := p.missingTasks(ctx, tasks); lerr == nil && len(heads) > 0 {
			return gone.WithHint("bring it back: %s", p.recoveryCommand(ctx, heads))
		}
	}
	return err
}

// landedAndNow begins a sentence that says how landed tasks stand now. It names at most 20 of them.
func landedAndNow(ids []muster.TaskID) string {
	const most = 20
	subject, verb := "Tasks", "are"
	if len(ids) == 1 {
		subject, verb = "Task", "is"
	}
	names := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids[:min(len(ids), most)]), "[]"), " ", ", ")
	if more := len(ids) - most; more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("%s %s landed and %s", subject, names, verb)
}
