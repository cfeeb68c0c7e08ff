package chat

import (
	"strings"
	"testing"
	"testing/synctest"

	"muster/internal/terminal"
)

// Who leaves a team at work is asked whether it goes on, and every answer does what the question says.
func TestLeavingAsks(t *testing.T) {
	line := func(s string) terminal.Event { return terminal.Line{Text: s} }
	for name, c := range map[string]struct {
		did  []terminal.Event
		asks bool
		want Outcome
		left bool
	}{
		"stop":              {[]terminal.Event{line("hi"), line("/quit"), terminal.Answer{ID: leaveQuestion, Key: "s"}}, true, UserLeft, true},
		"work on":           {[]terminal.Event{line("hi"), line("/quit"), terminal.Answer{ID: leaveQuestion, Key: "b"}}, true, LeftWorking, true},
		"stay":              {[]terminal.Event{line("hi"), line("/quit"), terminal.Answer{ID: leaveQuestion, Key: "esc"}}, true, 0, false},
		"Ctrl-D":            {[]terminal.Event{line("hi"), terminal.Leave{}, terminal.Answer{ID: leaveQuestion, Key: "ctrl+d"}}, true, UserLeft, true},
		"Ctrl-C":            {[]terminal.Event{line("hi"), terminal.Interrupt{}, terminal.Interrupt{}, terminal.Answer{ID: leaveQuestion, Key: "ctrl+c"}}, true, Interrupted, true},
		"terminal closed":   {[]terminal.Event{line("hi"), terminal.Closed{}}, false, UserLeft, true},
		"nothing has begun": {[]terminal.Event{terminal.Leave{}}, false, UserLeft, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, func(s *Session) { s.CanWorkOn = true })
			for _, e := range c.did {
				b.events <- e
			}
			synctest.Wait()
			hasLeft := false
			select {
			case <-b.ended:
				hasLeft = true
			default:
			}
			if asks := strings.Contains(b.paper.String(), "ask: "); asks != c.asks || hasLeft != c.left || hasLeft && b.outcome != c.want {
				t.Errorf("%s: asks %v, left %v with %v\n%s", name, asks, hasLeft, b.outcome, b.paper)
			}
			if !hasLeft {
				close(b.over)
				<-b.ended
			}
		})
	}
}

// What the command line says comes before what is typed: a message, or going on with the team that stopped.
func TestFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Session)
		want   string
	}{
		"a message":                  {func(s *Session) { s.First = "faster" }, "faster"},
		"a message to a stopped one": {func(s *Session) { s.First, s.Stopped, s.GoesOn = "faster", true, true }, "faster"},
		"going on":                   {func(s *Session) { s.Stopped, s.GoesOn = true, true }, ""},
		"going on with nothing":      {func(s *Session) { s.GoesOn = true }, "none"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, c.change)
			synctest.Wait()
			if got := strings.Join(append(b.begun, map[bool]string{true: "none"}[len(b.begun) == 0]), ""); got != c.want {
				t.Errorf("%s: begun with %q", name, b.begun)
			}
			b.events <- terminal.Closed{}
			<-b.ended
		})
	}
}
