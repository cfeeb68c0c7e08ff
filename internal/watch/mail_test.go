package watch

import (
	"testing"
)

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
