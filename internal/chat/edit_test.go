package chat

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/terminal"
)

func TestEscape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var edited []string
		b := start(t, func(s *Session) { s.Edit, s.Shell = func(text string) { edited = append(edited, text) }, fakeShell })
		escape := func(isEmpty bool, want ...string) {
			t.Helper()
			b.events <- terminal.Escape{IsEmpty: isEmpty}
			synctest.Wait()
			if !slices.Equal(edited, want) {
				t.Errorf("edited %q, want %q", edited, want)
			}
			edited = nil
		}
		escape(true) // nothing was said yet
		<-time.After(2 * time.Second)
		b.types("make it")
		b.has(true)
		escape(false)            // stops the turn
		escape(false, "make it") // soon after
		escape(true)             // a first one again
		b.has(false)
		<-time.After(2 * time.Second)
		escape(false) // what is typed stays
		<-time.After(2 * time.Second)
		escape(true, "make it")
		b.events <- terminal.Line{Text: "make that", IsEdit: true}
		synctest.Wait()
		escape(true, "make that")
		b.events <- terminal.Line{Text: "/tasks", IsEdit: true}
		synctest.Wait()
		b.types("!wait")
		escape(true) // stops the command
		b.types("/quit")
		<-b.ended
		if want := []string{"Instead of my last message: make that"}; !slices.Equal(b.heard, want) {
			t.Errorf("heard %q, want %q", b.heard, want)
		}
		if got := b.paper.String(); strings.Count(got, "stopped: the lead waits for you") != 2 || !strings.Contains(got, "! you stopped it") {
			t.Errorf("shown %q", got)
		}
		if len(b.ran) != 1 {
			t.Errorf("ran %v", b.ran)
		}
	})
}
