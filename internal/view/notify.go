package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// Notifier returns the function that makes the text which rings the bell of a terminal, and shows a few words on the
// desktop where the terminal can. setting is auto (or ""), bell, osc or off; env reads the environment. It returns nil
// where nothing is to ring.
func Notifier(setting string, env func(string) string) func(words string) string {
	term, program := env("TERM"), env("TERM_PROGRAM")
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(term+" "+program, w) })
	}
	// Both set TERM for what runs in them; only tmux can pass sequences on to the terminal around it.
	inTmux := env("TMUX") != "" || has("tmux", "screen")
	desktop := ""
	switch {
	case has("foot", "rxvt"):
		desktop = "\x1b]777;notify;muster;%s\a"
	// Other terminals ignore OSC 9, but there are some that print it.
	case setting == "osc", has("iTerm", "WezTerm", "wezterm", "ghostty", "kitty"):
		desktop = "\x1b]9;muster: %s\a"
	}
	switch {
	case setting == "off" || term == "dumb":
		return nil
	// tmux passes on a bell, and other sequences only where its user has allowed it.
	case setting == "bell", setting != "osc" && inTmux:
		desktop = ""
	case inTmux:
		// tmux takes a sequence for the terminal around it in an envelope in which each ESC is doubled.
		desktop = "\x1bPtmux;" + strings.ReplaceAll(desktop, "\x1b", "\x1b\x1b") + "\x1b\\"
	}
	bell := "\a"
	if setting == "osc" {
		bell = ""
	}
	return func(words string) string {
		if desktop == "" {
			return bell
		}
		// The words may be a member's. They stay on one line, and cannot end the sequence and begin another one.
		// A semicolon would end the text for some terminals.
		return bell + fmt.Sprintf(desktop, strings.ReplaceAll(text.CutColumns(text.OneLine(words), 120), ";", ","))
	}
}

const (
	// leadAnswerTime is how long the lead may take to answer a question before the user is told, who may answer too.
	leadAnswerTime = 10 * time.Second
	// longTurn is how long the lead must have worked for the user to be told that it waits: after a shorter time the
	// user still looks.
	longTurn = 10 * time.Second
	// notifyInterval is the shortest time between two notifications.
	notifyInterval = 2 * time.Second
)

// alerts finds the events that need the user, who may be looking at something else.
type alerts struct {
	notify   func(words string) // nil: nobody is to be told
	last     time.Time          // of the last notification
	asked    []alert            // questions to the lead that are not answered yet, oldest first
	leadBusy time.Time          // since when the lead works without waiting for the user
}

// alert is a question that the user may have to be told of.
type alert struct {
	id    string
	at    time.Time
	words string
}

// event tells the user of an event that needs them. A question to the lead waits: the lead answers most of them.
func (a *alerts) event(e muster.Event, subject func(muster.TaskID) string) {
	at := muster.Time(e.At)
	switch e.Kind {
	case journal.RequestCreated:
		q := muster.Request{Kind: muster.RequestKind(e.Text("kind")), TaskID: e.Task}
		asks := alert{e.Text("request_id"), at, string(e.Member) + " asks: " + Question(q)}
		// What other members ask each other is not for the user.
		switch muster.Name(e.Text("to")) {
		case muster.User:
			a.tell(at, asks.words)
		case muster.Lead:
			a.asked = append(a.asked, asks)
		}
	case journal.RequestDecided:
		a.asked = slices.DeleteFunc(a.asked, func(q alert) bool { return q.id == e.Text("request_id") })
	case journal.TaskAttention:
		a.tell(at, fmt.Sprintf("task %d needs you: %s", e.Task, subject(e.Task)))
	case journal.MailSent:
		if e.Text("to") == string(muster.User) {
			a.tell(at, string(e.Member)+" writes to you")
		}
	case journal.RunEnded:
		words := "the run is done"
		if e.Number("code") != 0 {
			words = "the run has stopped, with work left"
		}
		a.tell(at, words)
	// The time counts from the first turn after the user has said something, and not from the last one.
	case journal.TurnStarted:
		if e.Member == muster.Lead && a.leadBusy.IsZero() {
			a.leadBusy = at
		}
	case journal.MemberIdle:
		if e.Member != muster.Lead || e.Text("reason") != WaitsForYou {
			return
		}
		if !a.leadBusy.IsZero() && at.Sub(a.leadBusy) >= longTurn {
			a.tell(at, "the lead waits for you")
		}
		a.leadBusy = time.Time{} // the event may come again while the lead waits, and tells nothing new
	}
}

// WaitsForYou is the reason of a lead's idling that a conversation gives: it waits for what the user says next.
const WaitsForYou = "waits for you"

func (a *alerts) tick(now time.Time) {
	for len(a.asked) > 0 && now.Sub(a.asked[0].at) >= leadAnswerTime {
		a.tell(now, a.asked[0].words)
		a.asked = a.asked[1:]
	}
}

// tell notifies the user, but not again within a moment: one look shows all that has come.
func (a *alerts) tell(at time.Time, words string) {
	if a.notify == nil || at.Sub(a.last).Abs() < notifyInterval {
		return
	}
	a.last = at
	a.notify(words)
}

// Notice tells the user of an event that needs them, for an event that is not shown as a line.
func (p *Progress) Notice(e muster.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alerts.event(e, p.subject)
}
