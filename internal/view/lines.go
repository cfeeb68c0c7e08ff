package view

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"muster"
	"muster/journal"
)

// Line is what people read of an event.
type Line struct {
	// Who is the member, or the part of the program, that the event is about.
	Who  string
	Verb string // at most six letters
	Text string
	// Tone says whether the event is good or bad news.
	Tone Tone
	Show bool // in the progress of a run; the log has them all

	// The parts that are shortened first where the text does not fit: the command in it, then the task's name that it
	// begins with.
	command, name string
}

// taskColumn is the width of a task's name in a line that says more after it.
const taskColumn = 24

// Facts are what the lines say beyond the event itself. Each may be left out.
type Facts struct {
	Subject func(muster.TaskID) string // of a task, "" when it is not known
	Check   string                     // the run's check
}

// Lines returns an event in words: one line, or two for a landing whose check failed.
func Lines(e muster.Event, f Facts) []Line { return AppendLines(nil, e, f) }

// AppendLines appends to a slice what Lines returns. A log of many events saves the allocations.
func AppendLines(to []Line, e muster.Event, f Facts) []Line {
	t := lineWriter{e, f, to}
	switch kind, _, _ := strings.Cut(e.Kind, "."); kind {
	case "run", "check":
		return t.runLines()
	case "member", "turn", "tool", "model":
		return t.memberLines()
	case "task":
		return t.taskLines()
	case "mail", "request":
		return t.mailLines()
	}
	return t.laneLines()
}

// lineWriter puts one event into words. There is a method for each group of kinds. An event of a kind that is not known
// here comes from a newer program and is shown as it stands.
type lineWriter struct {
	muster.Event
	Facts
	lines []Line // before what it says
}

// field returns a field of the event as one line of at most n columns, or of any length if n is 0.
func (t lineWriter) field(field string, n int) string {
	s := OneLine(t.Text(field))
	if n > 0 {
		s = Cut(s, n)
	}
	return s
}

// list returns a field that is a list of words.
func (t lineWriter) list(field string) (all []string) {
	switch list := t.Fields[field].(type) {
	case []string:
		all = append(all, list...)
	case []any:
		for _, v := range list {
			all = append(all, OneLine(fmt.Sprint(v)))
		}
	}
	return all
}

// who returns the event's member, or other when it has none.
func (t lineWriter) who(other string) string {
	if t.Member != "" {
		return OneLine(string(t.Member))
	}
	return other
}

// taskName returns the number and the subject of the event's task.
func (t lineWriter) taskName() string {
	s := OneLine(t.Text("subject"))
	if s == "" && t.Subject != nil {
		s = OneLine(t.Subject(t.Task))
	}
	return strings.TrimSpace(strconv.Itoa(int(t.Task)) + " " + Cut(s, 60))
}

// taskWith returns the task's name, padded to its column, and more text after it.
func (t lineWriter) taskWith(more string) string {
	if more == "" {
		return t.taskName()
	}
	return Pad(t.taskName(), taskColumn) + "  " + more
}

// Because returns a text with its reason after a colon, where there is a reason.
func Because(s, reason string) string {
	if reason == "" {
		return s
	}
	return s + ": " + reason
}

