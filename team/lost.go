package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
)

// lost are the tasks whose commits are on the target no longer, and the commits that together hold the work of all.
func (t *Team) lost(ctx context.Context, tasks []muster.Task) (ids []muster.TaskID, heads []string, err error) {
	var commits []string
	for _, x := range tasks {
		if x.Landed != nil && x.Landed.Commit != "" {
			commits = append(commits, x.Landed.Commit)
		}
	}
	if len(commits) == 0 {
		return nil, nil, nil
	}
	off, heads, err := t.ground.Lost(ctx, t.target(), commits)
	if err != nil || len(off) == 0 {
		return nil, nil, err
	}
	gone := map[string]bool{}
	for _, c := range off {
		gone[c] = true
	}
	for _, x := range tasks {
		if x.Landed != nil && gone[x.Landed.Commit] {
			ids = append(ids, x.ID)
		}
	}
	return ids, heads, nil
}

// account looks whether all that landed in the run is still there: somebody may have moved the target, or removed it.
func (t *Team) account(ctx context.Context, sum *Summary) {
	mine := slices.DeleteFunc(slices.Clone(sum.Tasks), func(x muster.Task) bool { return !sum.Run.Has(x) })
	ids, heads, err := t.lost(ctx, mine)
	said := ""
	switch {
	case err != nil:
		said = fmt.Sprintf("Whether all that landed is still on %s cannot be told: %v", t.branch, err)
	case len(ids) > 0:
		sum.Off = ids
		said = fmt.Sprintf("%s landed and %s no longer on %s, which somebody has moved or removed; to have it back: %s",
			theTasks(ids), map[bool]string{true: "is", false: "are"}[len(ids) == 1], t.branch, t.wayBack(ctx, heads))
	default:
		return
	}
	sum.Text = strings.TrimSpace(said + "\n" + sum.Text)
	if sum.Code == 0 {
		sum.Code = 3
	}
}

// wayBack is what to type so that the target has the commits again.
func (t *Team) wayBack(ctx context.Context, heads []string) string {
	if at, err := t.ground.Tip(ctx, t.target()); err == nil && at != "" {
		return fmt.Sprintf("git switch %s && git merge %s", t.branch, strings.Join(heads, " "))
	}
	way := fmt.Sprintf("git branch %s %s", t.branch, heads[0])
	if more := heads[1:]; len(more) > 0 {
		way += fmt.Sprintf(" && git switch %s && git merge %s", t.branch, strings.Join(more, " "))
	}
	return way
}

// landable refuses to go on where the target is gone, with the commit to bring it back at, or checked out.
func (t *Team) landable(ctx context.Context) error {
	err := t.ground.Landable(ctx, t.target())
	gone, ok := errors.AsType[*muster.Error](err)
	if !ok || !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	if tasks, lerr := t.rooms.Board.List(ctx); lerr == nil {
		if _, heads, lerr := t.lost(ctx, tasks); lerr == nil && len(heads) > 0 {
			return gone.WithHint("bring it back: %s", t.wayBack(ctx, heads))
		}
	}
	return err
}

func theTasks(ids []muster.TaskID) string {
	const most = 20
	var names []string
	for _, id := range ids[:min(len(ids), most)] {
		names = append(names, fmt.Sprint(id))
	}
	what := "Task "
	if len(ids) > 1 {
		what = "Tasks "
	}
	if more := len(ids) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return what + strings.Join(names, ", ")
}
