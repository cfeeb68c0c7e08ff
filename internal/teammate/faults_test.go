package teammate

import (
	"testing"
	"time"

	"muster"
	"muster/internal/board"
)

// No error of the store is lost in what a test of a whole life does not reach: see TestAnErrorOfTheStoreEndsALife.
func TestNoErrorOfTheStoreIsLost(t *testing.T) {
	opened := func(l *life) { l.open() }
	withTask := func(l *life) { l.create(board.Draft{}); l.open() }
	for what, c := range map[string]struct {
		name    muster.Name
		prepare func(*life)
		act     func(*life) error
	}{
		"the inbox": {"alice", opened, func(l *life) error { _, err := l.conversation.Inbox(l.Context()); return err }},
		"a shutdown that is granted": {"alice", func(l *life) { l.ask("0000beef", muster.AskShutdown, muster.User, "alice") },
			func(l *life) error { return GrantShutdown{ID: "0000beef"}.do(l.Context(), l.Member) }},
		"a claimed task": {"alice", func(l *life) { l.open(); l.claim() }, func(l *life) error {
			_, _, err := l.claims.nextTask(l.Context())
			return err
		}},
		"a wait for the team": {muster.Lead, opened, func(l *life) error {
			return l.lead.await(l.Context(), "waits for the team", false, nil, time.After(time.Minute))
		}},
		"a fresh start": {muster.Lead, opened, func(l *life) error {
			return RestartConversation{Harder: maxRestarts}.do(l.Context(), l.Member)
		}},
		"a limit":       {"alice", withTask, func(l *life) error { l.Member.err = errTurns; return ReleaseTask{}.do(l.Context(), l.Member) }},
		"a model fails": {"alice", withTask, func(l *life) error { l.Member.err = errTest; return GiveUp{}.do(l.Context(), l.Member) }},
	} {
		t.Run(what, func(t *testing.T) { failEachOp(t, c.name, c.prepare, c.act) })
	}
}
