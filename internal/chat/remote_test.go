package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/loop"
)

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
		face := &paper{}
		s := Speech{Face: face, isRemote: true}
		for whole := replies; len(stream)+len(whole) > 0; {
			if len(whole) == 0 || len(stream) > 0 && rapid.Bool().Draw(r, "stream") {
				s.event(stream[0])
				stream = stream[1:]
			} else {
				s.reply(whole[0])
				whole = whole[1:]
			}
		}
		words := strings.NewReplacer(" ", "", "|", "", "\n", "")
		if got, want := words.Replace(face.String()), words.Replace(strings.Join(replies, "")); got != want {
			r.Fatalf("%q of %q", face, replies)
		}
	})
}

// Who attaches in the middle of a reply reads all of it, and a discarded reply is marked.
func TestRemoteRepliesFromTheirMiddle(t *testing.T) {
	t.Parallel()
	face := &paper{}
	s := Speech{Face: face, isRemote: true}
	s.event(loop.TextDelta{Text: "world."})
	s.reply("Hello world.")
	for _, e := range []loop.Event{loop.TurnEnded{}, loop.TextDelta{Text: "One"}, loop.ReplyDiscarded{}, loop.TextDelta{Text: "Two "},
		loop.TextDelta{Part: 1, Text: " parts"}, loop.TurnEnded{}} {
		s.event(e)
	}
	s.reply("Two\nparts")
	if want := "world.|Hello world.|One ...|Two | parts|"; face.String() != want {
		t.Errorf("%q, want %q", face, want)
	}
}
