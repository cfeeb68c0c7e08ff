package mem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"muster"
	"muster/store/mem"
	"muster/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() muster.Store {
		first := mem.New()
		return func() muster.Store { return first.Handle() }
	})
}

// A bubble ends only when every goroutine in it has ended: the store leaves none, and its channels are the bubble's.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		watch := s.Table(muster.TableTasks).Watch(ctx)
		box := s.Inbox().Watch(ctx, "alice")
		started := time.Now()
		go func() {
			time.Sleep(time.Minute)
			if _, err := s.Handle().Table(muster.TableTasks).Put(ctx, "1", []byte("{}"), muster.None); err != nil {
				t.Error(err)
			}
		}()
		<-watch
		if waited := time.Since(started); waited != time.Minute {
			t.Errorf("the hint came after %v", waited)
		}
		if _, open := <-box; open {
			t.Error("a hint came for a box without mail")
		}
		if waited := time.Since(started); waited != time.Hour {
			t.Errorf("the watch ended after %v", waited)
		}
	})
}
