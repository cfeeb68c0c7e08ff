// Package teamtools holds the tools by which members work together: the board, mail, requests, the team, lanes. They
// only write records, or ask the member that calls; what follows from a record is done by whoever watches it.
package teamtools

import (
	"context"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/llm"
	"muster/tool"
)

// Caller is the member that calls. What concerns its own life goes through it.
type Caller interface {
	Me() muster.Member
	// CurrentTask returns the claimed task.
	CurrentTask() (muster.Task, bool)
	// Claim claims a task, makes its lane, and returns what its owner reads about it.
	Claim(ctx context.Context, id muster.TaskID) (string, error)
	// Complete returns when the landing is decided.
	Complete(ctx context.Context, id muster.TaskID, summary string) (llm.Result, error)
	// Completed is what Complete has returned for a task that is completed; false for any other.
	Completed(ctx context.Context, id muster.TaskID) (llm.Result, bool)
	// Release puts the claimed task back on the board; it counts as an attempt.
	Release(ctx context.Context, id muster.TaskID, reason string) error
	// Plan asks for approval and returns when it is decided.
	Plan(ctx context.Context, plan string) (llm.Result, error)
	// Idle ends this phase after the round of tools.
	Idle(reason string)
	// Wait sleeps until something needs the lead.
	Wait(ctx context.Context, landings bool) (llm.Result, error)
	// Spawn records a new teammate; a supervisor starts it.
	Spawn(ctx context.Context, s Spawn) (muster.Member, error)
	// Inbox shows what waits and what was delivered last.
	Inbox(ctx context.Context) (string, error)
	// Leave answers a shutdown request.
	Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error
	// Asked notes that the member has asked somebody something.
	Asked(to muster.Name, content string)
}

// Spawn is who is to be spawned.
type Spawn struct {
	Name        muster.Name
	Role        string
	Prompt      string
	Model       string
	RequirePlan bool
}

// Lanes are what the lead's tools do with lanes.
type Lanes interface {
	Create(ctx context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error)
	Get(ctx context.Context, name muster.Name) (muster.Lane, error)
	List(ctx context.Context) ([]muster.Lane, error)
	Status(ctx context.Context, name muster.Name) (string, error)
	Enter(ctx context.Context, name muster.Name) (dir string, err error)
	Keep(ctx context.Context, name muster.Name) error
	Remove(ctx context.Context, name muster.Name, force bool) error
}

// Services are what the tools work on.
type Services struct {
	Board    *board.Board
	Post     *mailbox.Mail
	Roster   *roster.Roster
	Requests *requests.Requests
	Lanes    Lanes
	Run      func(context.Context) (muster.Run, error)
	Log      muster.Log
	// Exec runs a command in a lane and returns its output and exit code.
	Exec func(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error)
}

// ForLead are the lead's tools.
func ForLead(d Caller, s Services) []llm.Tool {
	k := toolset{d, s}
	return append(k.common(),
		k.taskUpdate(), k.spawn(), k.listTeammates(), k.broadcast(), k.requestShutdown(), k.reviewPlan(), k.wait(),
		k.laneCreate(), k.laneList(), k.laneStatus(), k.laneRun(), k.laneKeep(), k.laneRemove(), k.laneEvents())
}

// ForTeammate are a teammate's tools.
func ForTeammate(d Caller, s Services) []llm.Tool {
	k := toolset{d, s}
	return append(k.common(), k.submitPlan(), k.respondShutdown(), k.idle())
}

type toolset struct {
	caller Caller
	Services
}

func (k toolset) common() []llm.Tool {
	return []llm.Tool{
		k.taskCreate(), k.taskList(), k.taskGet(), k.claimTask(), k.completeTask(), k.releaseTask(),
		k.sendMessage(), k.readInbox(),
	}
}

// toResult passes on the result of a tool that makes its own, and converts its error.
func toResult(r llm.Result, err error) (llm.Result, error) {
	if err == nil {
		return r, nil
	}
	return tool.FromError(tool.Classify(err))
}
