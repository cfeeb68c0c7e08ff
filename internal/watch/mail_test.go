package watch

import "testing"

func TestMailGoesToWhoIsShown(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("m")
	s.has("mail to carol:")
	s.keys("why?", "enter", "tab", "down", "m", "hello", "enter")
	s.has("mail sent to alice")
	s.keys("down", "m", "hello", "enter")
	s.has("bob has stopped: muster mail send lead TEXT")
	s.keys("down", "m", "enter")
	s.did(`mail carol "why?"`, `mail alice "hello"`, `mail bob "hello"`)
}

// What waits comes first: the user's mail, then the lead's, then what the lead has read.
func TestBothInboxesAreShown(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("i")
	s.golden("mail-80")
	s.keys("c")
	s.golden("cost-80")
}
