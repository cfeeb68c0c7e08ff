package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"muster/llm"
	"muster/llm/retry"
)

// speaking is a model that emits each delta after its silence, then is silent
// until its context ends.
func speaking(sounds ...sound) *model {
	return &model{reply: func(ctx context.Context, _ int, emit func(llm.Delta)) error {
		for _, s := range sounds {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(s.after):
				emit(s.d)
			}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}}
}

type sound struct {
	after time.Duration
	d     llm.Delta
}

var (
	word  = llm.Delta{Text: "x"}
	ping  = llm.Delta{}
	think = llm.Delta{Think: "x"}
)

func TestWatchdog(t *testing.T) {
	min := time.Minute
	for name, c := range map[string]struct {
		sounds []sound
		o      retry.Options
		ends   time.Duration
	}{
		"nothing ever":             {nil, retry.Options{}, 5 * min},
		"pings before the first":   {[]sound{{4 * min, ping}, {4 * min, ping}}, retry.Options{}, 13 * min},
		"silent after a word":      {[]sound{{min, word}}, retry.Options{}, 6 * min},
		"silent after a thought":   {[]sound{{min, think}}, retry.Options{}, 6 * min},
		"a word and then pings":    {[]sound{{min, word}, {min, ping}, {min, ping}}, retry.Options{}, 8 * min},
		"a first that is too late": {[]sound{{6 * min, word}}, retry.Options{}, 5 * min},
		"other times": {[]sound{{time.Second, word}},
			retry.Options{FirstTimeout: 2 * time.Second, IdleTimeout: time.Second}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				c.o.Tries = 1
				_, err := ask(retry.Wrap(speaking(c.sounds...), c.o))
				if llm.KindOf(err) != llm.Incomplete || time.Since(begin) != c.ends {
					t.Errorf("%v after %v, want after %v", err, time.Since(begin), c.ends)
				}
			})
		})
	}
}

func TestNoWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stopped by user")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(1000*time.Hour, func() { cancel(cause) })
		_, err := retry.Wrap(speaking(sound{time.Second, word}),
			retry.Options{FirstTimeout: -1, IdleTimeout: -1}).Reply(ctx, llm.Request{}, nil)
		if !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
}

// A model that always has something to say, but never ends, is cut off and not asked again.
func TestReplyThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sounds []sound
		for range 100 {
			sounds = append(sounds, sound{time.Minute, word})
		}
		m := speaking(sounds...)
		began := time.Now()
		_, err := retry.Wrap(m, retry.Options{}).Reply(t.Context(), llm.Request{}, nil)
		if took := time.Since(began); llm.KindOf(err) != llm.BadRequest || took != time.Hour {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
