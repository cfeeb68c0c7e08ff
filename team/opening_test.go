package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/proc"
	"muster/internal/workspace"
	"muster/llm"
)

// slowModel replies after ten seconds, the first words after some, and notes when it was asked.
type slowModel struct {
	words time.Duration // 0: none
	fails error
	start time.Time
	asked chan string
}

// Reply takes its time, which is that of a bubble of synctest.
func (m *slowModel) Reply(_ context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	m.asked <- fmt.Sprint(r.CacheKey, " ", time.Since(m.start))
	if m.fails != nil {
		return llm.Reply{}, m.fails
	}
	if m.words > 0 {
		time.Sleep(m.words)
		emit(llm.Delta{Text: "a"})
	}
	time.Sleep(10*time.Second - m.words)
	return llm.Reply{}, nil
}

// Of conversations that begin alike one asks first; the others ask when its reply has begun, and wait for no more than
// that. Whoever goes on with a conversation, begins otherwise or asks another model does not wait.
func TestOneConversationOpensBeforeTheOthers(t *testing.T) {
	first, later := make([]llm.Message, 1), make([]llm.Message, 3)
	for what, c := range map[string]struct {
		words time.Duration
		fails error
		bob   string
	}{
		"words":    {2 * time.Second, nil, "bob 2s"},
		"no words": {0, nil, "bob 5.001s"},
		"an error": {0, errors.New("no"), "bob 1ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &slowModel{words: c.words, fails: c.fails, start: time.Now(), asked: make(chan string, 10)}
			o := &openings{}
			ask := func(model, name, group string, messages []llm.Message) {
				r := llm.Request{CacheKey: name, CacheGroup: group, Messages: messages}
				_, _ = openingModel{m, model, o}.Reply(t.Context(), r, func(llm.Delta) {})
			}
			go ask("m", "alice", "team/coder", first)
			time.Sleep(time.Millisecond)
			go ask("m", "bob", "team/coder", first)
			go ask("m", "carol", "team/coder", later)
			go ask("m", "tess", "team/tester", first)
			go ask("n", "dave", "team/coder", first)
			time.Sleep(time.Minute)
			go ask("m", "erin", "team/coder", first) // it is cached
			time.Sleep(6 * time.Minute)
			go ask("m", "fay", "team/coder", first) // it is not any more
			time.Sleep(time.Minute)
			synctest.Wait()
			close(m.asked)
			var got []string
			for s := range m.asked {
				got = append(got, s)
			}
			want := []string{"alice 0s", c.bob, "carol 1ms", "dave 1ms", "erin 1m0.001s", "fay 7m0.001s", "tess 1ms"}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: asked %v, want %v", what, got, want)
			}
		})
	}
}

// OpenOn opens a team on other ground than a git repository.
func OpenOn(ctx context.Context, c Config, g repository) (*Team, error) {
	w, err := workspace.OpenRoot(g.Root(), workspace.Options{Store: c.Store, Name: c.Name})
	if err != nil {
		return nil, err
	}
	t, err := OpenIn(w, c)
	if err == nil {
		t.site.repository = g
	}
	return t, err
}

// Launch replaces what starts tools and checks: the guard is a process of its own and cannot be part of a test's bubble.
func (t *Team) Launch(f func(context.Context) (proc.Launcher, error)) { t.site.launch = f }

// Publish gives an event to the subscribers.
func (t *Team) Publish(e Event) { t.listeners.publish(e) }
