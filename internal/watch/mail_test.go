package watch

import (
	"testing"

	tea "charm.land/bubbletea/v2"
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

// The keys of a line that is typed are those of readline, and go by what people see as one character.
func TestALineIsEdited(t *testing.T) {
	s := open(t, 80, 24)
	flag := "\U0001F1E9\U0001F1EA"
	s.keys("m")
	s.send(tea.PasteMsg{Content: "see " + flag + "\nand this"})
	for _, k := range []tea.Key{{Code: 'b', Mod: tea.ModAlt}, {Code: 'b', Mod: tea.ModAlt}, {Code: 'k', Mod: tea.ModCtrl},
		{Code: tea.KeyEnter, Mod: tea.ModAlt}} {
		s.send(tea.KeyPressMsg(k))
	}
	s.keys("backspace", "backspace", "ok", "enter")
	s.did(`mail carol "see ok"`)
}

// What waits comes first: the user's mail, then the lead's, then what the lead has read.
func TestBothInboxesAreShown(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("i")
	s.golden("mail-80")
	s.keys("c")
	s.golden("cost-80")
}
