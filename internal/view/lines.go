package view

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"muster"
	"muster/internal/clock"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/journal"
)

// Line is what people read of an event. Its texts are one line each and cannot steer a terminal.
type Line struct {
	// Who is the member, or the part of the program, that the event is about.
	Who string
	// Verb says what happened. It has at most six letters, the width of its column.
	Verb string
	Text string
	// Tone says whether the event is good or bad news.
	Tone Tone
	// Show says that the progress of a run has the line, too. The log has them all.
	Show bool

	// command and name are the parts of Text that are shortened first where it does not fit: the command in it, then
	// the task's name that it begins with. A part that is not in it is empty.
	command, name string
	// whole says that the text is wrapped, and never cut, where it does not fit.
	whole bool
	// isCall says that the line is of a call of a tool. Who is then the tool, and there are no columns.
	isCall bool
	// below are rows that stand below the line, as they are.
	below []string
	// isOld says that it happened before the progress began, so its line has a time of day.
	isOld bool
	// faint says that a plain text is faint: it stands among the words of a conversation.
	faint bool
}

// taskColumn is the width of a task's name in a line that says more after it.
const taskColumn = 24

// Facts are what the lines say beyond the event itself, because events do not repeat what a record has. Each may be
// left out.
type Facts struct {
	Subject func(muster.TaskID) string // of a task, "" when it is not known
	Check   string                     // the run's check
	// OneKey says that one key answers a question, so that no command has to be named.
	OneKey bool
}

// Lines returns an event in words: one line, or two for a landing whose check failed. An event of a kind that is not
// known here is shown as it stands.
func Lines(e muster.Event, f Facts) (all []Line) {
	t := lineWriter{e, f}
	var l Line
	switch kind, _, _ := strings.Cut(e.Kind, "."); kind {
	case "run", "check", "budget":
		l = t.runLine()
	case "member", "agent", "turn", "tool", "model", "context", "memory", "permission":
		l = t.memberLine()
	case "task":
		// A red check has a line of its own before that of the return, like the green check of a landing.
		if e.Kind == journal.TaskReturned && e.Text("reason") == "check" {
			failed := checkLine(t.taskName(), text.CutColumns(text.OneLine(t.Check), 60),
				"FAIL "+seconds(t.Number("seconds")), Bad)
			all = append(all, failed)
		}
		l = t.taskLine()
	case "review":
		l = t.reviewLine()
	case "landing":
		l = t.landingLine()
	case "hook":
		l = t.hookLine()
	case "mail":
		l = t.mailLine()
	case "request":
		l = t.requestLine()
	default:
		l = t.laneLine()
	}
	if l.Verb == "" {
		l = t.unknownLine()
	}
	return append(all, l)
}

// lineWriter puts one event into words. There is a method for each group of kinds. It returns a line without a verb
// for a kind that is not known here, which comes from a newer program and is shown as it stands.
type lineWriter struct {
	muster.Event
	Facts
}

// field returns a field of the event as one line of at most n columns, or of any length if n is 0.
func (t lineWriter) field(field string, n int) string {
	return text.CutColumns(text.OneLine(t.Text(field)), cmp.Or(n, math.MaxInt))
}

func (t lineWriter) who(other string) string { return cmp.Or(text.OneLine(string(t.Member)), other) }

// taskName returns the number and the subject of the event's task, or the number alone where nothing tells the subject.
func (t lineWriter) taskName() string {
	s := text.OneLine(t.Text("subject"))
	if s == "" && t.Subject != nil {
		s = text.OneLine(t.Subject(t.Task))
	}
	return strings.TrimSpace(strconv.Itoa(int(t.Task)) + " " + text.CutColumns(s, 60))
}

// nameWith returns a task's name, padded to its column, and more text after it. Without more text the name is not
// padded.
func nameWith(name, more string) string {
	if more == "" {
		return name
	}
	return text.PadColumns(name, taskColumn) + "  " + more
}

// Because returns a text with its reason after a colon, where there is a reason.
func Because(s, reason string) string {
	if reason == "" {
		return s
	}
	return s + ": " + reason
}

