package team_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/team"
)

// lockedBuffer is a buffer that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(data)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What fails and stops nobody is logged: here a member's status, which is for people only.
func TestDroppedErrorsAreLogged(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		log := new(lockedBuffer)
		h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
`+writes[1:], func(c *team.Config) {
			c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.Store = refusing{c.Store, muster.TableMembers, func(data []byte) error {
				if bytes.Contains(data, []byte(`"lands"`)) {
					return noRoom()
				}
				return nil
			}}
		}).ends(0, time.Hour)
		for _, want := range []string{`msg="team opened"`, `msg="member started" member=lead`, `msg="member started" member=alice`,
			`msg="member stopped" member=alice`,
			`msg="landing moved the target" task=1`, `msg="error dropped" member=alice what="the member's status"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %s:\n%s", want, log)
			}
		}
	})
}
