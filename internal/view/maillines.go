package view

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// mailLine is the line of mail. Only mail that a person would miss is shown in the progress: what the runtime mails
// about a task is shown by the task's own event.
func (t lineWriter) mailLine() Line {
	l := Line{Who: t.who("?")}
	switch t.Kind {
	case journal.MailSent:
		// A message and a broadcast are what their text says. Mail of another kind says first which it is.
		kind, to, words := muster.MessageType(t.Text("type")), "to "+t.field("to", 40), t.field("text", 80)
		l.Verb, l.Show = "mails", t.Member != muster.System
		switch {
		case kind == muster.MailBroadcast:
			to = "to all"
		case kind != muster.MailMessage:
			words, l.Show = "("+MailWord(kind)+") "+words, false
		}
		l.Text = Because(to, words)
		if t.Member == muster.System && kind == muster.MailError && t.Text("to") == string(muster.Lead) && t.Task == 0 {
			// Trouble that belongs to no task has no event of its own, so its mail to the lead is shown as a note. A
			// task's trouble is shown by the task's event.
			l = Line{Who: "board", Verb: "note", Text: t.field("text", 160), Tone: Bad, Show: true}
		}
	case journal.MailDelivered:
		l.Verb, l.Text = "reads", text.Count(int(t.Number("count")), "mail")
	case journal.MailRejected:
		l.Verb, l.Tone, l.Show = "note", Bad, true
		l.Text = "a line of its inbox was no mail and is set aside: " + t.field("text", 100)
	}
	return l
}

// requestLine is the line of a request or of its answer. One that the user must answer ends with the command to type.
func (t lineWriter) requestLine() Line {
	l := Line{Who: t.who("?"), Text: Because(t.question(), t.field("text", 90)), Show: true}
	if muster.RequestKind(t.Text("kind")) == muster.AskInterrupt { // who asked is told why it was not done
		l.Verb, l.Text = "stops", "the turn of "+string(muster.Lead)
		l.Show = muster.RequestStatus(t.Text("status")) == muster.RequestApproved
		return l
	}
	switch t.Kind {
	case journal.RequestCreated:
		l.Verb = "asks"
		if t.Text("to") == string(muster.User) && !t.OneKey {
			l.Text, l.whole = l.Text+"; muster approve "+t.field("request_id", 8), true
		}
	case journal.RequestDecided:
		l.Who = cmp.Or(t.field("by", 40), l.Who)
		if t.Member != "" && l.Who != string(t.Member) {
			l.Text = Because(text.OneLine(string(t.Member))+"'s "+t.question(), t.field("text", 90))
		}
		switch muster.RequestStatus(t.Text("status")) {
		case muster.RequestApproved: // of a shutdown the member's own end says it
			l.Verb, l.Show = "yes", muster.RequestKind(t.Text("kind")) != muster.AskShutdown
		case muster.RequestRejected:
			l.Verb, l.Tone = "no", Bad
		case muster.RequestExpired:
			l.Verb, l.Text = "late", t.question()+": no answer in time"
		default: // taken back by the member that asked
			l.Verb, l.Show = "drops", muster.RequestKind(t.Text("kind")) == muster.AskPermission
		}
	}
	return l
}

// withQuestion returns the event of an answer with what was asked in its text, for those who have not read that in a
// line of its own. An answer in words stands for itself.
func withQuestion(e muster.Event) muster.Event {
	asked, isDropped := e.Text("asked"), muster.RequestStatus(e.Text("status")) == muster.RequestCancelled
	if e.Kind == journal.RequestDecided && asked != "" && (isDropped || e.Text("text") == "") {
		e.Fields = maps.Clone(e.Fields)
		if e.Fields["text"] = asked; isDropped { // why comes first, because the end is cut
			e.Fields["text"] = Because(e.Text("text"), asked)
		}
	}
	return e
}

// question is what the event's request asks, in two or three words. Question says the same of a request's record.
func (t lineWriter) question() string {
	switch muster.RequestKind(t.Text("kind")) {
	case muster.AskPlan:
		if t.Task != 0 {
			return fmt.Sprintf("plan for %d", t.Task)
		}
		return "plan"
	case muster.AskShutdown:
		if to := t.field("to", 40); to != "" {
			return "shutdown of " + to
		}
		return "shutdown"
	}
	return strings.ReplaceAll(t.field("kind", 40), "_", " ")
}

// laneLine is the line of an event of a lane or of damaged state. The progress has only what went wrong: that a lane
// was made stands in the line of its claim, and where it went is nobody's concern while the run goes on.
func (t lineWriter) laneLine() Line {
	l := Line{Who: t.who("lanes"), Verb: "lane"}
	lane := t.field("lane", 40)
	switch t.Kind {
	case journal.LaneCreated:
		l.Text = lane + " made on " + t.field("branch", 60)
	case journal.LaneRemoved:
		l.Text = lane + " removed"
	case journal.LaneKept:
		l.Text = lane + " kept"
	case journal.LaneArchived:
		l.Text = lane + " archived as " + t.field("ref", 80)
	case journal.LaneFailed:
		l.Text, l.Tone, l.Show = Because(lane+" failed", t.field("text", 120))+"; muster worktree list", Bad, true
	case journal.LaneCollides:
		c := collisionOf(t.Event)
		l = Line{Who: t.who("lanes"), Verb: "early", Text: CollisionText(c), Tone: Bad, Show: true}
		if isOver, _ := t.Fields["over"].(bool); isOver {
			l.Tone, l.Text = Good, fmt.Sprintf("%d no longer collides with %s", c.Task, collidesWith(c))
		}
	case journal.StateForeign:
		text := t.field("text", 240) + "; use the commands of muster, or edit it when the team has stopped"
		l = Line{Who: "state", Verb: "undone", Text: text, Tone: Bad, Show: true, whole: true}
	case journal.StateCorrupt:
		l = Line{Who: "state", Verb: "broken", Text: t.field("text", 120) + "; muster doctor", Tone: Bad, Show: true}
	default:
		l.Verb = ""
	}
	return l
}

// unknownLine is the line of an event of a kind that only a newer program knows: the kind and the fields, as the
// journal has them. The log shows it, so that an older program does not hide what happened.
func (t lineWriter) unknownLine() Line {
	words := text.OneLine(t.Kind)
	if data, err := muster.MarshalLine(t.Fields); err == nil && len(t.Fields) > 0 {
		words += " " + text.CutColumns(text.OneLine(string(data)), 160)
	}
	return Line{Who: t.who("?"), Verb: "event", Text: words}
}
