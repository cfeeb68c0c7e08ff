package requests

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"muster"
	"muster/internal/editdist"
	"muster/internal/state"
)

// idRule is what a request's id looks like. It allows more than Ask makes, because other programs have
// ids of their own. It is compiled when it is first needed, because every command pays for what is compiled
// at its start.
var idRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`) })

// Get returns one request. Errors: NotFound, with the requests that wait.
func (q *Requests) Get(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	r, _, err := q.read(ctx, id)
	return r, err
}

// List returns all requests, oldest first. One that cannot be read is left out, and reported once by an
// event.
func (q *Requests) List(ctx context.Context) ([]muster.Request, error) {
	out, err := q.items.List(ctx)
	slices.SortFunc(out, func(a, b muster.Request) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return out, err
}

// Pending returns the requests that wait, oldest first.
func (q *Requests) Pending(ctx context.Context) ([]muster.Request, error) {
	all, err := q.List(ctx)
	return slices.DeleteFunc(all, Final), err
}

// missing returns the error for an id that no request has. It names up to three requests that wait, those
// with the most similar ids first, because ids are often mistyped.
func (q *Requests) missing(ctx context.Context, id muster.RequestID) error {
	waiting, err := q.Pending(ctx)
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		return muster.Errorf(muster.NotFound, "there is no request %s, and none waits", id)
	}
	slices.SortStableFunc(waiting, func(a, b muster.Request) int {
		return cmp.Compare(editdist.Distance(string(a.ID), string(id)), editdist.Distance(string(b.ID), string(id)))
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

// decode and encode read and write a request's document.
var decode, encode = state.JSON("the request %s", func(r *muster.Request, key string) { r.ID = muster.RequestID(key) })
