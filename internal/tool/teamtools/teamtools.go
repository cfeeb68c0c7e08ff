// Package teamtools holds the tools by which members work together: for the board, mail, requests, the team and lanes.
//
// ForLead returns the tools of the lead, ForTeammate those of a teammate. Both take the Caller, which is the member
// that calls, and the Services, which are the team's records. These rules hold:
//   - A tool only writes records, or asks its Caller. Whatever must follow from a record is done by whoever watches
//     the record, so it also happens if this process ends right after the call.
//   - Every error is a *muster.Error if the model can do something about it. Any other error ends the turn.
//   - A tool that waits for a decision is a tool.Recoverer: after a crash the records tell its outcome.
//
// The rules of the records are not here: package board knows when a task may be claimed, package landing how it lands.
// The tools for files and commands are in package code.
package teamtools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/llm"
	"muster/tool"
)

// Caller is the member that calls. A tool goes through it for everything that changes the member's own state.
type Caller interface {
	// Me returns the member's record.
	Me() muster.Member
	// CurrentTask returns the task that the member has claimed. It reports false if there is none.
	CurrentTask() (muster.Task, bool)
	// Claim claims a task, or the next one that is ready if id is 0, makes its lane, and returns what its owner reads
	// about it.
	Claim(ctx context.Context, id muster.TaskID) (string, error)
	// Complete completes the claimed task; id may be 0. It returns when the landing is decided.
	Complete(ctx context.Context, id muster.TaskID, summary string) (llm.Result, error)
	// Completed returns what Complete has returned for a task that is completed; if id is 0, for the last one of the
	// member. It reports false for any other task.
	Completed(ctx context.Context, id muster.TaskID) (llm.Result, bool)
	// Release puts the claimed task back on the board. It counts as an attempt.
	Release(ctx context.Context, id muster.TaskID, reason string) error
	// Plan asks for approval of a plan, and returns when it is approved or rejected.
	Plan(ctx context.Context, plan string) (llm.Result, error)
	// Idle makes the member idle after this round of tools. The error says why not.
	Idle(reason string) error
	// Wait returns when something needs the lead. With landings each landing does.
	Wait(ctx context.Context, landings bool) (llm.Result, error)
	// Spawn records a new teammate, which a supervisor starts. m has its name, role, prompt, model and RequirePlan.
	Spawn(ctx context.Context, m muster.Member) (muster.Member, error)
	// Inbox returns the mail that waits, and the mail that was delivered last.
	Inbox(ctx context.Context) (string, error)
	// Leave answers a shutdown request.
	Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error
	// Asked notes that the member has sent somebody mail. The member may be waiting for the answer.
	Asked(to muster.Name, content string)
}

// Lanes is what the lead's tools need of the lanes.
type Lanes interface {
	// Create makes a lane from a commit, "" for the target's tip. task is 0 if the lane is bound to none.
	Create(ctx context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error)
	Get(ctx context.Context, name muster.Name) (muster.Lane, error)
	List(ctx context.Context) ([]muster.Lane, error)
	// Status says what has changed in a lane.
	Status(ctx context.Context, name muster.Name) (string, error)
	// Enter returns the directory of a lane in which a command can run.
	Enter(ctx context.Context, name muster.Name) (dir string, err error)
	// Keep marks a lane, so that it stays when its task is done.
	Keep(ctx context.Context, name muster.Name) error
	// Remove removes a lane. It refuses to lose work that has not landed, unless force says to archive it first.
	Remove(ctx context.Context, name muster.Name, force bool) error
}

// Services are the records that the tools read and write, and what else they need of the team.
type Services struct {
	Board    *board.Board
	Post     *mailbox.Mail
	Roster   *roster.Roster
	Requests *requests.Requests
	Lanes    Lanes
	// Run returns the record of the run that is under way.
	Run func(context.Context) (muster.Run, error)
	// Revoke ends the claim of a task and puts it back on the board. What the owner still does for it is refused.
	Revoke func(ctx context.Context, t muster.Task, reason string) error
	// Log has the events of lanes.
	Log muster.Log
	// Exec runs a command in a lane and returns its output and exit code.
	Exec func(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error)
}

// ForLead returns the lead's tools, in an order that never changes: providers cache requests by their first bytes,
// which hold the tools.
func ForLead(c Caller, s Services) []llm.Tool {
	k := toolset{c, s}
	return append(k.common(),
		k.taskUpdate(), k.spawn(), k.listTeammates(), k.broadcast(), k.requestShutdown(), k.reviewPlan(), k.wait(),
		k.laneCreate(), k.laneList(), k.laneStatus(), k.laneRun(), k.laneKeep(), k.laneRemove(), k.laneEvents())
}

// IsForOne reports whether the lead needs the tool with the name while it has no teammate and at most one task.
func IsForOne(name string) bool {
	return slices.Contains([]string{"task_create", "claim_task", "complete_task", "spawn_teammate"}, name)
}

// ForTeammate returns a teammate's tools, in an order that never changes.
func ForTeammate(c Caller, s Services) []llm.Tool {
	k := toolset{c, s}
	return append(k.common(), k.broadcast(), k.submitPlan(), k.respondShutdown(), k.idle())
}

// toolset is what the tools of one member work with.
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

// textTool makes a tool of a function that answers in text. run may return a text with an error; it is dropped. Its
// error is sorted by tool.Classify: the model reads a
// *muster.Error with its hint, and any other error ends the turn.
func textTool[In any](
	name string, run func(context.Context, In) (string, error), o ...tool.Option,
) llm.Tool {
	return tool.Func(name, prompt.Tool(name), func(ctx context.Context, in In) (string, error) {
		if err := checkTexts(in); err != nil {
			return "", err
		}
		text, err := run(ctx, in)
		return text, tool.Classify(err)
	}, o...)
}

// resultTool is like textTool for a function that answers with a result.
func resultTool[In any](
	name string, run func(context.Context, In) (llm.Result, error), o ...tool.Option,
) llm.Tool {
	return tool.New(name, prompt.Tool(name), func(ctx context.Context, in In) (llm.Result, error) {
		if err := checkTexts(in); err != nil {
			return tool.FromError(err)
		}
		r, err := run(ctx, in)
		if err != nil {
			return tool.FromError(tool.Classify(err))
		}
		return r, nil
	}, o...)
}

// answer returns what a tool says when it has done its work, or the error with which that has failed.
func answer(err error, format string, args ...any) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(format, args...), nil
}

// answerLines returns a line for each item of a list, or none if there is no line. An item whose line is "" is left
// out.
func answerLines[T any](items []T, err error, none string, line func(T) string) (string, error) {
	var text strings.Builder
	for _, item := range items {
		if s := line(item); s != "" {
			text.WriteString(s + "\n")
		}
	}
	return cmp.Or(strings.TrimSuffix(text.String(), "\n"), none), err
}
