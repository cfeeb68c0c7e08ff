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
	Who  string
	Verb string // at most six letters
	Text string
	Tone Tone
	Show bool // in the progress of a run; the log has them all

	// What gives way first where the text does not fit: the command in it, then the task's name it begins with.
	command, name string
}

// taskColumn is the width of a task in a line that says more behind it.
const taskColumn = 24

// Facts are what the lines say beside the event itself. Either may be left out.
type Facts struct {
	Subject func(muster.TaskID) string // of a task, "" when it is not known
	Check   string                     // the run's check
}

// Lines says an event in words: one line, two for a landing whose check failed.
func Lines(e muster.Event, f Facts) []Line { return AppendLines(nil, e, f) }

// AppendLines appends what Lines says to some lines.
func AppendLines(to []Line, e muster.Event, f Facts) []Line {
	t := teller{e, f, to}
	switch kind, _, _ := strings.Cut(e.Kind, "."); kind {
	case "run", "check":
		return t.run()
	case "member", "turn", "tool", "model":
		return t.member()
	case "task":
		return t.task()
	case "mail", "request":
		return t.mail()
	}
	return t.lane()
}

type teller struct {
	muster.Event
	Facts
	lines []Line // before what it says
}

// str is a field as one line of at most n columns; 0: all of it.
func (t teller) str(field string, n int) string {
	s := OneLine(t.Text(field))
	if n > 0 {
		s = Cut(s, n)
	}
	return s
}

// words is a field that is a list of words.
func (t teller) words(field string) (all []string) {
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

// who is the member, or the given one when the event has none.
func (t teller) who(other string) string {
	if t.Member != "" {
		return OneLine(string(t.Member))
	}
	return other
}

// name is the event's task: its number and subject.
func (t teller) name() string {
	s := OneLine(t.Text("subject"))
	if s == "" && t.Subject != nil {
		s = OneLine(t.Subject(t.Task))
	}
	return strings.TrimSpace(strconv.Itoa(int(t.Task)) + " " + Cut(s, 60))
}

// and is the task's column with something behind it.
func (t teller) and(more string) string {
	if more == "" {
		return t.name()
	}
	return Pad(t.name(), taskColumn) + "  " + more
}

// Because is text with its reason, where there is one.
func Because(s, reason string) string {
	if reason == "" {
		return s
	}
	return s + ": " + reason
}

func (t teller) run() []Line {
	l := Line{Who: t.who("muster"), Show: true}
	switch t.Kind {
	case journal.RunStarted:
		l.Who, l.Verb, l.Text = t.who("lead"), "goal", t.str("goal", 200)
	case journal.RunResumed:
		l.Who, l.Verb, l.Text = t.who("lead"), "again", t.str("goal", 200)
	case journal.RunEnded:
		l.Verb, l.Text, l.Show = "ends", Because(fmt.Sprintf("exit %.0f", t.Number("code")), t.str("text", 200)), false
	case journal.RunNote:
		l.Who, l.Verb, l.Text = "muster", "note", t.str("text", 0)
	case journal.CheckStarted:
		return append(t.lines, running("the base", t.str("command", 60)))
	case journal.CheckBase:
		l.Who, l.Verb = "landing", "check"
		l.name, l.command = "the base", t.str("command", 60)
		base := Pad(l.name, taskColumn) + "  " + l.command + "  "
		switch t.Text("result") {
		case "ok":
			l.Text, l.Tone = base+"ok "+seconds(t.Number("seconds")), Good
		case "red":
			l.Text, l.Tone = base+"FAIL "+seconds(t.Number("seconds"))+"; until a landing turns it green, red ones are accepted", Bad
		default:
			l.Text, l.Tone = base+t.str("result", 60), Bad
		}
	default:
		return t.other()
	}
	return append(t.lines, l)
}

// running is a check that has begun.
func running(what, command string) Line {
	return Line{Who: "landing", Verb: "check", Text: Pad(what, taskColumn) + "  " + command + "  running", command: command, name: what}
}

// seconds is how long a check took.
func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + " s" }

var idleWords = map[muster.IdleReason]string{
	muster.IdleNoToolUse: "has ended its turn",
	muster.IdleMessages:  "waits for mail",
	muster.IdleTasks:     "waits for a task",
	muster.IdleTimeout:   "nothing came in time",
}

