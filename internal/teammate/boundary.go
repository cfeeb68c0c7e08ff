package teammate

import (
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/prompt"
	"muster/llm"
)

// Counts at which a limit acts.
const (
	repeatWarn    = 3 // equal calls in a row: a reminder
	repeatEnd     = 6 // equal calls in a row: the end of the phase
	maxCutReplies = 3 // replies cut at their length limit that are asked to go on
)

var (
	errTurns = errors.New("the turn limit of this phase")
	errLoop  = errors.New("a loop: the same call with the same result six times in a row")
)

// boundaryStep is what a member does at a boundary, decided from its counters: it goes on or
// not, reads a reminder, or its phase ends with an error.
type boundaryStep struct {
	goOn     bool
	reminder string
	err      error
}

// betweenRounds decides on the limits between two rounds of tools, and notes in the counters
// which reminders were given. limit is the number of turns in a phase; 0 is no limit.
func (c *counters) betweenRounds(limit int) boundaryStep {
	full := limit > 0 && c.turns >= limit
	switch {
	case c.repeats >= repeatEnd:
		return boundaryStep{err: errLoop}
	case c.repeats >= repeatWarn && !c.warned:
		c.warned = true
		if full && !c.extended { // the turns are granted here too: one boundary has one reminder
			c.extended, c.turns = true, 0
		}
		return remindStep("You made the same call three times with the same result. Do something else.")
	case full && !c.extended:
		c.extended, c.turns = true, 0
		return remindStep("You have used %d turns. You get as many once more: finish, or give the task back with "+
			"release_task and say what is left.", limit)
	case full:
		return boundaryStep{err: errTurns}
	}
	return boundaryStep{goOn: true}
}

// isEndless reports whether the model has paused its reply so often that the phase must end:
// a paused reply is asked to go on at once, and passes no boundary.
func (c *counters) isEndless(limit int) bool {
	return c.stop == llm.StopPaused && limit > 0 && c.turns > 2*limit
}

// beforeStop decides whether the phase goes on though the model has called no tool. received
// says that mail or finished jobs have just entered the conversation; task is the claimed
// task, if there is one; waits says that the member waits for something and has not simply
// stopped.
func (c *counters) beforeStop(received bool, task muster.TaskID, waits bool) boundaryStep {
	forgot := task != 0 && c.stop == llm.StopEnd && !waits && !c.reminded
	c.reminded = c.reminded || forgot
	cut := c.cutReplies
	if c.stop == llm.StopMax {
		c.cutReplies++
	}
	switch {
	case received:
		return boundaryStep{goOn: true}
	case c.stop == llm.StopMax && cut < maxCutReplies:
		return remindStep("Your reply was cut at its length limit and none of its calls was run. " +
			"Go on in smaller steps.")
	case forgot:
		return remindStep("Task #%d is still yours. If it is done, call complete_task; if you cannot do it, "+
			"release_task; if you wait for an answer, just end your turn.", task)
	}
	return boundaryStep{}
}

// remindStep is a step that goes on with a reminder.
func remindStep(format string, args ...any) boundaryStep {
	return boundaryStep{goOn: true, reminder: prompt.Reminder("%s", fmt.Sprintf(format, args...))}
}

// cutOffReason says why the last reply of a member's model was no answer; it is empty when it
// was one.
func cutOffReason(name muster.Name, stop llm.Stop, text string) string {
	switch stop {
	case llm.StopRefused:
		return strings.TrimSpace(fmt.Sprintf("%s's model refused: %s", name, clip(text, maxQuote)))
	case llm.StopMax:
		return string(name) + "'s reply was cut at its length limit again and again"
	}
	return ""
}
