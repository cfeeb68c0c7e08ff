package requests

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

// setBack sets the clock back under a request: what was written before is ahead by so much.
func setBack(t *testing.T, s muster.Store, id muster.RequestID, by time.Duration) {
	t.Helper()
	d := require.Value(s.Table(muster.TableRequests).Get(t.Context(), string(id)))(t)
	var r muster.Request
	require.NoError(t, json.Unmarshal(d.Data, &r))
	for _, stamp := range []*float64{&r.CreatedAt, &r.UpdatedAt, &r.Deadline} {
		*stamp += by.Seconds()
	}
	data, err := muster.Encode(r)
	require.NoError(t, err)
	_, err = s.Table(muster.TableRequests).Put(t.Context(), d.Key, data, d.Rev)
	require.NoError(t, err)
}

// A deadline ends a request although the clock was set back by a day since; set ahead, it ends at once. Who waits and who
// sweeps agree, whether they saw the request before the clock jumped or after.
func TestDeadlinesWhenTheClockJumps(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		back     time.Duration
		seen     bool // before the jump
		from, to time.Duration
	}{
		"as it is":          {0, true, PermissionWait, PermissionWait},
		"back":              {day, true, PermissionWait, PermissionWait},
		"back, seen after":  {day, false, PermissionWait + time.Minute, PermissionWait + time.Minute},
		"back by a little":  {time.Minute, true, PermissionWait, PermissionWait},
		"ahead":             {-day, true, time.Minute, time.Minute},
		"ahead, seen after": {-day, false, time.Minute, time.Minute},
	} {
		for how, await := range map[string]func(q *Requests, ctx context.Context, id muster.RequestID) (muster.Request, error){
			"await": (*Requests).Await,
			"sweep": func(q *Requests, ctx context.Context, id muster.RequestID) (muster.Request, error) {
				for tick := time.NewTicker(time.Second); ; <-tick.C {
					if ended, err := q.Expire(ctx, time.Now()); err != nil || len(ended) > 0 {
						tick.Stop()
						return ended[0], err
					}
				}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := mem.New()
					start := time.Now()
					r := ask(t, process(s), muster.Request{Kind: muster.AskPermission, From: "lead", To: "user", Reason: "x"})
					q := process(s.Handle())
					done := make(chan time.Duration, 1)
					wait := func() {
						if got, err := await(q, context.Background(), r.ID); err != nil || got.Status != muster.RequestRejected {
							t.Errorf("%+v, %v", got, err)
						}
						done <- time.Since(start)
					}
					if c.seen {
						go wait()
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					setBack(t, s, r.ID, c.back)
					if !c.seen {
						go wait()
					}
					if took := <-done; took < c.from || took > c.to+time.Second {
						t.Errorf("it ended after %v, want %v to %v", took, c.from, c.to)
					}
				})
			})
		}
	}
}
