package watch

import (
	"fmt"
	"testing"
)

func TestTheSwitcherGoesThere(t *testing.T) {
	for _, size := range []struct{ width, height int }{{30, 20}, {80, 24}, {200, 30}} {
		s := open(t, size.width, size.height)
		s.switcher()
		s.golden(fmt.Sprintf("goto-%d", size.width)) // who waits for the user comes first
	}
	s := open(t, 80, 24)
	s.switcher()
	s.keys("tok")
	s.has("GO TO 1 of 12", ">    1 landed   tokenizer")
	s.keys("enter")
	s.has("TASK 1 tokenizer", ">  1 landed   tokenizer") // though finished tasks were folded
	s.switcher()
	s.keys("coder", "down", "enter")
	s.has("> alice", "alice, coder, working")
	s.switcher()
	s.keys("zzz", "enter")
	s.has("alice, coder, working")
	s.switcher()
	s.keys("esc")
	s.has("alice, coder, working")
	narrow := open(t, 30, 20)
	narrow.switcher()
	narrow.keys("alice", "enter")
	narrow.has("> alice, coder, working")
}

// A task stands before the member that works on it where its name is typed.
func TestTheSwitcherPutsNamesFirst(t *testing.T) {
	s := open(t, 80, 24)
	o := overview()
	o.Members[1].Subject = "counter"
	s.send(changedMsg{overview: o})
	s.switcher()
	s.keys("counter")
	s.has("GO TO 2 of 12", ">    2 working  counter", "alice working 2 counter")
	s.keys("enter")
	s.has("TASK 2 counter")
}
