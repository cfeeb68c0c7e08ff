package watch

import "testing"

func TestTheSwitcherGoesThere(t *testing.T) {
	s := open(t, 80, 24)
	s.switcher()
	s.golden("goto-80") // who waits for the user comes first
	s.keys("tok")
	s.has("GO TO 1 of 12", ">    1 landed    tokenizer")
	s.keys("enter")
	s.has("TASK 1 tokenizer", ">  1 landed    tokenizer") // though finished tasks were folded
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