func (t lineWriter) runLine() Line {
	l := Line{Who: t.who("muster"), Show: true}
	switch t.Kind {
	case journal.RunStarted:
		l.Who, l.Verb, l.Text = t.who("lead"), "goal", t.field("goal", 200)
		l.Show = l.Text != "" // a conversation begins without one
	case journal.RunGoal: // the user has said it
		l.Who, l.Verb, l.Text, l.Show = t.who("lead"), "goal", t.field("goal", 200), false
	case journal.RunResumed:
		l.Who, l.Verb, l.Text = t.who("lead"), "again", t.field("goal", 200)
	case journal.RunEnded:
		l.Verb, l.Show = "ends", false
		l.Text = Because(fmt.Sprintf("exit %.0f", t.Number("code")), t.field("text", 200))
	case journal.RunNote:
		l.Who, l.Verb, l.Text, l.whole = "muster", "note", t.field("text", 0), true
	case journal.BudgetWarned, journal.BudgetSpent:
		l.Who, l.Verb, l.Text, l.Tone, l.whole = "muster", "budget", t.field("text", 0), Bad, true
	case journal.CheckStarted:
		l = checkLine("the base", t.field("command", 60), "running", Plain)
		l.Show = false
	case journal.CheckBase:
		verdict, tone := t.field("result", 60), Bad
		switch took := seconds(t.Number("seconds")); verdict {
		case "ok":
			verdict, tone = "ok "+took, Good
		case "red":
			verdict = Because("FAIL "+took, text.CutColumns(t.field("failed", 0), 90)) +
				"; until a landing turns it green, red ones are accepted"
		}
		l = checkLine("the base", t.field("command", 60), verdict, tone)
	}
	return l
}

// proof is what a check said, after its command where that is known.
func proof(command, verdict string) string { return strings.TrimPrefix(command+"  "+verdict, "  ") }

// checkLine is the line of a check of what name says: the command, if it is known, and its verdict.
func checkLine(name, command, verdict string, tone Tone) Line {
	return Line{Who: "landing", Verb: "check", Text: nameWith(name, proof(command, verdict)), Tone: tone, Show: true,
		command: command, name: name}
}

// withoutCommand returns the line of a check without its command, where more follows that.
func (l Line) withoutCommand() Line {
	name := l.Text[:len(l.Text)-len(strings.TrimPrefix(l.Text, l.name))] // a task may be named like the command
	l.Text = name + strings.Replace(l.Text[len(name):], l.command+"  ", "", 1)
	l.command = ""
	return l
}

// seconds formats how long a check, a turn or a tool took.
func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + " s" }

// idleReasons says in words why a member is idle. A reason that is not in it is text already.
var idleReasons = map[muster.IdleReason]string{
	muster.IdleNoToolUse: "has ended its turn",
	muster.IdleMessages:  "waits for mail",
	muster.IdleTasks:     "waits for a task",
	muster.IdleTimeout:   "nothing came in time",
}

// tool is the name of the tool that an event tells of, and whose call it is when it is not the member's own.
func (t lineWriter) tool() string {
	if bySubagent(t.Event) {
		return cmp.Or(t.field("agent", 80), "subagent") + "'s " + t.field("tool", 40)
	}
	return t.field("tool", 40)
}

