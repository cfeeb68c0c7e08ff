package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"muster/llm"
)

// Key is the key of a server. It is safe for concurrent use.
type Key struct {
	mu    sync.Mutex
	value string
	// renew returns the key to use in place of one that the server has refused; nil: there is no other.
	renew func(ctx context.Context, refused string) (string, error)
}

// NewKey returns a key, which renew may replace.
func NewKey(key string, renew func(ctx context.Context, refused string) (string, error)) *Key {
	return &Key{value: key, renew: renew}
}

// Ask asks with the key. When the server refuses it, and there is another one now, it asks once more with that.
func (k *Key) Ask(ctx context.Context, ask func(key string) (llm.Reply, error)) (llm.Reply, error) {
	k.mu.Lock()
	key := k.value
	k.mu.Unlock()
	r, err := ask(key)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Status != http.StatusUnauthorized || k.renew == nil {
		return r, err
	}
	next, problem := k.renew(ctx, key)
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case problem != nil:
		return r, &llm.Error{Kind: e.Kind, Status: e.Status,
			Err: fmt.Errorf("%w; the key cannot be read again: %w", e.Err, problem)}
	case next == key || next == "":
		return r, err
	}
	k.mu.Lock()
	k.value = next
	k.mu.Unlock()
	return ask(next)
}
