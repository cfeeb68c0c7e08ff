package team

import (
	"cmp"
	"context"
	"slices"

	"muster"
	"muster/journal"
)

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
func nameGoal(ctx context.Context, p *runHost) (hasGoal bool) {
	run, err := p.Run(ctx)
	if err != nil || run.Goal != "" || run.StartedAt == 0 {
		logDropped(ctx, p.Log, "reading the run's goal", err)
		return err == nil && run.Goal != ""
	}
	tasks, err := p.Board.List(ctx)
	if err != nil || !slices.ContainsFunc(tasks, run.Has) {
		logDropped(ctx, p.Log, "looking for the first task", err)
		return false
	}
	goal := cmp.Or(p.config.Conversation.longestWords(), run.FirstWords)
	_, err = p.workspace.Runs().Change(ctx, func(r *muster.Run) { r.Goal = cmp.Or(r.Goal, goal) })
	if err != nil {
		logDropped(ctx, p.Log, "noting the run's goal", err)
		return false
	}
	p.emit(ctx, journal.RunGoal, muster.Lead, map[string]any{"goal": goal})
	return true
}

func (c *Conversation) noteWords(text string) {
	if len(text) > len(c.words) {
		c.words = text
	}
}

// longestWords returns the longest of what the user has said here; "" without a conversation.
func (c *Conversation) longestWords() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.words
}
