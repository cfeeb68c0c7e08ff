package watch

import (
	"testing"
)

func TestTheBoardIsFilteredWhileTyping(t *testing.T) {
	s := open(t, 80, 24)
	s.has("1 finished")
	s.keys("tab", "tab", "/", "al")
	s.has(`BOARD 2 of 7 with "al"`, "tokenizer", "counter")
	s.hasNot("fuzzing ") // those that need somebody are in the list above too
	s.keys("enter", "g")
	s.has(`TREE 2 of 7 with "al"`) // the filter stays
	s.keys("/", "zzz")
	s.has(`TREE 0 of 7`)
	s.keys("esc")
	s.has("TREE 7", "1 finished")
	s.keys("space")
	s.has("1 landed    tokenizer")
}

func TestWhatWasGivenUpIsTriedAgain(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("down")
	s.has("TASK 7 fuzzing", "three attempts have failed")
	s.keys("t", "down")
	s.has("MAIL for you and the lead", "Which port?")
	s.keys("x")
	s.did("retry 7", "take")
	s.has("Which port?")
}
