package chat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/terminal"
)

// TestDecisions checks what a typed answer becomes: the ID may be left out where one question waits.
func TestDecisions(t *testing.T) {
	for _, c := range []struct{ waiting, typed, want string }{
		{"a1", "/approve", "approve a1"},
		{"a1", "/approve a1", "approve a1"},
		{"a1", "/approve a1 -v is fine", "approve a1 -- -v is fine"},
		{"a1", "/reject a1 not that way", "reject a1 -- not that way"},
		{"a1", "/reject not that way", "reject a1 -- not that way"},
		{"a1", "/approve b2", "approve b2"}, // an old one: the command says what became of it
		{"a1 b2", "/reject b2 why", "reject b2 -- why"},
		{"a1 b2", "/approve", "several questions wait, so name one: a1, b2"},
		{"a1 b2", "/reject why not", "reject why -- not"},
		{"", "/approve", "no question waits"},
		{"", "/approve a1", "approve a1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, nil)
			for id := range strings.FieldsSeq(c.waiting) {
				b.waiting = append(b.waiting, muster.Request{ID: muster.RequestID(id)})
			}
			b.types(c.typed)
			got := strings.TrimSuffix(b.paper.String(), "\n")
			if len(b.ran) > 0 {
				got = strings.Join(b.ran[0], " ")
			}
			if got != c.want {
				t.Errorf("%q with %q waiting: %q, want %q", c.typed, c.waiting, got, c.want)
			}
			b.events <- terminal.Closed{}
			<-b.ended
		})
	}
}

// TestKeysOfAQuestion checks what each key does.
func TestKeysOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edited := ""
		b := start(t, func(s *Session) { s.Fill = func(text string) { edited = text } })
		for _, key := range []string{"y", "n", "Y", "v"} {
			b.events <- terminal.Answer{ID: "a1", Key: key}
			synctest.Wait()
		}
		if got := fmt.Sprint(b.ran); got != "[[approve a1] [approve --run a1] [requests show a1]]" || edited != "/reject a1 " {
			t.Errorf("commands %s, the input %q", got, edited)
		}
		b.events <- terminal.Closed{}
		<-b.ended
	})
}

// TestCommandsOfTheCommandLine checks what is typed behind a slash or an @ beside the builtin commands.
func TestCommandsOfTheCommandLine(t *testing.T) {
	for _, c := range []struct{ typed, ran, printed string }{
		{"/merge", "merge", "done"},
		{`/mail send bob "two words" and more`, "mail send bob two words and more", "done"},
		{"/team", "team list", "done"},
		{"/team stop bob", "team stop bob", "done"},
		{"/merg", "", "there is no command /merg (did you mean /merge?)"},
		{"@bob keep it short", "mail send bob -- keep it short", "done"},
		{"@bob", "", ""},        // a message to the lead
		{"@bo keep it", "", ""}, // a file
	} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, func(s *Session) {
				s.Commands = func() []Command { return []Command{{Name: "merge"}, {Name: "mail"}, {Name: "log"}} }
				s.Members = func(context.Context) []muster.Name { return []muster.Name{"bob"} }
				s.Shell = func(context.Context, string, io.Writer) (int, error) { return 0, nil }
			})
			b.types(c.typed)
			ran := ""
			if len(b.ran) > 0 {
				ran = strings.Join(b.ran[0], " ")
			}
			if ran != c.ran ||
				!strings.HasPrefix(b.paper.String(), c.printed) || (len(b.begun) > 0) != (c.printed == "") {
				t.Errorf("%s: ran %q, printed %q, begun %q", c.typed, b.ran, b.paper, b.begun)
			}
			b.events <- terminal.Closed{}
			<-b.ended
		})
	}
}
