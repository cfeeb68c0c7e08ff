package view

import (
	"time"

	"muster"
)

// CatchUp takes an event from before the progress began, and writes no line for it. The living members are then shown
// as they are for who looks at a team that is at work already. What was spent before, SetSpent says.
func CatchUp(p *Progress, e muster.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := e.Text("subject"); s != "" && e.Task != 0 {
		p.subjects[e.Task] = s
	}
	p.presence.Apply(e)
	p.presence.noteContext(e)
	p.boardIsOld = true
}

// MarkStopped says that the members which CatchUp has brought have stopped, and keep what they have claimed. Each is
// shown as it is again with its next event.
func MarkStopped(p *Progress, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.presence.stopAll(at)
}
