package team

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/internal/worktree"
)

// Diff is what a task has changed: see Tasks.Diff.
type Diff = worktree.Diff

// Diff returns what a task has changed: its landed commit, or all that its lane holds beyond the target, uncommitted
// files too. The error is NotFound for a task that has changed nothing because nobody has begun it.
func (s Tasks) Diff(ctx context.Context, id muster.TaskID) (Diff, error) {
	w := s.t.services()
	_, from, to, err := s.sides(ctx, w, id)
	if err != nil {
		return Diff{}, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return Diff{}, err
	}
	return worktree.DiffOf(ctx, repo, from, to)
}

// sides returns the task, what its work is compared with, and its work: a commit or a tree.
func (s Tasks) sides(
	ctx context.Context, w *workspace.Workspace, id muster.TaskID,
) (t muster.Task, from, to string, err error) {
	if t, err = w.Board().Get(ctx, id); err != nil {
		return t, "", "", err
	}
	switch {
	case t.Landed != nil:
		repo, err := w.Repo(ctx)
		if err == nil {
			from, err = repo.Resolve(ctx, t.Landed.Commit+"^1")
		}
		return t, from, t.Landed.Commit, err
	case t.Status == muster.Completed:
		return t, "", "", muster.Errorf(muster.NotFound, "task %d is completed without a change", id)
	case t.Worktree == "":
		return t, "", "", muster.Errorf(muster.NotFound, "task %d has no lane yet: nobody has begun it", id).
			WithHint("muster task show %d", id)
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return t, "", "", err
	}
	tip, err := w.LaneBase(ctx, "")
	if err != nil {
		return t, "", "", err
	}
	to, from, err = worktree.Content(ctx, lanes, t.Worktree, tip)
	return t, from, to, err
}

// Comment sends what the user says about a line of a task's work to the task's owner; to the lead, once it has landed
// or while nobody has it. The line is one of the file as it is now in the lane, or as it has landed. Errors: NotFound
// when there is no such task or file, and Invalid when the file has no such line or nothing is said.
func (s Tasks) Comment(
	ctx context.Context, id muster.TaskID, file string, line int, comment string,
) (muster.Message, error) {
	if strings.TrimSpace(comment) == "" {
		return muster.Message{}, muster.Errorf(muster.Invalid, "the comment is empty, so nothing was sent")
	}
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Message{}, err
	}
	t, from, to, err := s.sides(ctx, w, id)
	if err != nil {
		return muster.Message{}, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return muster.Message{}, err
	}
	quoted, err := worktree.LineOf(ctx, repo, to, file, line)
	if e, ok := errors.AsType[*muster.Error](err); ok && e.Code == muster.NotFound {
		var names []string
		d, _ := worktree.DiffOf(ctx, repo, from, to) // only words of the hint
		for _, f := range d.Files {
			names = append(names, f.File)
		}
		return muster.Message{}, e.WithHint("task %d changes: %s", id, text.List(names, 10))
	}
	if err != nil {
		return muster.Message{}, err
	}
	at := fmt.Sprintf("\n%s:%d: %s\n%s", file, line, text.CutBytes(text.OneLine(quoted), 300), comment)
	if t.Landed == nil && t.Owner != "" {
		m, err := s.t.Mail().Send(ctx, t.Owner, fmt.Sprintf("Review of your task #%d (%s)", t.ID, t.Subject)+at)
		if !errors.Is(err, muster.ErrNotFound) { // the owner is somebody outside the team, who has no mail
			return m, err
		}
	}
	whose := "which nobody has now"
	if t.Landed != nil {
		whose = fmt.Sprintf("which has landed as %.7s", t.Landed.Commit)
	} else if t.Owner != "" {
		whose = fmt.Sprintf("which %s has", t.Owner)
	}
	return s.t.Mail().Send(ctx, muster.Lead, fmt.Sprintf("Review of task #%d (%s), %s", t.ID, t.Subject, whose)+at)
}
