package landing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/text"
	"muster/internal/worktree"
)

// The limits on what bothSides says.
const (
	maxSides    = 3       // landed commits that are described; of others the ids are told
	maxSideText = 2 << 10 // bytes of a description, or of a summary
)

// bothSides says what a task that is given up and the landed work that it met were for, and what each has changed: the
// lead and the user decide by that what becomes of it. It is "" for a task that has met nothing or that is not given up
// yet.
func (x explainer) bothSides(ctx context.Context, w *work, tip string, d board.Details) (string, error) {
	isLast, met := board.LastReturn(w.task, d)
	if !isLast || len(met) == 0 {
		return "", nil
	}
	base, err := w.leftAt(ctx, x.repo, tip)
	if err != nil {
		return "", err
	}
	own, err := worktree.DiffOf(ctx, x.repo, base, w.head)
	if err != nil {
		return "", err
	}
	t := w.task
	var b strings.Builder
	fmt.Fprintf(&b, "Task %d %q of %s, which came back:\n", t.ID, t.Subject, t.Owner)
	writeSide(&b, t.Description, w.summary, text.Clean(strings.ToValidUTF8(own.Text, "?")),
		fmt.Sprintf("muster diff %d", t.ID))
	met = slices.Clone(met) // it may be the task's own
	slices.Reverse(met)
	for _, commit := range met[:min(len(met), maxSides)] {
		if err := x.writeLanded(ctx, &b, commit); err != nil {
			return "", err
		}
	}
	for _, commit := range met[min(len(met), maxSides):] {
		fmt.Fprintf(&b, "\nIt has met git show %.7s, too.\n", commit)
	}
	return b.String(), nil
}

// writeLanded writes the side of a landed commit. One that is gone has none.
func (x explainer) writeLanded(ctx context.Context, b *strings.Builder, commit string) error {
	message, err := x.repo.Run(ctx, x.repo.CommonDir(), "log", "-1", "--format=%B", "--end-of-options", commit)
	if err != nil {
		return ctx.Err() // git does not have it any more
	}
	c, ok := readLanded(commit, message)
	if !ok {
		return nil
	}
	description := ""
	if id, err := strconv.Atoi(c.task); err == nil {
		if t, err := x.board.Get(ctx, muster.TaskID(id)); err == nil && t.Landed != nil && t.Landed.Commit == commit {
			description = t.Description
		}
	}
	diff, err := x.diffOf(ctx, commit, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\nIt collides with %s, which has landed:\n", c)
	writeSide(b, description, c.summary, diff, fmt.Sprintf("git show %.7s", commit))
	return nil
}

// writeSide writes what one side was for, and what it has changed. command shows all of a difference that is cut.
func writeSide(b *strings.Builder, description, summary, diff, command string) {
	if description = strings.TrimSpace(description); description != "" {
		fmt.Fprintf(b, "%s\n", text.CutBytes(text.Clean(description), maxSideText))
	}
	fmt.Fprintf(b, "Its owner says: %s\n", cmp.Or(text.CutBytes(text.OneLine(summary), maxSideText), "nothing"))
	if len(diff) > maxDiff {
		diff = strings.ToValidUTF8(diff[:maxDiff], "") + fmt.Sprintf("\n... all of it: %s\n", command)
	}
	b.WriteString(diff)
}
