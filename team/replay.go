package team

import (
	"context"
	"strconv"

	"muster"
	"muster/internal/git"
)

// LandedFiles returns the paths of the files that a landed commit has changed.
func LandedFiles(ctx context.Context, t *Team, commit string) ([]string, error) {
	repo, err := t.services().Repo(ctx)
	if err != nil {
		return nil, err
	}
	return gitRepository{Repo: repo}.LandedFiles(ctx, commit)
}

// NewScratch makes a repository in the directory to, which must be empty, in which a run that began in the repository
// of dir can begin again: its base is checked out, and its target is there.
func NewScratch(ctx context.Context, dir, to string, run muster.Run) error {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return err
	}
	return git.NewScratch(ctx, repo, to, run.Base, run.Target)
}

// PutTasks puts tasks on the board of a team in which nothing was done yet, with their ids.
func PutTasks(ctx context.Context, t *Team, tasks []muster.Task) error {
	table := t.services().Store().Table(muster.TableTasks)
	for _, task := range tasks {
		data, err := muster.Encode(task)
		if err == nil {
			_, err = table.Put(ctx, strconv.Itoa(int(task.ID)), data, muster.Rev(""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
