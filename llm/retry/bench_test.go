package retry_test

import (
	"context"
	"testing"
	"time"

	"muster/llm"
	"muster/llm/retry"
)

// quick is a model of an account that answers at once.
type quick struct{ id string }

// Account implements what retry.Limiters asks.
func (q quick) Account() llm.Account { return llm.Account{ID: q.id, Model: "m"} }

// Reply implements llm.Model.
func (quick) Reply(_ context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	emit(llm.Delta{Answer: &llm.Answer{Status: 200,
		Requests: llm.Quota{Limit: 1e9, Remaining: 1e9, Reset: time.Second}}})
	return llm.Reply{Stop: llm.StopEnd}, nil
}

// BenchmarkRequest is what a request costs beside the model itself: with an account whose limits a file shares, with
// one in memory, and without one.
func BenchmarkRequest(b *testing.B) {
	for name, l := range map[string]*retry.Limiters{"shared": {Dir: b.TempDir()}, "memory": {}, "none": {}} {
		b.Run(name, func(b *testing.B) {
			q := quick{name}
			if name == "none" {
				q.id = ""
			}
			m := retry.Wrap(q, retry.Options{Limiter: l.Of(q)})
			for b.Loop() {
				if _, err := m.Reply(b.Context(), llm.Request{}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