func (t teller) member() []Line {
	l := Line{Who: t.who("?"), Show: t.Member != muster.Lead}
	switch t.Kind {
	case journal.MemberSpawned:
		l.Verb, l.Text = "joins", t.str("role", 60)
	case journal.MemberResumed:
		l.Verb, l.Text = "again", "goes on with its conversation"
	case journal.MemberWorking:
		l.Verb, l.Text, l.Show = "works", "", false
	case journal.MemberIdle:
		l.Verb, l.Text = "idle", t.str("reason", 80)
		if w, ok := idleWords[muster.IdleReason(l.Text)]; ok {
			l.Text = w
		}
	case journal.MemberShutdown:
		l.Verb, l.Text = "stops", t.str("reason", 80)
	case journal.TurnStarted:
		l.Verb, l.Text, l.Show = "turn", strconv.FormatFloat(t.Number("turn"), 'f', 0, 64), false
	case journal.TurnEnded:
		in := t.Number("input") + t.Number("cache_read") + t.Number("cache_write")
		l.Verb, l.Show = "said", false
		l.Text = t.str("stop", 40) + "  " + tokens(in) + " in, " + tokens(t.Number("output")) + " out  " + seconds(t.Number("seconds"))
	case journal.ToolStarted:
		l.Verb, l.Text, l.Show = "tool", strings.TrimSpace(t.str("tool", 40)+" "+t.str("text", 120)), false
	case journal.ToolEnded:
		l.Verb, l.Text, l.Show = "did", t.str("tool", 40)+"  "+seconds(t.Number("seconds")), false
		if err := t.str("error", 120); err != "" {
			l.Text, l.Tone = l.Text+"  error: "+err, Bad
		}
	case journal.ModelRetry:
		l.Verb, l.Text, l.Show, l.Tone = "waits", t.str("text", 120), true, Bad
		if until := t.Number("until"); until > 0 {
			l.Text += "; goes on by itself at " + muster.Time(until).Local().Format("15:04:05")
		}
	default:
		return t.other()
	}
	return append(t.lines, l)
}

func (t teller) task() []Line {
	l := Line{Who: t.who("board"), Show: true}
	switch t.Kind {
	case journal.TaskCreated:
		l.Verb, l.Text = "adds", t.name()
	case journal.TaskUpdated:
		changed := t.words("changed")
		l.Verb, l.Text, l.Show = "edits", Because(t.name(), strings.Join(changed, ", ")), false
		if slices.Contains(changed, "retry") {
			l.Verb, l.Text, l.Show = "retry", t.name(), true
		}
	case journal.TaskClaimed:
		lane := t.str("lane", 40)
		if lane != "" {
			lane = "lane " + lane
		}
		l.Verb, l.Text, l.name = "takes", t.and(lane), t.name()
	case journal.TaskReleased:
		l.Verb, l.Text = "leaves", Because(t.name(), t.str("reason", 100))
	case journal.TaskRevoked:
		by := t.str("by", 40)
		l.Verb, l.Text = "frees", Because(t.name()+" from "+l.Who, t.str("reason", 100))
		l.Who = "board"
		if by != "" {
			l.Who = by
		}
	case journal.TaskLanding:
		l.Verb, l.Text, l.Show = "lands?", t.and(fmt.Sprintf("%.7s", t.str("head", 0))), false
	case journal.TaskReturned:
		return t.returned()
	case journal.TaskCompleted:
		return append(t.lines, t.completed(l))
	case journal.TaskAttention:
		l.Who, l.Verb, l.Tone = "board", "stuck", Bad
		l.Text = t.and(t.str("reason", 120)) + fmt.Sprintf("; muster task retry %d", t.Task)
	case journal.TaskDeleted:
		l.Verb, l.Text = "drops", t.name()
	case journal.TaskEdgeRemoved:
		l.Verb, l.Text, l.Show = "edits", fmt.Sprintf("%s no longer waits for %.0f", t.name(), t.Number("blocker")), false
	case journal.TaskForeign:
		l.Who, l.Verb, l.Text = "board", "note", Because(t.name(), t.str("text", 120))
	default:
		return t.other()
	}
	return append(t.lines, l)
}

func (t teller) returned() []Line {
	back := Line{Who: "landing", Verb: "back", Tone: Bad, Show: true}
	to := t.name() + " to " + t.who("its owner") + ": "
	if t.Text("reason") != "check" {
		back.Text = to + "conflict in " + t.str("text", 100)
		return append(t.lines, back)
	}
	proof, command := "FAIL "+seconds(t.Number("seconds")), Cut(OneLine(t.Check), 60)
	if command != "" {
		proof = command + "  " + proof
	}
	check := Line{Who: "landing", Verb: "check", Tone: Bad, Show: true, Text: t.and(proof), command: command, name: t.name()}
	back.Text = to + Cut(failure(t.Text("text")), 90) + " on the merged tree"
	return append(t.lines, check, back)
}

