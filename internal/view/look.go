package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
)

// Look is how a member looks, in a word. Every face shows the same word, because each asks another thing of the user:
// nothing where a member is idle or waits for others, an answer where it needs them, a resume where it is dead.
type Look string

// The looks of a member.
const (
	LookWorking  Look = "working"
	LookNeedsYou Look = "needs you" // it waits for the user: for an answer or the next message
	LookWaiting  Look = "waiting"   // for mail, for a teammate, or for a provider's limit
	LookLanding  Look = "landing"   // its task is merged and checked
	LookIdle     Look = "idle"      // it has nothing to do
	LookStopped  Look = "stopped"   // it has ended, or no process of its team lives
	LookDead     Look = "dead"      // its process has gone while the team lives
)

// Tone is the colour of a look. It says nothing that the word does not say.
func (l Look) Tone() Tone {
	switch l {
	case LookWorking, LookLanding:
		return Good
	case LookNeedsYou:
		return Yours
	case LookDead:
		return Bad
	case LookIdle, LookStopped:
		return Faint
	}
	return Plain
}

// Standing is how a member stands: how it looks, what it does, or why it does nothing, and since when.
type Standing struct {
	Look  Look
	What  string // without the look, in one line
	Since float64
}

// Text says how a member stands in one line. That somebody works is not said: what it does says so.
func (s Standing) Text() string {
	switch {
	case s.Look == LookWorking:
		return s.What
	case s.Look == LookWaiting && strings.HasPrefix(s.What, "for "):
		return string(s.Look) + " " + s.What
	}
	return Because(string(s.Look), s.What)
}

// Standing says how a member stands. subject names tasks, and returns "" for unknown ones. The record says what the
// member last wrote down. For a living member, the events know more: which tool it runs.
func (o Overview) Standing(m Member, subject func(muster.TaskID) string) Standing {
	s := Standing{Since: m.Since}
	doing, now := waitsFor(text.OneLine(m.Doing)), o.Presence.Find(m.Name)
	if m.Doing == lands { // the look says so
		doing = ""
	}
	if now != nil && (!m.Alive || m.Status != muster.Working) { // the record is newer than its events
		now = nil
	}
	s.Look = o.look(m, now)
	// The record of a member has the subject of its task only where it was looked up.
	task := ""
	if m.Task != 0 {
		task = strings.TrimSpace(fmt.Sprintf("%d %s", m.Task, text.OneLine(cmp.Or(m.Subject, subject(m.Task)))))
	}
	if now != nil {
		words, at := o.Presence.DoingOf(now, o.Now)
		s.Since = muster.UnixTime(at)
		if now.state == LookLanding { // the record says only that it lands
			doing = cmp.Or(words, doing)
		}
		doing = cmp.Or(doing, waitsFor(words))
	}
	// What a member has done before it stopped, or died, is its task: what it has run has ended with it.
	switch s.Look {
	case LookStopped:
		s.What = task
	case LookDead:
		s.What = cmp.Or(task, "no process runs it")
	case LookIdle:
		s.What = cmp.Or(doing, IdleReason(m.Name, string(m.IdleReason)))
	case LookNeedsYou:
		if s.What = o.asksFor(m); task != "" && s.What != fmt.Sprintf("plan for %d", m.Task) {
			s.What = Because(s.What, task)
		}
	case LookWaiting: // for what it waits says more than its task
		doing = cmp.Or(doing, waitsFor(IdleReason(m.Name, string(m.IdleReason))))
		if s.What = doing; task != "" {
			s.What = Because(doing, task)
		}
	default:
		s.What = strings.TrimPrefix(Because(task, doing), ": ")
	}
	return s
}

// look returns how a member looks. The first that holds is the most that people need to know: nobody works on the task
// of a member without a process, whatever its record says. now is what the events say of one that works, or nil.
func (o Overview) look(m Member, now *Activity) Look {
	isOfTask := func(t muster.Task) bool { return t.ID == m.Task && t.Status == muster.Landing }
	switch {
	case m.Status == muster.Shutdown:
		return LookStopped
	case !m.Alive && !o.Alive: // the team has stopped, which the headline says too
		return LookStopped
	case !m.Alive:
		return LookDead
	case m.WorksFor != "": // what its member's records say is not about it
		return LookWorking
	case o.asksFor(m) != "":
		return LookNeedsYou
	// Between two records only the member itself says that its task is to land.
	case m.Doing == lands, m.Task != 0 && slices.ContainsFunc(o.Tasks, isOfTask):
		return LookLanding
	case m.Doing != "":
		return LookWaiting
	case m.Status == muster.Idle:
		return idleLook(m.IdleReason)
	case now != nil:
		return now.state
	}
	return LookWorking
}

// asksFor says what a living member wants of the user, who may answer for the lead too: "" is nothing.
func (o Overview) asksFor(m Member) string {
	for _, r := range o.Requests {
		isLeads := r.To == muster.Lead && WaitingTime(r, o.Now) < leadAnswerTime // who may still answer it
		if r.From == m.Name && IsForUser(r, o.Now) && !isLeads {
			return Question(r)
		}
	}
	if m.Doing == WaitsForUser {
		return "your next message"
	}
	// Where the requests were not read, its own words tell.
	if doing := text.OneLine(m.Doing); strings.HasPrefix(doing, "waits for your answer") {
		return strings.TrimPrefix(doing, "waits for ")
	}
	return ""
}

// WaitsForUser is what the record of a lead says that waits for its user.
const WaitsForUser = "waits for you"

// lands is what the record of a member says whose task is to land.
const lands = "lands"

// idleLook is how a member looks that is idle for a reason. Who waits for mail has something to do when it comes.
func idleLook(why muster.IdleReason) Look {
	if why == muster.IdleMessages {
		return LookWaiting
	}
	return LookIdle
}

// waitsFor is what a text says of a wait, without the word that the look says already.
func waitsFor(text string) string { return strings.TrimPrefix(text, "waits ") }
