package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/terminal"
	"muster/loop"
)

// shownText is a face that keeps what it shows.
type shownText struct{ strings.Builder }

func (*shownText) Events() <-chan terminal.Event { return nil }
func (s *shownText) Ask(string, ...string)       {}
func (s *shownText) Print(lines string)          { s.WriteString(lines) }
func (s *shownText) Stream(text string)          { s.WriteString(text) }
func (s *shownText) Flush()                      { s.WriteString("\n") }
func (*shownText) Refresh()                      {}

// Whatever comes first, and however the stream is cut, each word of each reply is shown once.
func TestEachWordIsShownOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var replies []string
		for range rapid.IntRange(1, 4).Draw(r, "replies") {
			replies = append(replies, rapid.StringMatching(`[a-z]{1,4}( [a-zé]{1,4}){0,5}`).Draw(r, "reply"))
		}
		var stream []loop.Event
		for _, reply := range replies {
			for runes := []rune(reply); len(runes) > 0; {
				n := rapid.IntRange(1, len(runes)).Draw(r, "piece")
				stream, runes = append(stream, loop.TextDelta{Text: string(runes[:n])}), runes[n:]
			}
			stream = append(stream, loop.TurnEnded{})
		}
		if rapid.Bool().Draw(r, "nothing streams") {
			stream = nil
		}
		var face shownText
		s := remoteSpeech{face: &face}
		for whole := replies; len(stream)+len(whole) > 0; {
			if len(whole) == 0 || len(stream) > 0 && rapid.Bool().Draw(r, "stream") {
				s.event(stream[0])
				stream = stream[1:]
			} else {
				s.reply(whole[0])
				whole = whole[1:]
			}
		}
		got, want := strings.Fields(face.String()), strings.Fields(strings.Join(replies, " "))
		if strings.Join(got, "") != strings.Join(want, "") {
			r.Fatalf("%q of %q", face.String(), replies)
		}
	})
}

// Who attaches in the middle of a reply reads all of it, and a discarded reply is marked.
func TestRemoteRepliesFromTheirMiddle(t *testing.T) {
	t.Parallel()
	var face shownText
	s := remoteSpeech{face: &face}
	s.event(loop.TextDelta{Text: "world."})
	s.reply("Hello world.")
	s.event(loop.TurnEnded{})
	s.event(loop.TextDelta{Text: "One"})
	s.event(loop.ReplyDiscarded{})
	s.event(loop.TextDelta{Text: "Two "})
	s.event(loop.TextDelta{Part: 1, Text: " parts"})
	s.event(loop.TurnEnded{})
	s.reply("Two\nparts")
	if want := "world.\nHello world.\nOne ...\nTwo \n parts\n"; face.String() != want {
		t.Errorf("%q, want %q", face.String(), want)
	}
}
