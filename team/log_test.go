package team_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/team"
)

// What fails and stops nobody is logged: here a member's status, which is for people only.
func TestDroppedErrorsAreLogged(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		var log bytes.Buffer // a handler of slog writes one record at a time
		h.start(oneTask+writes, func(c *team.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.Store = refusing(c.Store, muster.TableMembers, func(data []byte) error {
				if bytes.Contains(data, []byte(`"lands"`)) {
					return noRoom()
				}
				return nil
			})
		}).ends(0, time.Hour)
		for _, want := range []string{`msg="team opened"`, `msg="member started" member=lead`, `msg="member started" member=alice`,
			`msg="member stopped" member=alice`,
			`msg="landing moved the target" task=1`, `msg="error dropped" member=alice what="the member's status"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %s:\n%s", want, &log)
			}
		}
	})
}
