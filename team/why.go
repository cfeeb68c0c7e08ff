package team

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/delivery"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/spend"
	"muster/internal/treediff"
	"muster/internal/workspace"
)

// Why says what a line of a file comes from.
type Why struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Text   string `json:"text"`
	Commit string `json:"commit"`
	// Message is the first line of the commit's message.
	Message string `json:"message"`
	// TaskID is the task that the commit is of; 0: it is of none. Task is its record, nil where the board has it no
	// longer, and Landed how it has landed.
	TaskID muster.TaskID  `json:"task_id"`
	Task   *muster.Task   `json:"task,omitempty"`
	Landed *muster.Landed `json:"landed,omitempty"`
	// Plans are the approved plans of the task.
	Plans []muster.Request `json:"plans,omitempty"`
	// Spent is what the task has cost in the last run.
	Spent spend.Sum `json:"spent"`
}

// Why finds the task that a line of a file comes from, as the file is in the commit that the user's checkout is at: by
// git blame, and the commit's trailers, or else the records of landings. The file is named from the top of the
// repository. Errors: NotFound for a file or a line that is not there.
func (s Tasks) Why(ctx context.Context, file string, line int) (y Why, err error) {
	w := s.t.services()
	repo, err := w.Repo(ctx)
	if err != nil {
		return y, err
	}
	head := "HEAD"
	run, _ := w.Runs().Look(ctx) // without a run the trailers tell
	if c, err := delivery.Open(ctx, repo, run.Target); err == nil {
		head = c.Head
	}
	y = Why{File: file, Line: line}
	if y.Text, err = treediff.LineOf(ctx, repo, head, file, line); err != nil {
		return y, err
	}
	lines := fmt.Sprintf("%d,%d", line, line)
	out, err := repo.Do(ctx, git.Call{Dir: repo.CommonDir(), Bare: true, Env: []string{"GIT_LITERAL_PATHSPECS=1"},
		Args: []string{"blame", "--no-textconv", "--porcelain", "-L", lines, head, "--", file}})
	if err != nil {
		return y, muster.Errorf(muster.Unavailable, "git cannot tell where %s:%d comes from: %w", file, line, err)
	}
	y.Commit, _, _ = strings.Cut(out, " ")
	message, err := repo.Run(ctx, repo.CommonDir(), "log", "-1", "--format=%B", "--end-of-options", y.Commit)
	if err != nil {
		return y, err
	}
	y.Message, _, _ = strings.Cut(message, "\n")
	if id, landed, ok := landing.Trailers(message); ok {
		landed.Commit = y.Commit
		y.TaskID, y.Landed = id, &landed
	}
	return y, s.complete(ctx, w, repo, &y)
}

// complete adds what the records have of the task.
func (s Tasks) complete(ctx context.Context, w *workspace.Workspace, repo *git.Repo, y *Why) error {
	tasks, err := w.Board().List(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Landed == nil || y.TaskID != 0 && y.TaskID != t.ID {
			continue
		}
		isIt := y.TaskID == t.ID || t.Landed.Commit == y.Commit
		if !isIt { // a lane's own commit, below the merge that has landed it
			is, errIs := repo.IsAncestor(ctx, y.Commit, t.Landed.Commit)
			was, errWas := repo.IsAncestor(ctx, y.Commit, t.Landed.Commit+"^1")
			isIt = is && !was && errIs == nil && errWas == nil
		}
		if isIt {
			y.TaskID, y.Task, y.Landed = t.ID, &t, t.Landed
			break
		}
	}
	if y.Task == nil {
		return nil
	}
	all, err := s.t.Requests().List(ctx)
	y.Plans = slices.DeleteFunc(all, func(r muster.Request) bool {
		return r.Kind != muster.AskPlan || r.TaskID != y.TaskID || r.Status != muster.RequestApproved
	})
	if book, err := ReadSpending(ctx, s.t); err == nil {
		y.Spent = book.Tasks[y.TaskID]
	}
	return err
}
