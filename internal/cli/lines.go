package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"muster"
	"muster/journal"
)

// line is what people read of an event.
type line struct {
	who  string
	verb string // at most six letters
	text string
	tone tone
	show bool // in the progress of a run; the log has them all

	// What gives way first where the text does not fit: the command in it, then the task's name it begins with.
	command, name string
}

// taskColumn is the width of a task in a line that says more behind it.
const taskColumn = 24

// facts are what the lines say beside the event itself. Either may be left out.
type facts struct {
	subject func(muster.TaskID) string // of a task, "" when it is not known
	check   string                     // the run's check
}

// lines says an event in words: one line, two for a landing whose check failed.
func lines(e muster.Event, f facts) []line {
	t := teller{e, f}
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
	facts
}

// str is a field as one line of at most n columns; 0: all of it.
func (t teller) str(field string, n int) string {
	s := oneLine(t.Text(field))
	if n > 0 {
		s = cut(s, n)
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
			all = append(all, oneLine(fmt.Sprint(v)))
		}
	}
	return all
}

// who is the member, or the given one when the event has none.
func (t teller) who(other string) string {
	if t.Member != "" {
		return oneLine(string(t.Member))
	}
	return other
}

// name is the event's task: its number and subject.
func (t teller) name() string {
	s := oneLine(t.Text("subject"))
	if s == "" && t.subject != nil {
		s = oneLine(t.subject(t.Task))
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", t.Task, cut(s, 60)))
}

// and is the task's column with something behind it.
func (t teller) and(more string) string {
	if more == "" {
		return t.name()
	}
	return pad(t.name(), taskColumn) + "  " + more
}

// because is text with its reason, where there is one.
func because(s, reason string) string {
	if reason == "" {
		return s
	}
	return s + ": " + reason
}

func (t teller) run() []line {
	l := line{who: t.who("muster"), show: true}
	switch t.Kind {
	case journal.RunStarted:
		l.who, l.verb, l.text = t.who("lead"), "goal", t.str("goal", 200)
	case journal.RunResumed:
		l.who, l.verb, l.text = t.who("lead"), "again", t.str("goal", 200)
	case journal.RunEnded:
		l.verb, l.text, l.show = "ends", because(fmt.Sprintf("exit %.0f", t.Number("code")), t.str("text", 200)), false
	case journal.RunNote:
		l.who, l.verb, l.text = "muster", "note", t.str("text", 0)
	case journal.CheckBase:
		l.who, l.verb = "landing", "check"
		l.name, l.command = "the base", t.str("command", 60)
		base := pad(l.name, taskColumn) + "  " + l.command + "  "
		switch t.Text("result") {
		case "ok":
			l.text, l.tone = base+"ok "+seconds(t.Number("seconds")), good
		case "red":
			l.text, l.tone = base+"FAIL "+seconds(t.Number("seconds"))+"; until a landing turns it green, red ones are accepted", bad
		default:
			l.text, l.tone = base+t.str("result", 60), bad
		}
	default:
		return t.other()
	}
	return []line{l}
}

// seconds is how long a check took.
func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

var idleWords = map[muster.IdleReason]string{
	muster.IdleNoToolUse: "has ended its turn",
	muster.IdleMessages:  "waits for mail",
	muster.IdleTasks:     "waits for a task",
	muster.IdleTimeout:   "nothing came in time",
}

func (t teller) member() []line {
	l := line{who: t.who("?"), show: t.Member != muster.Lead}
	switch t.Kind {
	case journal.MemberSpawned:
		l.verb, l.text = "joins", t.str("role", 60)
	case journal.MemberResumed:
		l.verb, l.text = "again", "goes on with its conversation"
	case journal.MemberWorking:
		l.verb, l.text, l.show = "works", "", false
	case journal.MemberIdle:
		l.verb, l.text = "idle", t.str("reason", 80)
		if w, ok := idleWords[muster.IdleReason(l.text)]; ok {
			l.text = w
		}
	case journal.MemberShutdown:
		l.verb, l.text = "stops", t.str("reason", 80)
	case journal.TurnStarted:
		l.verb, l.text, l.show = "turn", fmt.Sprintf("%.0f", t.Number("turn")), false
	case journal.TurnEnded:
		in := t.Number("input") + t.Number("cache_read") + t.Number("cache_write")
		l.verb, l.show = "said", false
		l.text = fmt.Sprintf("%s  %s in, %s out  %s", t.str("stop", 40), count(in), count(t.Number("output")), seconds(t.Number("seconds")))
	case journal.ToolStarted:
		l.verb, l.text, l.show = "tool", strings.TrimSpace(t.str("tool", 40)+" "+t.str("text", 120)), false
	case journal.ToolEnded:
		l.verb, l.text, l.show = "did", t.str("tool", 40)+"  "+seconds(t.Number("seconds")), false
		if err := t.str("error", 120); err != "" {
			l.text, l.tone = l.text+"  error: "+err, bad
		}
	case journal.ModelRetry:
		l.verb, l.text, l.show, l.tone = "waits", t.str("text", 120), true, bad
		if until := t.Number("until"); until > 0 {
			l.text += "; goes on by itself at " + muster.Time(until).Local().Format("15:04:05")
		}
	default:
		return t.other()
	}
	return []line{l}
}

func (t teller) task() []line {
	l := line{who: t.who("board"), show: true}
	switch t.Kind {
	case journal.TaskCreated:
		l.verb, l.text = "adds", t.name()
	case journal.TaskUpdated:
		changed := t.words("changed")
		l.verb, l.text, l.show = "edits", because(t.name(), strings.Join(changed, ", ")), false
		if slices.Contains(changed, "retry") {
			l.verb, l.text, l.show = "retry", t.name(), true
		}
	case journal.TaskClaimed:
		lane := t.str("lane", 40)
		if lane != "" {
			lane = "lane " + lane
		}
		l.verb, l.text, l.name = "takes", t.and(lane), t.name()
	case journal.TaskReleased:
		l.verb, l.text = "leaves", because(t.name(), t.str("reason", 100))
	case journal.TaskRevoked:
		by := t.str("by", 40)
		l.verb, l.text = "frees", because(t.name()+" from "+l.who, t.str("reason", 100))
		l.who = "board"
		if by != "" {
			l.who = by
		}
	case journal.TaskLanding:
		l.verb, l.text, l.show = "lands?", t.and(fmt.Sprintf("%.7s", t.str("head", 0))), false
	case journal.TaskReturned:
		return t.returned()
	case journal.TaskCompleted:
		return []line{t.completed(l)}
	case journal.TaskAttention:
		l.who, l.verb, l.tone = "board", "stuck", bad
		l.text = t.and(t.str("reason", 120)) + fmt.Sprintf("; muster task retry %d", t.Task)
	case journal.TaskDeleted:
		l.verb, l.text = "drops", t.name()
	case journal.TaskEdgeRemoved:
		l.verb, l.text, l.show = "edits", fmt.Sprintf("%s no longer waits for %.0f", t.name(), t.Number("blocker")), false
	case journal.TaskForeign:
		l.who, l.verb, l.text = "board", "note", because(t.name(), t.str("text", 120))
	default:
		return t.other()
	}
	return []line{l}
}

func (t teller) returned() []line {
	back := line{who: "landing", verb: "back", tone: bad, show: true}
	to := t.name() + " to " + t.who("its owner") + ": "
	if t.Text("reason") != "check" {
		back.text = to + "conflict in " + t.str("text", 100)
		return []line{back}
	}
	proof, command := "FAIL "+seconds(t.Number("seconds")), cut(oneLine(t.check), 60)
	if command != "" {
		proof = command + "  " + proof
	}
	check := line{who: "landing", verb: "check", tone: bad, show: true, text: t.and(proof), command: command, name: t.name()}
	back.text = to + cut(failure(t.Text("text")), 90) + " on the merged tree"
	return []line{check, back}
}

// failing finds what test programs and compilers say: FAIL, error:, panic, and file.go:3:5: ...
var failing = regexp.MustCompile(`(?i)(^|\W)(fail|failed|failure|error|panic|assertion)|^\S+\.\w+:\d+(:\d+)?: `)

// failure is the one line of a check's output that people look for first; where none looks like it, the last.
func failure(output string) string {
	last := ""
	for s := range strings.Lines(output) {
		if s = oneLine(s); s == "" {
			continue
		}
		if failing.MatchString(s) {
			return s
		}
		last = s
	}
	if last == "" {
		return "the check fails"
	}
	return last
}

func (t teller) completed(l line) line {
	commit := t.str("commit", 0)
	if commit == "" {
		l.verb, l.text = "done", t.and("no change")
		return l
	}
	l.who, l.verb, l.tone = "landing", "lands", good
	proof := t.str("receipt", 60)
	if took := t.Number("seconds"); took > 0 {
		proof += " " + seconds(took)
	}
	if l.command = t.str("check", 60); l.command != "" {
		proof = l.command + "  " + proof
	}
	l.name = t.name()
	l.text = t.and(fmt.Sprintf("%.7s  %s", commit, proof))
	return l
}

func (t teller) mail() []line {
	l := line{who: t.who("?")}
	switch t.Kind {
	case journal.MailSent:
		kind := muster.MessageType(t.Text("type"))
		l.verb, l.text = "mails", because("to "+t.str("to", 40), t.str("text", 80))
		l.show = t.Member != muster.System && (kind == muster.MailMessage || kind == muster.MailBroadcast)
		if kind != muster.MailMessage {
			l.text = because("to "+t.str("to", 40), "("+oneLine(string(kind))+") "+t.str("text", 80))
		}
		if t.Member == muster.System && kind == muster.MailError && t.Text("to") == string(muster.Lead) && t.Task == 0 {
			l.who, l.verb, l.text, l.tone, l.show = "board", "note", t.str("text", 160), bad, true // a task's trouble is told by its own event
		}
		if kind == muster.MailBroadcast {
			l.text = because("to all", t.str("text", 80))
		}
	case journal.MailDelivered:
		l.verb, l.text = "reads", number(int(t.Number("count")), "mail")
	case journal.MailRejected:
		l.verb, l.text, l.tone, l.show = "note", "a line of its inbox was no mail and is set aside: "+t.str("text", 100), bad, true
	case journal.RequestCreated:
		l.verb, l.text, l.show = "asks", because(t.question(), t.str("text", 90)), true
		if t.Text("to") == string(muster.User) {
			l.text += "; muster approve " + t.str("request_id", 8)
		}
	case journal.RequestDecided:
		if by := t.str("by", 40); by != "" {
			l.who = by
		}
		l.text, l.show = because(t.question(), t.str("text", 90)), true
		switch muster.RequestStatus(t.Text("status")) {
		case muster.RequestApproved:
			l.verb, l.show = "yes", muster.RequestKind(t.Text("kind")) != muster.AskShutdown
		case muster.RequestRejected:
			l.verb, l.tone = "no", bad
		case muster.RequestExpired:
			l.verb, l.text = "late", t.question()+": no answer in time"
		default:
			l.verb, l.show = "drops", false // taken back by who asked
		}
	default:
		return t.other()
	}
	return []line{l}
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

func (t teller) lane() []line {
	l := line{who: t.who("lanes"), verb: "lane"}
	lane := t.str("lane", 40)
	switch t.Kind {
	case journal.LaneCreated:
		l.text = lane + " made on " + t.str("branch", 60)
	case journal.LaneRemoved:
		l.text = lane + " removed"
	case journal.LaneKept:
		l.text = lane + " kept"
	case journal.LaneArchived:
		l.text = lane + " archived as " + t.str("ref", 80)
	case journal.LaneFailed:
		l.text, l.tone, l.show = because(lane+" failed", t.str("text", 120))+"; muster worktree list", bad, true
	case journal.StateCorrupt:
		l.who, l.verb, l.text, l.tone, l.show = "state", "broken", t.str("text", 120)+"; muster doctor", bad, true
	default:
		return t.other()
	}
	return []line{l}
}

// other is an event of a kind that this program does not know: a newer one wrote it.
func (t teller) other() []line {
	data, err := muster.Line(t.Fields)
	if err != nil || len(t.Fields) == 0 {
		data = nil
	}
	return []line{{who: t.who("?"), verb: "event", text: strings.TrimSpace(oneLine(t.Kind) + " " + cut(oneLine(string(data)), 160))}}
}