// memberLine is the line of an event of a member, a turn, a tool or a model. The progress has no lines of turns and
// tools, because the member's row says what it does, and none of when the lead begins and rests.
func (t lineWriter) memberLine() Line {
	l := Line{Who: t.who("?"), Show: t.Member != muster.Lead}
	switch t.Kind {
	case journal.MemberSpawned:
		l.Verb, l.Text = "joins", t.field("role", 60)
	case journal.MemberResumed:
		l.Verb, l.Text = "again", "goes on with its conversation"
	case journal.MemberWorking:
		l.Verb, l.Show = "works", false
	case journal.MemberIdle:
		l.Verb, l.Text = "idle", IdleReason("", t.field("reason", 80))
	case journal.MemberSteps:
		l.Verb, l.Show = "step", false
		l.Text = cmp.Or(stepText(t.Event), fmt.Sprintf("all %.0f done", t.Number("of")))
	case journal.MemberShutdown:
		l.Verb, l.Text = "stops", t.field("reason", 80)
	case journal.TurnStarted:
		l.Verb, l.Text, l.Show = "turn", strconv.Itoa(turnOf(t.Event)), false
	case journal.TurnEnded:
		in := t.Number("input") + t.Number("cache_read") + t.Number("cache_write") + t.Number("cache_write_long")
		l.Verb, l.Show = "said", false
		l.Text = t.field("stop", 40) + "  " + tokens(in) + " in, " + tokens(t.Number("output")) + " out  " +
			seconds(t.Number("seconds"))
		if cost := spend.FromFloat(t.Number("dollars")); cost > 0 {
			l.Text += "  " + cost.String()
		}
		if agent := t.field("agent", 80); agent != "" {
			l.Text = agent + ": " + l.Text
		}
	case journal.AgentStarted:
		l.Verb, l.Text, l.Show = "starts", Because(t.field("agent", 80), t.field("text", 120)), false
	case journal.AgentEnded:
		l.Verb, l.Show = "ends", false
		l.Text = fmt.Sprintf("%s  %s  %s", t.field("agent", 80), text.Count(int(t.Number("turns")), "turn"),
			seconds(t.Number("seconds")))
	case journal.ToolStarted:
		l.Verb, l.Text, l.Show = "tool", strings.TrimSpace(t.tool()+" "+t.field("text", 120)), false
	case journal.ToolEnded:
		l.Verb, l.Text, l.Show = "did", t.tool()+"  "+seconds(t.Number("seconds")), false
		if err := t.field("error", 120); err != "" {
			l.Text, l.Tone = l.Text+"  error: "+err, Bad
		}
	case journal.PermissionDecided:
		l.Verb, l.Text, l.Show = "may", t.field("what", 80)+": "+t.field("rule", 120), false
		if t.Text("outcome") == "denied" {
			l.Verb, l.Show, l.Tone = "denied", true, Bad
		}
	case journal.ContextCompacted:
		l.Verb, l.Show = "cuts", false
		l.Text = Because("its conversation from "+tokens(t.Number("before"))+" to "+tokens(t.Number("after"))+" tokens",
			t.field("text", 80))
	case journal.MemorySaved:
		l.Verb, l.Show = "saves", true
		l.Text = Because("memory "+t.field("name", 64), t.field("text", 120))
	case journal.ModelRetry: // also of the lead: a run that stands still for minutes looks broken
		l.Verb, l.Text, l.Show, l.Tone = "parked", t.field("text", 120), true, Bad
		if until := t.Number("until"); until > 0 {
			at := clock.FormatEnd(muster.Time(until).Local(), muster.Time(t.At).Local())
			l.Text = "until " + at + ": " + l.Text
		}
	}
	return l
}

// hookLine is the line of a hook that has run. The progress has those that did not just let everything go on.
func (t lineWriter) hookLine() Line {
	outcome := t.field("outcome", 20)
	l := Line{Who: t.who("muster"), Verb: "hook", Show: outcome != "ok" || t.Text("text") != ""}
	l.Text = Because(t.field("hook", 20)+" "+t.field("command", 60)+"  "+outcome+" "+seconds(t.Number("seconds")),
		t.field("text", 120))
	return l
}

