package mailbox

import (
	"strings"
	"testing"
	"unicode/utf8"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

// A delivery may have exactly as many bytes as it may have, and an excerpt as many characters.
func TestWhatJustFits(t *testing.T) {
	s := mem.New()
	p := team(s)
	text := strings.Repeat("ä", 200)
	size := 0
	for range 2 {
		m, err := p.Send(t.Context(), mail("alice", text))
		require.NoError(t, err)
		size += len(renderMail(m))
	}
	for most, want := range map[int]int{size: 2, size - 1: 1, 1: 1} {
		got, end, waiting, err := p.Peek(t.Context(), "alice", 0, most)
		if err != nil || len(got) != want || waiting != 2-want || end == 0 {
			t.Errorf("into %d bytes fit %d mails up to %d, %d wait, %v", most, len(got), end, waiting, err)
		}
	}
	require.NoError(t, second(p.Send(t.Context(), muster.Message{Type: muster.MailPlanAnswer, From: "lead", To: "alice",
		Feedback: text + "ä"})))
	if all := events(t, s); all[0].Text("text") != text || all[2].Text("text") != text+" ..." {
		t.Errorf("the excerpts of 200 and 201 characters are %q and %q", all[0].Text("text"), all[2].Text("text"))
	}
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"as it is":                      "as it is",
		"bad \xff byte":                 "bad ? byte",
		strings.Repeat("x", 4000):       strings.Repeat("x", 4000),
		strings.Repeat("é", 2001):       strings.Repeat("é", 2000) + " ...",
		"a" + strings.Repeat("é", 2000): "a" + strings.Repeat("é", 1999) + " ...", // not half a character
	} {
		if got := Short(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q... became %d bytes, want %d", text, len(got), len(want))
		}
	}
}
