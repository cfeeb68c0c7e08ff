package view

import (
	"fmt"
	"strings"

	"muster"
	"muster/journal"
)

// mailLines are the lines of mail and requests. Only mail that a person would miss is shown in the progress: what the
// runtime mails about a task is shown by the task's own event.
func (t lineWriter) mailLines() []Line {
	l := Line{Who: t.who("?")}
	switch t.Kind {
	case journal.MailSent:
		kind := muster.MessageType(t.Text("type"))
		l.Verb, l.Text = "mails", Because("to "+t.field("to", 40), t.field("text", 80))
		l.Show = t.Member != muster.System && (kind == muster.MailMessage || kind == muster.MailBroadcast)
		if kind != muster.MailMessage {
			l.Text = Because("to "+t.field("to", 40), "("+OneLine(string(kind))+") "+t.field("text", 80))
		}
		if t.Member == muster.System && kind == muster.MailError && t.Text("to") == string(muster.Lead) && t.Task == 0 {
			// a task's trouble is told by its own event
			l.Who, l.Verb, l.Text, l.Tone, l.Show = "board", "note", t.field("text", 160), Bad, true
		}
		if kind == muster.MailBroadcast {
			l.Text = Because("to all", t.field("text", 80))
		}
	case journal.MailDelivered:
		l.Verb, l.Text = "reads", Count(int(t.Number("count")), "mail")
	case journal.MailRejected:
		l.Verb, l.Text, l.Tone, l.Show = "note", "a line of its inbox was no mail and is set aside: "+t.field("text",
			100), Bad, true
	case journal.RequestCreated:
		l.Verb, l.Text, l.Show = "asks", Because(t.question(), t.field("text", 90)), true
		if t.Text("to") == string(muster.User) {
			l.Text += "; muster approve " + t.field("request_id", 8)
		}
	case journal.RequestDecided:
		if by := t.field("by", 40); by != "" {
			l.Who = by
		}
		l.Text, l.Show = Because(t.question(), t.field("text", 90)), true
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
		return t.unknown()
	}
	return append(t.lines, l)
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
	return t.field("kind", 40)
}

// laneLines are the lines of the events of lanes and of damaged state.
func (t lineWriter) laneLines() []Line {
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
	case journal.StateCorrupt:
		l.Who, l.Verb, l.Text, l.Tone, l.Show = "state", "broken", t.field("text", 120)+"; muster doctor", Bad, true
	default:
		return t.unknown()
	}
	return append(t.lines, l)
}

// unknown is the line of an event of a kind that only a newer program knows.
func (t lineWriter) unknown() []Line {
	data, err := muster.MarshalLine(t.Fields)
	if err != nil || len(t.Fields) == 0 {
		data = nil
	}
	return append(t.lines, Line{Who: t.who("?"), Verb: "event",
		Text: strings.TrimSpace(OneLine(t.Kind) + " " + Cut(OneLine(string(data)), 160))})
}