// taskLine is the line of an event of a task. That of a claim names the part that is the task, for the progress may add
// the lane later.
func (t lineWriter) taskLine() Line {
	name := t.taskName()
	l := Line{Who: t.who("board"), Text: name, Show: true}
	reason := t.field("reason", 100)
	switch t.Kind {
	case journal.TaskCreated:
		l.Verb = "adds"
	case journal.TaskUpdated:
		l.Verb, l.Show = "edits", false
		if changed := t.changed(); slices.Contains(changed, "retry") {
			l.Verb, l.Show = "retry", true
		} else {
			l.Text = Because(name, strings.Join(changed, ", "))
		}
	case journal.TaskClaimed:
		l.Verb, l.Text, l.name = "takes", nameWith(name, laneText(t.Text("lane"))), name
	case journal.TaskReleased:
		l.Verb, l.Text = "leaves", Because(name, reason)
	case journal.TaskRevoked: // the event's member is who had the task
		l.Verb, l.Text = "frees", Because(name+" from "+l.Who, reason)
		l.Who = cmp.Or(t.field("by", 40), "board")
	case journal.TaskLanding:
		l.Verb, l.Text, l.Show = "lands?", nameWith(name, fmt.Sprintf("%.7s", t.field("head", 0))), false
	case journal.TaskRefused:
		l.Verb, l.Text, l.Tone = "refused", Because(name, t.field("reason", 160)), Bad
	case journal.TaskReturned:
		l.Who, l.Verb, l.Tone = "landing", "back", Bad
		why := t.field("text", 100)
		switch t.Text("reason") {
		case "conflict":
			why = "conflict in " + why
		case "secret":
			why = "secret in " + t.field("text", 140)
		case "check":
			why = cmp.Or(t.field("failed", 0), firstFailure(t.Text("text")))
			why = text.CutColumns(why, 90) + " on the merged tree"
		}
		switch with := t.field("with", 100); {
		case with != "" && t.Text("reason") == "check": // that is no proof of a connection
			why += "; landed meanwhile: " + with
		case with != "":
			why += ", with " + with
		}
		l.Text = name + " to " + t.who("its owner") + ": " + why
	case journal.TaskCompleted:
		return t.completedLine(l)
	case journal.TaskAttention:
		l.Who, l.Verb, l.Tone = "board", "needs", Bad
		l.Text = "you: " + nameWith(name, t.field("reason", 120)) + fmt.Sprintf("; muster task retry %d", t.Task)
	case journal.TaskDeleted:
		l.Verb = "drops"
	case journal.TaskEdgeRemoved:
		l.Verb, l.Show = "edits", false
		l.Text = fmt.Sprintf("%s no longer waits for %.0f", name, t.Number("blocker"))
	}
	return l
}

// changed returns the names of the fields that an update changed. The list is of another type in an event that was
// read from the journal than in one of this process.
func (t lineWriter) changed() []string {
	switch list := t.Fields["changed"].(type) {
	case []string, []any:
		return strings.Fields(text.OneLine(strings.Trim(fmt.Sprint(list), "[]")))
	}
	return nil
}

// failurePattern matches a line with what test programs and compilers print: FAIL, error:, panic, and file.go:3:5:
// ... It is compiled at the first failed check, because most commands never need it.
var failurePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|\W)(fail|failed|failure|error|panic|assertion)|^\S+\.\w+:\d+(:\d+)?: `)
})

// firstFailure returns the line of a check's output that people look for first: the first that looks like a failure.
// Where none does, it returns the last one, because programs that fail without a word say at least where they ended.
func firstFailure(output string) string {
	last := ""
	for s := range strings.Lines(output) {
		if s = text.OneLine(s); s == "" {
			continue
		}
		if failurePattern().MatchString(s) {
			return s
		}
		last = s
	}
	return cmp.Or(last, "the check fails")
}

// completedLine says that a task is done, with its commit and check if it changed anything. l has the task's name as
// its text.
func (t lineWriter) completedLine(l Line) Line {
	commit := t.field("commit", 0)
	if commit == "" {
		l.Verb, l.Text = "done", nameWith(l.Text, "no change")
		return l
	}
	verdict := t.field("receipt", 60)
	switch took, by := t.Number("seconds"), t.Number("covered_by"); {
	case by > 0:
		verdict = fmt.Sprintf("%s by #%.0f", verdict, by)
	case took > 0:
		verdict += " " + seconds(took)
	}
	if isFlaky, _ := t.Fields["flaky"].(bool); isFlaky {
		verdict += ", red by chance before"
	}
	if t.Text("receipt") == muster.ReceiptUnchecked && t.Text("check") == "" {
		verdict = "no check is set"
	}
	landed := checkLine(l.Text, t.field("check", 60), verdict, Good)
	landed.Verb = "lands"
	landed.Text = nameWith(l.Text, fmt.Sprintf("%.7s  %s", commit, proof(landed.command, verdict)))
	return landed
}
