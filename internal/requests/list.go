package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/corruption"
)

// idRule is wider than what we mint: other programs may have ids of their own.
// It is compiled when it is first needed, because every command pays for what is compiled at its start.
var idRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`) })

// Get returns one request. Errors: NotFound, with the requests that wait.
func (q *Requests) Get(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	r, _, err := q.read(ctx, id)
	return r, err
}

// List returns all requests, oldest first. One that cannot be read is left out.
func (q *Requests) List(ctx context.Context) ([]muster.Request, error) { return q.index.all(ctx) }

// Pending returns the requests that wait, oldest first.
func (q *Requests) Pending(ctx context.Context) ([]muster.Request, error) {
	all, err := q.index.all(ctx)
	return slices.DeleteFunc(all, Final), err
}

// missing says that there is no such request, and which ones wait.
func (q *Requests) missing(ctx context.Context, id muster.RequestID) error {
	waiting, err := q.Pending(ctx)
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		return muster.Errorf(muster.NotFound, "there is no request %s, and none waits", id)
	}
	slices.SortStableFunc(waiting, func(a, b muster.Request) int {
		return cmp.Compare(differs(a.ID, id), differs(b.ID, id))
	})
	var near []string
	for _, r := range waiting[:min(3, len(waiting))] {
		near = append(near, fmt.Sprintf("%s (%s)", r.ID, title(r)))
	}
	more := ""
	if n := len(waiting) - len(near); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return muster.Errorf(muster.NotFound, "there is no request %s; waiting: %s%s", id, strings.Join(near, ", "), more)
}

// differs counts the places at which two ids differ.
func differs(a, b muster.RequestID) int {
	n := max(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n--
		}
	}
	return n
}

// index is the requests in memory, kept warm by the table's changes.
type index struct {
	table  muster.Table
	damage corruption.Watch
	teller *corruption.Teller

	mu   sync.Mutex
	mark muster.Mark
	reqs map[string]muster.Request
	seen map[muster.RequestID]time.Time // since when this process sees each wait
}

func (x *index) all(ctx context.Context) ([]muster.Request, error) {
	out, err := x.pull(ctx)
	if err == nil {
		err = x.damage.Say(ctx, x.teller)
	}
	return out, err
}

func (x *index) pull(ctx context.Context) ([]muster.Request, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.reqs == nil {
		x.reqs = map[string]muster.Request{}
	}
	for c, err := range x.table.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		x.mark = max(x.mark, c.Mark)
		if err == nil {
			err = x.take(c.Doc)
		}
		x.damage.Saw(c.Key, err == nil)
	}
	if err := x.damage.Again(ctx, x.take); err != nil {
		return nil, err
	}
	out := make([]muster.Request, 0, len(x.reqs))
	for _, r := range x.reqs {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b muster.Request) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// take takes in one document: a request, or that it is gone. One that cannot be read is left out.
func (x *index) take(d muster.Doc) error {
	delete(x.reqs, d.Key)
	if d.Rev == muster.None {
		delete(x.seen, muster.RequestID(d.Key))
		return nil
	}
	r, err := decode(muster.RequestID(d.Key), d.Data)
	if err == nil {
		x.reqs[d.Key] = r
		x.note(r)
	}
	return err
}

func decode(id muster.RequestID, data []byte) (r muster.Request, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return r, muster.Errorf(muster.Corrupt, "the request %s cannot be read: %w", id, err)
	}
	r.ID = id
	return r, nil
}

// learn takes in a request that was read by itself. A final one goes into the list: the table's changes may tell of it a
// moment later, and who was told that its plan is approved must find it so in the list. Nothing follows a final state, so
// this cannot be the older one.
func (x *index) learn(r muster.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.note(r); !Final(r) {
		return
	}
	if x.reqs == nil {
		x.reqs = map[string]muster.Request{}
	}
	x.reqs[string(r.ID)] = r
}
