package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/commands"
)

func TestMentions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		b := start(t, func(s *Session) {
			s.Share = func(_ context.Context, path string) (string, error) {
				asked = append(asked, path)
				switch path {
				case "new.txt", "a b.png":
					return "/copies/" + path, nil
				case "landed.go":
					return "", nil
				case "big":
					return "", errors.New("too large")
				}
				return "", muster.Errorf(muster.NotFound, "no file")
			}
			s.Custom = func() []commands.Command {
				return []commands.Command{commands.New("fix", "", "", "fix.md", func(_ context.Context, args string) (string, error) {
					return "fix " + args + ", not @big", nil
				})}
			}
		})
		b.types("see @new.txt.", `and (@landed.go or @"a b.png"), me@home.org`, "@big @alice @new.txt @new.txt", "/fix @new.txt", "/quit")
		<-b.ended
		const about = " as I have it is not in your checkout: read_file "
		if want := "see @new.txt.\n\n(@new.txt" + about + "/copies/new.txt)"; b.begun[0] != want {
			t.Errorf("the goal is %q, want %q", b.begun[0], want)
		}
		want := []string{`and (@landed.go or @"a b.png"), me@home.org` + "\n\n(@\"a b.png\"" + about + "/copies/a b.png)",
			"@big @alice @new.txt @new.txt\n\n(@new.txt" + about + "/copies/new.txt)",
			"fix @new.txt, not @big\n\n(@new.txt" + about + "/copies/new.txt)"}
		if !slices.Equal(b.heard, want) {
			t.Errorf("heard %q, want %q", b.heard, want)
		}
		if p := b.paper.String(); !strings.Contains(p, "@big does not reach the lead: too large\n") {
			t.Errorf("the user reads %q", p)
		}
		if want := "new.txt.|new.txt|landed.go|a b.png|big|alice|new.txt|new.txt"; strings.Join(asked, "|") != want {
			t.Errorf("asked for %s, want %s", strings.Join(asked, "|"), want)
		}
	})
}

func TestPastedImage(t *testing.T) {
	exists := func(path string) bool { return strings.Contains(path, "shot") }
	for text, want := range map[string]string{
		"/tmp/shot.png":             "@/tmp/shot.png ",
		"'/tmp/my shot.PNG' ":       `@"/tmp/my shot.PNG" `,
		`/tmp/my\ shot.jpeg`:        `@"/tmp/my shot.jpeg" `,
		"file:///tmp/a%20shot.webp": `@"/tmp/a shot.webp" `,
		"/tmp/none.png":             "/tmp/none.png",
		"/tmp/shot.txt":             "/tmp/shot.txt",
		"see /tmp/\n/tmp/shot.png":  "see /tmp/\n/tmp/shot.png",
	} {
		if got := PastedImage(text, exists); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
