package mailbox

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

func news(to muster.Name, content string) muster.Message {
	return muster.Message{Type: muster.MailIdle, From: "bob", To: to, Content: content}
}

// Whatever was sent, looked at and dropped, and however long ago: what Waking returns is what lies there and is no
// news, and Landings has every landing.
func TestWakingIsAllThatIsNoNews(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := mem.New()
		p, other := team(s), team(s.Handle())
		var after muster.Pos // where the reader's last delivery ended
		rt.Repeat(map[string]func(*rapid.T){
			"news": func(*rapid.T) { require.NoError(t, second(other.Send(t.Context(), news("alice", "bob is idle")))) },
			"landing": func(*rapid.T) {
				require.NoError(t, second(other.Send(t.Context(),
					muster.Message{Type: muster.MailLanded, From: "bob", To: "alice", Content: "landed"})))
			},
			"message": func(*rapid.T) { require.NoError(t, second(other.Send(t.Context(), mail("alice", "hello")))) },
			"deliver": func(rt *rapid.T) {
				_, end, _, err := p.Peek(t.Context(), "alice", after, rapid.IntRange(1, 2000).Draw(rt, "bytes"))
				require.NoError(t, err)
				require.NoError(t, p.Drop(t.Context(), "alice", end))
				after = end
			},
			"time passes": func(rt *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 90).Draw(rt, "seconds")) * time.Second
				p.idle.update("alice", func(k *boxState) {
					k.readAt, k.droppedAt = k.readAt.Add(-d), k.droppedAt.Add(-d)
				})
			},
			"": func(rt *rapid.T) {
				_, end, err := s.Inbox().Peek(t.Context(), "alice", 0, math.MaxInt32)
				require.NoError(t, err)
				for _, from := range []muster.Pos{after, 0, end} {
					all, _, err := s.Inbox().Peek(t.Context(), "alice", from, math.MaxInt32)
					require.NoError(t, err)
					for _, c := range []struct {
						read func(context.Context, muster.Name, muster.Pos) ([]muster.Message, error)
						not  func(muster.MessageType) bool
					}{{p.Waking, muster.MessageType.News},
						{p.Landings, func(t muster.MessageType) bool { return t != muster.MailLanded }}} {
						got, err := c.read(t.Context(), "alice", from)
						require.NoError(t, err)
						want := slices.DeleteFunc(slices.Clone(all),
							func(m muster.Message) bool { return c.not(m.Type) })
						if !slices.Equal(got, want) {
							rt.Fatalf("after %d: got %v, want %v", from, got, want)
						}
					}
				}
			},
		})
	})
}

func second[T any](_ T, err error) error { return err }

// counted is a store that counts the mails that are read.
type counted struct {
	muster.Store
	read *int
}

type countedInbox struct {
	muster.Inbox
	read *int
}

func (c counted) Inbox() muster.Inbox { return countedInbox{c.Store.Inbox(), c.read} }

func (c countedInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) ([]muster.Message,
	muster.Pos, error) {
	msgs, end, err := c.Inbox.Peek(ctx, box, after, most)
	*c.read += len(msgs)
	return msgs, end, err
}

// Of a thousand notices each is read once when something asks at each of them, not each time.
func TestNewsIsNotReadAgainAndAgain(t *testing.T) {
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		read := 0
		p := team(counted{mem.New(), &read})
		for i := range n {
			require.NoError(t, second(p.Send(t.Context(), news("lead", fmt.Sprintf("t%d is idle", i)))))
			got, err := p.Waking(t.Context(), "lead", 0)
			require.NoError(t, err)
			if len(got) != 0 {
				t.Fatalf("%v wakes", got)
			}
		}
		if read > n {
			t.Errorf("%d mails were read of %d that came", read, n)
		}
		// News that comes meanwhile does not make the cache younger.
		for range 2 {
			time.Sleep(newsCacheTTL / 2)
			require.NoError(t, second(p.Send(t.Context(), news("lead", "bob is idle"))))
			require.NoError(t, second(p.Waking(t.Context(), "lead", 0)))
		}
		if read < 2*n {
			t.Errorf("after a minute not all was read anew")
		}
	})
}

// What was read is remembered from five seconds after a delivery on, at that very moment too, and not before.
func TestNewsIsReadAgainRightAfterADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		p := team(counted{mem.New(), &read})
		require.NoError(t, p.Drop(t.Context(), "lead", 0))
		require.NoError(t, second(p.Send(t.Context(), news("lead", "bob is idle"))))
		time.Sleep(afterDrop - 1)
		for i, want := range []int{1, 2, 2} { // the third one is at the five seconds
			if i == 2 {
				time.Sleep(time.Nanosecond)
			}
			require.NoError(t, second(p.Waking(t.Context(), "lead", 0)))
			if read != want {
				t.Errorf("look %d: %d mails were read, want %d", i, read, want)
			}
		}
	})
}

// Members of one process look at their inboxes at the same time.
func TestInboxesAreLookedAtTogether(t *testing.T) {
	p := team(mem.New())
	var looking sync.WaitGroup
	for n := range 4 {
		looking.Go(func() {
			for range 200 {
				_ = second(p.Waking(t.Context(), muster.Name(fmt.Sprint("m", n)), 0))
			}
		})
	}
	looking.Wait()
}
