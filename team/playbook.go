package team

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/playbook"
	"muster/journal"
)

// Playbook is a file that says which tasks a run has.
type Playbook struct {
	File   string // its name in errors
	Data   []byte
	Params map[string]string
}

// MaxPlaybook is how many bytes the file of a playbook may have.
const MaxPlaybook = playbook.MaxFile

func playbookGoal(b *playbook.Book, goal string) string {
	return strings.TrimRight(b.Name+":\n"+strings.TrimSpace(b.Description+"\n\n"+goal), ":\n")
}

// putPlaybook puts the tasks of the run's playbook on the board, if they are not there yet. A process that is killed in
// between leaves some of them, which the next one knows by their keys. So each task is made once.
//
// The caller holds LeadLease: no other process makes tasks of this playbook.
func (r *teamRun) putPlaybook(ctx context.Context) error {
	run, err := r.site.runs.Get(ctx)
	if err != nil || run.Playbook == nil || len(run.Playbook.Tasks) == 0 {
		return err
	}
	all, err := r.site.board.List(ctx)
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
		t, err := r.site.board.Create(ctx, board.Draft{Subject: x.Subject, Description: x.Description,
			BlockedBy: blockerIDs(x, ids), Role: x.Role, Priority: x.Priority, RequirePlan: x.RequirePlan,
			Review: x.Review, Files: x.Files, CreatedBy: muster.System, Key: x.Key})
		if err != nil {
			return err
		}
		ids[x.Key] = t.ID
		failpoint.Hit("playbook.created")
	}
	_, err = r.site.runs.Change(ctx, func(x *muster.Run) {
		if x.Playbook != nil {
			x.Playbook.Tasks = nil
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

// A conversation may begin with anything, such as a greeting, so its run has no goal until the lead makes the first
// task. Of what the user has said until then, the longest text becomes the goal: a greeting and a short answer to a
// question of the lead are shorter than what the user wants.

// beginAsConversation takes what would be the goal of a run as the first words of a conversation, if it is one.
func beginAsConversation(r *muster.Run, isConversation bool) {
	if isConversation {
		r.Goal, r.FirstWords = "", r.Goal
	}
}

// nameGoal gives the run of a conversation its goal when it has a task, and returns true when the run has a goal. A
// crash between the record and the event loses the event alone.
func (r *teamRun) nameGoal(ctx context.Context) (hasGoal bool) {
	run, err := r.site.runs.Get(ctx)
	if err != nil || run.Goal != "" || run.StartedAt == 0 {
		logDropped(ctx, r.site.log, "reading the run's goal", err)
		return err == nil && run.Goal != ""
	}
	tasks, err := r.site.board.List(ctx)
	if err != nil || !slices.ContainsFunc(tasks, run.Has) {
		logDropped(ctx, r.site.log, "looking for the first task", err)
		return false
	}
	goal := cmp.Or(r.site.config.Conversation.longestWords(), run.FirstWords)
	_, err = r.site.runs.Change(ctx, func(x *muster.Run) { x.Goal = cmp.Or(x.Goal, goal) })
	if err != nil {
		logDropped(ctx, r.site.log, "noting the run's goal", err)
		return false
	}
	r.site.emit(ctx, journal.RunGoal, muster.Lead, map[string]any{"goal": goal})
	return true
}
