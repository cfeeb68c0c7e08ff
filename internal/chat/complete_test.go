package chat

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/commands"
)

func names(all ...string) func() []Name {
	return func() (names []Name) {
		for _, n := range all {
			names = append(names, Name{Name: n})
		}
		return names
	}
}

func TestComplete(t *testing.T) {
	n := Names{Members: names("lead", "alice", "alan"), Requests: names("7f2c91aa", "70aa11bb"), Tasks: names("1", "12", "2"),
		Commands: func() []Command { return nil },
		Custom: func() []commands.Command {
			return []commands.Command{commands.New("apply", "WHAT", "", "", nil), commands.New("docs:links", "", "", "", nil)}
		}}
	for _, c := range []struct {
		text  string
		asked bool
		from  int
		want  string // the texts, with ! behind those that Enter enters
	}{
		{"/ap", false, 0, "/approve !,/apply "},
		{"/link", false, 0, "/docs:links!"},
		{"/team", false, 0, "/team!"},
		{"/inb", false, 0, "/inbox !"},
		{"/xyz", false, 0, ""},
		{"/approve 7f", false, 9, "7f2c91aa "},
		{"/reject 7", false, 8, "7f2c91aa ,70aa11bb "},
		{"/inbox a", false, 7, "alice ,alan "},
		{"/inbox u", false, 7, "user "},
		{"/diff 1", false, 6, "12 "},
		{"/undo ", false, 6, "1 ,12 ,2 "},
		{"/requests s", false, 10, "show "},
		{"/requests show 7", false, 15, "7f2c91aa ,70aa11bb "},
		{"/tasks a", true, 7, ""},
		{"ask al", true, 4, "alice ,alan "},
		{"ask al", false, 4, ""},
		{"日本 ali", true, 7, "alice "},
		{"ask ", true, 4, ""},
		{"ask @al", false, 4, "@alice ,@alan "},
		{"ask @alan", false, 4, "@alan !"},
		{"/apply @ali", false, 7, "@alice "},
		{"a\n/team", false, 2, ""}, // no command
		{"me@al", false, 0, ""},
	} {
		m := n.Complete(c.text, len(c.text), c.asked)
		var got []string
		for _, x := range m.Choices {
			if got = append(got, x.Text); x.Submits {
				got[len(got)-1] += "!"
			}
		}
		if m.From != c.from || strings.Join(got, ",") != c.want {
			t.Errorf("%q: from %d %q, want %d %q", c.text, m.From, got, c.from, c.want)
		}
	}
	if m := n.Complete("/inbox ", 7, false); !m.IsOptional {
		t.Error("Enter on /inbox takes a name that nobody has chosen")
	}
}

func found(f *Files, typed string) string {
	choices, more := f.find(typed)
	var all []string
	for _, c := range choices {
		all = append(all, strings.TrimSpace(c.Text))
	}
	return fmt.Sprint(strings.Join(all, " "), " +", more)
}

func TestFiles(t *testing.T) {
	f := &Files{all: indexed([]string{"README.md", "internal/terminal/keys.go", "internal/terminal/screen.go",
		"internal/terminal/screen_test.go", "internal/chat/session.go", "cmd/x/main.go", "a b.txt", "bad\nname", "Keys.md",
		"docs/remake.md"}), readAt: time.Now().Add(time.Hour), Now: time.Now}
	for typed, want := range map[string]string{
		"keys":    "@Keys.md @internal/terminal/keys.go +0",
		"KEYS.go": "@internal/terminal/keys.go +0",
		"scrtest": "@internal/terminal/screen_test.go +0",
		"itkey":   "@internal/terminal/keys.go +0",
		"remd":    "@docs/remake.md @README.md +0",
		"cmd/":    "@cmd/ @cmd/x/ @cmd/x/main.go +0",
		"a b":     `@"a b.txt" +0`,
		"bad":     " +0",
		"zzz":     " +0",
	} {
		if got := found(f, typed); got != want {
			t.Errorf("%q finds %q, want %q", typed, got, want)
		}
	}
	if got := found(f, ""); !strings.HasPrefix(got, `@Keys.md @README.md @"a b.txt" @cmd/ @docs/ @internal/ @cmd/x/ `) {
		t.Errorf("nothing typed: %q", got)
	}
}

// The list is read once, in the background, and the old one serves until the next is there.
func TestFilesAreReadInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads, changed atomic.Int64
		f := &Files{Now: time.Now, Changed: func() { changed.Add(1) }, List: func(context.Context) []string {
			<-time.After(time.Second)
			return []string{fmt.Sprint("file", reads.Add(1))}
		}}
		for range 3 {
			if got := found(f, ""); got != " +0" {
				t.Errorf("at once: %s", got)
			}
		}
		<-time.After(2 * time.Second)
		if got := found(f, ""); got != "@file1 +0" || reads.Load() != 1 || changed.Load() != 1 {
			t.Errorf("later: %s after %d reads, said %d times", got, reads.Load(), changed.Load())
		}
		<-time.After(10 * time.Second)
		if got := found(f, "f"); got != "@file1 +0" {
			t.Errorf("while it is read again: %s", got)
		}
		<-time.After(2 * time.Second)
		if got := found(f, "f"); got != "@file2 +0" || reads.Load() != 2 {
			t.Errorf("after that: %s, %d reads", got, reads.Load())
		}
	})
}
