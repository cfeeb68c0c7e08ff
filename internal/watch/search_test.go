package watch

import (
	"fmt"
	"testing"

	"muster"
	"muster/internal/view"
	"muster/team"
)

func TestATextIsSearched(t *testing.T) {
	s := open(t, 80, 24)
	for i := range 60 {
		s.team.said = append(s.team.said, team.Said{Pos: muster.Pos(i + 1), Kind: team.SaidByIt, Text: fmt.Sprintf("reply %d, Apples", i+1)})
	}
	s.keys("tab", "down", "enter", "home", "/", "REPLY 1")
	s.has(`"REPLY 1" 0 of 0`) // capital letters count where the query has some
	s.keys("esc")
	s.hasNot("of 0")
	s.keys("/", "reply 1")
	s.has(`search: reply 1`, `"reply 1" 1 of 11`, "> reply 1, Apples")
	s.keys("enter", "n", "n")
	s.has(`"reply 1" 3 of 11`, "> reply 11, Apples")
	s.keys("N", "N", "N")
	s.has(`"reply 1" 11 of 11`, "> reply 19, Apples") // it goes around
	s.keys("n")
	s.has("> reply 1, Apples")
	s.keys("esc") // ends the search, and then goes back
	s.hasNot("of 11")
	s.keys("/", "apples")
	s.has(`"apples" 1 of 60`)
	s.keys("enter", "G") // End follows again
	s.has("follows", "reply 60")
	s.keys("/") // it has what was searched before
	s.has("search: apples")
}

// What matches is reversed where there are colours, and nothing else is.
func TestMatchesAreMarked(t *testing.T) {
	s := openDiff(t, 80, 24)
	s.m.paint = view.Colours(nil)
	s.keys("/", "return", "enter")
	s.has("\x1b[31m-    \x1b[0m\x1b[7mreturn\x1b[0m\x1b[31m 1\x1b[0m", "\x1b[32m+    \x1b[0m\x1b[7mreturn\x1b[0m\x1b[32m 0\x1b[0m")
	s.keys("n")
	s.has(`"return" 2 of 2`)
	s.keys("esc", "esc")
	s.hasNot("\x1b[7mreturn")
}

// A filter leaves out rows, in the list that has the focus.
func TestMembersAreFiltered(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "/", "coder")
	s.has(`MEMBERS 2 of 5 with "coder"`, "alice", "carol", "BOARD 7")
	s.hasNot("dora")
	s.keys("enter")
	s.send(changedMsg{overview: overview()})
	s.has(`MEMBERS 2 of 5 with "coder"`)
	s.keys("esc")
	s.has("MEMBERS 5", "dora")
}

func TestKeysAreFound(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("?", "g")
	s.has("find a key: g", "g              show the board as a tree")
	s.hasNot("approve")
	s.keys("backspace", "mail")
	s.has("write mail to the member", "remove the mail")
	s.keys("zz")
	s.has(`no key is "mailzz"`)
	s.keys("esc")
	s.has("PLAN for 4 reader")
	s.keys("?", "ctrl+k", "enter")
	s.has("Ctrl-K", "go to a member or a task")
}

// Esc shows all again, though the focus has gone to another list.
func TestEscClearsTheFilterOfAnotherList(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("/", "zzz", "enter")
	s.has(`NEEDS YOU 0 of 3 with "zzz"`)
	s.keys("tab", "esc")
	s.has("NEEDS YOU 3 ", "plan for 4")
}