// runLines are the lines of the events of runs and of checks of the base.
func (t lineWriter) runLines() []Line {
	l := Line{Who: t.who("muster"), Show: true}
	switch t.Kind {
	case journal.RunStarted:
		l.Who, l.Verb, l.Text = t.who("lead"), "goal", t.field("goal", 200)
	case journal.RunResumed:
		l.Who, l.Verb, l.Text = t.who("lead"), "again", t.field("goal", 200)
	case journal.RunEnded:
		l.Verb, l.Text, l.Show = "ends", Because(fmt.Sprintf("exit %.0f", t.Number("code")), t.field("text", 200)),
			false
	case journal.RunNote:
		l.Who, l.Verb, l.Text = "muster", "note", t.field("text", 0)
	case journal.CheckStarted:
		return append(t.lines, runningCheck("the base", t.field("command", 60)))
	case journal.CheckBase:
		l.Who, l.Verb = "landing", "check"
		l.name, l.command = "the base", t.field("command", 60)
		base := Pad(l.name, taskColumn) + "  " + l.command + "  "
		switch t.Text("result") {
		case "ok":
			l.Text, l.Tone = base+"ok "+seconds(t.Number("seconds")), Good
		case "red":
			l.Text, l.Tone = base+"FAIL "+seconds(t.Number("seconds"))+
				"; until a landing turns it green, red ones are accepted", Bad
		default:
			l.Text, l.Tone = base+t.field("result", 60), Bad
		}
	default:
		return t.unknown()
	}
	return append(t.lines, l)
}

// runningCheck is the line of a check that has begun.
func runningCheck(what, command string) Line {
	return Line{Who: "landing", Verb: "check", Text: Pad(what, taskColumn) + "  " + command + "  running",
		command: command, name: what}
}

// seconds formats how long a check took.
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
		return "subagent's " + t.field("tool", 40)
	}
	return t.field("tool", 40)
}

// memberLines are the lines of the events of members, turns, tools and models.
func (t lineWriter) memberLines() []Line {
	l := Line{Who: t.who("?"), Show: t.Member != muster.Lead}
	switch t.Kind {
	case journal.MemberSpawned:
		l.Verb, l.Text = "joins", t.field("role", 60)
	case journal.MemberResumed:
		l.Verb, l.Text = "again", "goes on with its conversation"
	case journal.MemberWorking:
		l.Verb, l.Text, l.Show = "works", "", false
	case journal.MemberIdle:
		l.Verb, l.Text = "idle", t.field("reason", 80)
		if w, ok := idleReasons[muster.IdleReason(l.Text)]; ok {
			l.Text = w
		}
	case journal.MemberShutdown:
		l.Verb, l.Text = "stops", t.field("reason", 80)
	case journal.TurnStarted:
		l.Verb, l.Text, l.Show = "turn", strconv.FormatFloat(t.Number("turn"), 'f', 0, 64), false
	case journal.TurnEnded:
		in := t.Number("input") + t.Number("cache_read") + t.Number("cache_write")
		l.Verb, l.Show = "said", false
		l.Text = t.field("stop", 40) + "  " + tokens(in) + " in, " + tokens(t.Number("output")) + " out  " +
			seconds(t.Number("seconds"))
	case journal.ToolStarted:
		l.Verb, l.Text, l.Show = "tool", strings.TrimSpace(t.tool()+" "+t.field("text", 120)), false
	case journal.ToolEnded:
		l.Verb, l.Text, l.Show = "did", t.tool()+"  "+seconds(t.Number("seconds")), false
		if err := t.field("error", 120); err != "" {
			l.Text, l.Tone = l.Text+"  error: "+err, Bad
		}
	case journal.ModelRetry:
		l.Verb, l.Text, l.Show, l.Tone = "waits", t.field("text", 120), true, Bad
		if until := t.Number("until"); until > 0 {
			l.Text += "; goes on by itself at " + muster.Time(until).Local().Format("15:04:05")
		}
	default:
		return t.unknown()
	}
	return append(t.lines, l)
}

