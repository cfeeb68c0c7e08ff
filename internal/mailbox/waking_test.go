package mailbox

import (
	"slices"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

// Of what waits, Waking has all that is no news, and Landings has the reports of landings.
func TestWaking(t *testing.T) {
	p := team(mem.New())
	send := func(kind muster.MessageType) muster.Message {
		return require.Value(p.Send(t.Context(), muster.Message{Type: kind, From: "bob", To: "alice", Content: string(kind)}))(t)
	}
	send(muster.MailIdle)
	landed, hello := send(muster.MailLanded), send(muster.MailMessage)
	_, end, _, err := p.Peek(t.Context(), "alice", 0, 0)
	require.NoError(t, err)
	last := send(muster.MailMessage)
	for after, want := range map[muster.Pos][2][]muster.Message{0: {{hello, last}, {landed}}, end: {{last}, {}}} {
		waking := require.Value(p.Waking(t.Context(), "alice", after))(t)
		landings := require.Value(p.Landings(t.Context(), "alice", after))(t)
		if !slices.Equal(waking, want[0]) || !slices.Equal(landings, want[1]) {
			t.Errorf("after %d: %v and %v", after, waking, landings)
		}
	}
}
