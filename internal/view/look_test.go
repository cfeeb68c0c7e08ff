package view

import (
	"testing"

	"muster"
	"muster/journal"
)

// TestLook: each state of a member has one look and one text, which all faces show.
func TestLook(t *testing.T) {
	t.Parallel()
	o := Overview{Alive: true, Now: muster.Time(2000), Tasks: []muster.Task{{ID: 4, Subject: "reader",
		Status: muster.InProgress}, {ID: 5, Subject: "docs", Status: muster.Landing}}}
	events := o
	for _, e := range []muster.Event{at(journal.TurnStarted, "alice", 4), at(journal.ToolStarted, "alice", 4, "tool", "bash",
		"text", "go test"), at(journal.TurnStarted, "bob", 4), at(journal.ModelRetry, "bob", 4, "text", "429, again in 8 s")} {
		e.At = 1990
		events.Presence.Apply(e)
	}
	over := o
	over.Alive = false
	member := func(name muster.Name, s muster.MemberStatus, why muster.IdleReason, doing string, task muster.TaskID) Member {
		return Member{Alive: true, Member: muster.Member{Name: name, Status: s, IdleReason: why, Doing: doing, Task: task, Since: 1000}}
	}
	asked := o
	asked.Requests = []muster.Request{{ID: "7f", Kind: muster.AskPlan, From: "alice", To: muster.Lead, TaskID: 4, Status: muster.RequestPending}}
	gone := func(m Member) Member { m.Alive = false; return m }
	for name, c := range map[string]struct {
		o    Overview
		m    Member
		look Look
		text string
	}{
		"has a task":               {o, member("alice", muster.Working, "", "", 4), LookWorking, "4 reader"},
		"runs a tool":              {events, member("alice", muster.Working, "", "", 4), LookWorking, "4 reader: bash go test"},
		"waits for the provider":   {events, member("bob", muster.Working, "", "", 4), LookWaiting, "waiting: 429, again in 8 s: 4 reader"},
		"is parked":                {o, member("bob", muster.Working, "", "parked until 12:30", 0), LookWaiting, "waiting: parked until 12:30"},
		"asks for a plan":          {events, member("alice", muster.Working, "", "waits for plan 7f", 4), LookWaiting, "waiting for plan 7f: 4 reader"},
		"its plan needs you":       {asked, member("alice", muster.Working, "", "waits for plan 7f", 4), LookNeedsYou, "needs you: plan for 4"},
		"asks before a command":    {events, member("alice", muster.Working, "", "waits for your answer to 7f", 0), LookNeedsYou, "needs you: your answer to 7f"},
		"a lead at rest":           {o, member("lead", muster.Working, "", WaitsForUser, 0), LookNeedsYou, "needs you: your next message"},
		"asked, and died":          {asked, gone(member("alice", muster.Working, "", "waits for plan 7f", 4)), LookDead, "dead: 4 reader"},
		"a lead that waits":        {o, member("lead", muster.Idle, muster.IdleMessages, "waits for the team", 0), LookWaiting, "waiting for the team"},
		"waits for mail":           {o, member("bob", muster.Idle, muster.IdleMessages, "", 0), LookWaiting, "waiting for mail"},
		"has no task":              {o, member("bob", muster.Idle, muster.IdleTasks, "", 0), LookIdle, "idle: waits for a task"},
		"is idle since its events": {events, member("alice", muster.Idle, muster.IdleTimeout, "", 0), LookIdle, "idle: nothing came in time"},
		"its task lands":           {o, member("dora", muster.Working, "", "", 5), LookLanding, "landing: 5 docs"},
		"says that its task lands": {o, member("dora", muster.Working, "", "lands", 4), LookLanding, "landing: 4 reader"},
		"has ended":                {o, gone(member("dora", muster.Shutdown, "", "", 0)), LookStopped, "stopped"},
		"its process has died":     {o, gone(member("alice", muster.Working, "", "waits for plan 7f", 4)), LookDead, "dead: 4 reader"},
		"died without a task":      {events, gone(member("alice", muster.Working, "", "", 0)), LookDead, "dead: no process runs it"},
		"its team has stopped":     {over, gone(member("alice", muster.Working, "", "", 4)), LookStopped, "stopped: 4 reader"},
	} {
		got := c.o.Standing(c.m, c.o.Subjects())
		if got.Look != c.look || got.Text() != c.text {
			t.Errorf("%s: %s, %q; want %s, %q", name, got.Look, got.Text(), c.look, c.text)
		}
	}
}
