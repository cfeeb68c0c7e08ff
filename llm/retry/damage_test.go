package retry_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/retry"
)

// A file that is damaged, or cannot be had, stops nobody, and holds nobody longer than it should.
func TestDamagedLimits(t *testing.T) {
	const id = "an-account"
	damages := map[string]func(t *testing.T, dir, file string){
		"no JSON": func(t *testing.T, _, file string) { write(t, file, "\x00\x01garbage") },
		"far ahead": func(t *testing.T, _, file string) {
			write(t, file, `{"saved":4102444800000,"until":4102444900000,"interval":60000,"why":"x","key":{"slots":[{"t":4102444890000,"n":9}]}}`)
		},
		"its lock is held": func(t *testing.T, _, file string) {
			unlock := require.Value(durable.New(durable.OS{}).TryLock(file + ".lock"))(t)
			t.Cleanup(func() { _ = unlock() })
		},
	}
	for name, damage := range damages {
		dir := t.TempDir()
		damage(t, dir, filepath.Join(dir, id+".json"))
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			all := &retry.Limiters{Dir: dir}
			m := at{failing(0, nil), id}
			for range 3 {
				if _, err := ask(retry.Wrap(m, retry.Options{Limiter: all.Of(m)})); err != nil {
					t.Error(err)
				}
			}
			if d := time.Since(began); d > 2*time.Minute {
				t.Errorf("%s: it took %v", name, d)
			}
		})
	}
}

// write writes a file.
func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// A hold that one process has met holds the other from its next request on, and says why. A process that gives up waiting
// takes nobody's place.
func TestAHoldIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := &gate{window: time.Minute, requests: 1, after: true}
		one, other := &retry.Limiters{Dir: dir}, &retry.Limiters{Dir: dir}
		c := caller{g, llm.Account{ID: "a", Model: "m"}, "", 0}
		began := time.Now()
		for range 2 {
			if _, err := ask(retry.Wrap(c, retry.Options{Limiter: one.Of(c), Tries: 1})); err != nil &&
				llm.KindOf(err) != llm.Limited {
				t.Error(err)
			}
		}
		var until time.Time
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := retry.Wrap(c, retry.Options{Limiter: other.Of(c), OnWait: func(u time.Time, why error) {
			if until = u; llm.KindOf(why) != llm.Limited || why.Error() != "limited: too many requests" {
				t.Errorf("it waits for %v", why)
			}
		}}).Reply(ctx, llm.Request{}, nil)
		if err == nil || until.Sub(began) < time.Minute || len(g.arrived) != 2 {
			t.Errorf("%v, held until %v; the server was asked %d times", err, until.Sub(began), len(g.arrived))
		}
		if _, err := ask(retry.Wrap(c, retry.Options{Limiter: other.Of(c)})); err != nil || time.Since(began) > 70*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