// failing finds what test programs and compilers say: FAIL, error:, panic, and file.go:3:5: ...
var failing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|\W)(fail|failed|failure|error|panic|assertion)|^\S+\.\w+:\d+(:\d+)?: `)
})

// failure is the one line of a check's output that people look for first; where none looks like it, the last.
func failure(output string) string {
	last := ""
	for s := range strings.Lines(output) {
		if s = OneLine(s); s == "" {
			continue
		}
		if failing().MatchString(s) {
			return s
		}
		last = s
	}
	if last == "" {
		return "the check fails"
	}
	return last
}

func (t teller) completed(l Line) Line {
	commit := t.str("commit", 0)
	if commit == "" {
		l.Verb, l.Text = "done", t.and("no change")
		return l
	}
	l.Who, l.Verb, l.Tone = "landing", "lands", Good
	proof := t.str("receipt", 60)
	if took := t.Number("seconds"); took > 0 {
		proof += " " + seconds(took)
	}
	if l.command = t.str("check", 60); l.command != "" {
		proof = l.command + "  " + proof
	}
	l.name = t.name()
	l.Text = t.and(fmt.Sprintf("%.7s  %s", commit, proof))
	return l
}

func (t teller) mail() []Line {
	l := Line{Who: t.who("?")}
	switch t.Kind {
	case journal.MailSent:
		kind := muster.MessageType(t.Text("type"))
		l.Verb, l.Text = "mails", Because("to "+t.str("to", 40), t.str("text", 80))
		l.Show = t.Member != muster.System && (kind == muster.MailMessage || kind == muster.MailBroadcast)
		if kind != muster.MailMessage {
			l.Text = Because("to "+t.str("to", 40), "("+OneLine(string(kind))+") "+t.str("text", 80))
		}
		if t.Member == muster.System && kind == muster.MailError && t.Text("to") == string(muster.Lead) && t.Task == 0 {
			l.Who, l.Verb, l.Text, l.Tone, l.Show = "board", "note", t.str("text", 160), Bad, true // a task's trouble is told by its own event
		}
		if kind == muster.MailBroadcast {
			l.Text = Because("to all", t.str("text", 80))
		}
	case journal.MailDelivered:
		l.Verb, l.Text = "reads", Count(int(t.Number("count")), "mail")
	case journal.MailRejected:
		l.Verb, l.Text, l.Tone, l.Show = "note", "a line of its inbox was no mail and is set aside: "+t.str("text", 100), Bad, true
	case journal.RequestCreated:
		l.Verb, l.Text, l.Show = "asks", Because(t.question(), t.str("text", 90)), true
		if t.Text("to") == string(muster.User) {
			l.Text += "; muster approve " + t.str("request_id", 8)
		}
	case journal.RequestDecided:
		if by := t.str("by", 40); by != "" {
			l.Who = by
		}
		l.Text, l.Show = Because(t.question(), t.str("text", 90)), true
		switch muster.RequestStatus(t.Text("status")) {
		case muster.RequestApproved:
			l.Verb, l.Show = "yes", muster.RequestKind(t.Text("kind")) != muster.AskShutdown
		case muster.RequestRejected:
			l.Verb, l.Tone = "no", Bad
		case muster.RequestExpired:
			l.Verb, l.Text = "late", t.question()+": no answer in time"
		default:
			l.Verb, l.Show = "drops", false // taken back by who asked
		}
	default:
		return t.other()
	}
	return append(t.lines, l)
}

// question is what a request asks, in two or three words.
func (t teller) question() string {
	switch muster.RequestKind(t.Text("kind")) {
	case muster.AskPlan:
		if t.Task != 0 {
			return fmt.Sprintf("plan for %d", t.Task)
		}
		return "plan"
	case muster.AskShutdown:
		if to := t.str("to", 40); to != "" {
			return "shutdown of " + to
		}
		return "shutdown"
	}
	return t.str("kind", 40)
}

func (t teller) lane() []Line {
	l := Line{Who: t.who("lanes"), Verb: "lane"}
	lane := t.str("lane", 40)
	switch t.Kind {
	case journal.LaneCreated:
		l.Text = lane + " made on " + t.str("branch", 60)
	case journal.LaneRemoved:
		l.Text = lane + " removed"
	case journal.LaneKept:
		l.Text = lane + " kept"
	case journal.LaneArchived:
		l.Text = lane + " archived as " + t.str("ref", 80)
	case journal.LaneFailed:
		l.Text, l.Tone, l.Show = Because(lane+" failed", t.str("text", 120))+"; muster worktree list", Bad, true
	case journal.StateCorrupt:
		l.Who, l.Verb, l.Text, l.Tone, l.Show = "state", "broken", t.str("text", 120)+"; muster doctor", Bad, true
	default:
		return t.other()
	}
	return append(t.lines, l)
}

// other is an event of a kind that this program does not know: a newer one wrote it.
func (t teller) other() []Line {
	data, err := muster.Line(t.Fields)
	if err != nil || len(t.Fields) == 0 {
		data = nil
	}
	return append(t.lines, Line{Who: t.who("?"), Verb: "event", Text: strings.TrimSpace(OneLine(t.Kind) + " " + Cut(OneLine(string(data)), 160))})
}