// taskLines are the lines of the events of tasks.
func (t lineWriter) taskLines() []Line {
	l := Line{Who: t.who("board"), Show: true}
	switch t.Kind {
	case journal.TaskCreated:
		l.Verb, l.Text = "adds", t.taskName()
	case journal.TaskUpdated:
		changed := t.list("changed")
		l.Verb, l.Text, l.Show = "edits", Because(t.taskName(), strings.Join(changed, ", ")), false
		if slices.Contains(changed, "retry") {
			l.Verb, l.Text, l.Show = "retry", t.taskName(), true
		}
	case journal.TaskClaimed:
		lane := t.field("lane", 40)
		if lane != "" {
			lane = "lane " + lane
		}
		l.Verb, l.Text, l.name = "takes", t.taskWith(lane), t.taskName()
	case journal.TaskReleased:
		l.Verb, l.Text = "leaves", Because(t.taskName(), t.field("reason", 100))
	case journal.TaskRevoked:
		by := t.field("by", 40)
		l.Verb, l.Text = "frees", Because(t.taskName()+" from "+l.Who, t.field("reason", 100))
		l.Who = "board"
		if by != "" {
			l.Who = by
		}
	case journal.TaskLanding:
		l.Verb, l.Text, l.Show = "lands?", t.taskWith(fmt.Sprintf("%.7s", t.field("head", 0))), false
	case journal.TaskReturned:
		return t.returnedLines()
	case journal.TaskCompleted:
		return append(t.lines, t.completedLine(l))
	case journal.TaskAttention:
		l.Who, l.Verb, l.Tone = "board", "stuck", Bad
		l.Text = t.taskWith(t.field("reason", 120)) + fmt.Sprintf("; muster task retry %d", t.Task)
	case journal.TaskDeleted:
		l.Verb, l.Text = "drops", t.taskName()
	case journal.TaskEdgeRemoved:
		l.Verb, l.Text, l.Show = "edits", fmt.Sprintf("%s no longer waits for %.0f", t.taskName(),
			t.Number("blocker")), false
	case journal.TaskForeign:
		l.Who, l.Verb, l.Text = "board", "note", Because(t.taskName(), t.field("text", 120))
	default:
		return t.unknown()
	}
	return append(t.lines, l)
}

// returnedLines say that a task went back to its owner, and why: a conflict, or a check that failed on the merged
// tree.
func (t lineWriter) returnedLines() []Line {
	back := Line{Who: "landing", Verb: "back", Tone: Bad, Show: true}
	to := t.taskName() + " to " + t.who("its owner") + ": "
	if t.Text("reason") != "check" {
		back.Text = to + "conflict in " + t.field("text", 100)
		return append(t.lines, back)
	}
	proof, command := "FAIL "+seconds(t.Number("seconds")), Cut(OneLine(t.Check), 60)
	if command != "" {
		proof = command + "  " + proof
	}
	check := Line{Who: "landing", Verb: "check", Tone: Bad, Show: true, Text: t.taskWith(proof), command: command,
		name: t.taskName()}
	back.Text = to + Cut(firstFailure(t.Text("text")), 90) + " on the merged tree"
	return append(t.lines, check, back)
}

// failurePattern matches what test programs and compilers print: FAIL, error:, panic, and file.go:3:5: ... It is
// compiled at the first failed check, because most commands never need it.
var failurePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|\W)(fail|failed|failure|error|panic|assertion)|^\S+\.\w+:\d+(:\d+)?: `)
})

// firstFailure returns the line of a check's output that people look for first. Where no line looks like a failure, it
// returns the last one.
func firstFailure(output string) string {
	last := ""
	for s := range strings.Lines(output) {
		if s = OneLine(s); s == "" {
			continue
		}
		if failurePattern().MatchString(s) {
			return s
		}
		last = s
	}
	if last == "" {
		return "the check fails"
	}
	return last
}

// completedLine says that a task is done, with its commit and check if it changed anything.
func (t lineWriter) completedLine(l Line) Line {
	commit := t.field("commit", 0)
	if commit == "" {
		l.Verb, l.Text = "done", t.taskWith("no change")
		return l
	}
	l.Who, l.Verb, l.Tone = "landing", "lands", Good
	proof := t.field("receipt", 60)
	if took := t.Number("seconds"); took > 0 {
		proof += " " + seconds(took)
	}
	if l.command = t.field("check", 60); l.command != "" {
		proof = l.command + "  " + proof
	}
	l.name = t.taskName()
	l.Text = t.taskWith(fmt.Sprintf("%.7s  %s", commit, proof))
	return l
}
