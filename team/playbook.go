package team

import (
	"context"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/playbook"
)

// Playbook is a file that says which tasks a run has.
type Playbook struct {
	File   string // its name in errors
	Data   []byte
	Params map[string]string
}

// MaxPlaybook is how many bytes the file of a playbook may have.
const MaxPlaybook = playbook.MaxFile

// Planned returns the tasks that a run with start.Playbook would put on the board, with the ids that they would get if
// nobody adds a task before. It writes nothing. Errors are Invalid, with the place in the file.
func (s Tasks) Planned(ctx context.Context, start Start) ([]muster.Task, error) {
	repo, err := s.t.site.openRepository(ctx)
	if err != nil {
		return nil, err
	}
	book, err := start.book(ctx, &s.t.site, repo)
	if err != nil {
		return nil, err
	}
	next, err := board.UnusedID(ctx, s.t.services().Board())
	if err != nil {
		return nil, err
	}
	ids := map[string]muster.TaskID{}
	var tasks []muster.Task
	for i, x := range book.Tasks {
		ids[x.Key] = next + muster.TaskID(i)
		on := blockerIDs(x, ids)
		tasks = append(tasks, muster.Task{ID: ids[x.Key], Key: x.Key, Subject: x.Subject, Description: x.Description,
			Status: muster.Pending, DependsOn: on, BlockedBy: on, ClaimRole: x.Role, Priority: x.Priority,
			RequirePlan: x.RequirePlan, CreatedBy: muster.System})
	}
	return tasks, nil
}

// book reads the playbook of a start, nil where there is none. It writes nothing.
func (s Start) book(ctx context.Context, at *site, repo repository) (*playbook.Book, error) {
	if s.Playbook == nil {
		return nil, nil
	}
	if s.Add {
		return nil, muster.Errorf(muster.Invalid, "a playbook begins a run, and does not go on with one").
			WithHint("go on with the one that stopped: muster resume")
	}
	hide := at.secrets.String
	source := playbook.Source{File: s.Playbook.File, Data: []byte(hide(string(s.Playbook.Data))),
		Params: map[string]string{}, Tracked: func() ([]string, error) {
			return repo.TrackedFiles(ctx, at.target(), at.config.Land != "", s.Fresh)
		}}
	for name, value := range s.Playbook.Params {
		source.Params[name] = hide(value)
	}
	b, err := playbook.Read(source)
	if err != nil {
		return nil, err
	}
	return &b, nil
}

func playbookGoal(b *playbook.Book, goal string) string {
	return strings.TrimRight(b.Name+":\n"+strings.TrimSpace(b.Description+"\n\n"+goal), ":\n")
}

// putPlaybook puts the tasks of the run's playbook on the board, if they are not there yet. A process that is killed in
// between leaves some of them, which the next one knows by their keys. So each task is made once.
//
// The caller holds LeadLease: no other process makes tasks of this playbook.
func putPlaybook(ctx context.Context, p *runHost) error {
	run, err := p.Run(ctx)
	if err != nil || run.Playbook == nil || len(run.Playbook.Tasks) == 0 {
		return err
	}
	all, err := p.Board.List(ctx)
	if err != nil {
		return err
	}
	ids := map[string]muster.TaskID{}
	for _, t := range all {
		if t.Key != "" && t.ID >= run.First {
			ids[t.Key] = t.ID
		}
	}
	for _, x := range run.Playbook.Tasks {
		if ids[x.Key] != 0 {
			continue
		}
		t, err := p.Board.Create(ctx, board.Draft{Subject: x.Subject, Description: x.Description,
			BlockedBy: blockerIDs(x, ids), Role: x.Role, Priority: x.Priority, RequirePlan: x.RequirePlan,
			Review: x.Review, Files: x.Files, CreatedBy: muster.System, Key: x.Key})
		if err != nil {
			return err
		}
		ids[x.Key] = t.ID
		failpoint.Hit("playbook.created")
	}
	_, err = p.workspace.Runs().Change(ctx, func(r *muster.Run) {
		if r.Playbook != nil {
			r.Playbook.Tasks = nil
		}
	})
	failpoint.Hit("playbook.finished")
	return err
}

func blockerIDs(x muster.PlannedTask, ids map[string]muster.TaskID) (on []muster.TaskID) {
	for _, key := range x.BlockedBy {
		on = append(on, ids[key])
	}
	return on
}
