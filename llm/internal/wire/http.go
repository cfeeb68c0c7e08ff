package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"muster/llm"
)

// Base returns a base URL in the form that an SDK wants. People write it with or without a slash and a
// version at its end; the result ends in tail, which is "/" or "/v1/". A version anywhere in the path
// (/api/paas/v4, /v1beta/openai) takes the place of /v1.
func Base(s, tail string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return s
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	if tail == "/" {
		u.Path = strings.TrimSuffix(u.Path, "/v1")
	} else if slices.ContainsFunc(strings.Split(u.Path, "/"), isVersion) {
		tail = "/"
	}
	u.Path += tail
	return u.String()
}

// isVersion reports whether a path element is a version, such as v1 or v1beta.
func isVersion(s string) bool {
	return len(s) >= 2 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// Client returns a copy of c, or of the default client, that follows no redirects. A redirect would carry
// the key and the conversation to a host that nobody named.
func Client(c *http.Client) *http.Client {
	var d http.Client
	if c != nil {
		d = *c
	}
	d.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &d
}

// Exchange is one request and its answer. An adapter sends the request through its vendor's SDK with Do as
// middleware, and passes what came of it to Read. The exchange emits what streams in, and makes the calls
// of the reply.
type Exchange struct {
	Peer
	Emit func(llm.Delta)

	// answered says that a stream came. An error from then on means a broken answer, which is asked for
	// again; an error before it means that the request could not be made.
	answered bool
	messages int             // of the request
	calls    int             // of the reply, so far
	ids      map[string]bool // of the calls so far
}

// NewExchange returns the exchange for a request. emit may be nil.
func NewExchange(p Peer, r llm.Request, emit func(llm.Delta)) *Exchange {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	return &Exchange{Peer: p, Emit: emit, messages: len(r.Messages), ids: map[string]bool{}}
}

// Do sends req by next. It returns a stream, or an error as the contract of llm.Model demands.
func (x *Exchange) Do(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return nil, x.errUnreachable(err)
	}
	if res.StatusCode >= 400 {
		// A body that breaks off does not change what the status says.
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close() // its status has said it all
		return nil, x.errorForResponse(res.StatusCode, res.Header, body)
	}
	if e := x.errNotStream(res.StatusCode, res.Header); e != nil {
		_ = res.Body.Close() // its status has said it all
		return nil, e
	}
	x.answered = true
	res.Body = &pingReader{res.Body, x.Emit}
	return res, nil
}

// Reader makes a reply of the events of a stream.
type Reader interface {
	// Event applies the JSON of the next event. It returns true if no later event matters.
	Event(data []byte) (done bool, err error)
	// Reply returns the finished reply; ok is false if the stream has not reached its end.
	Reply() (r llm.Reply, ok bool, err error)
}

// Read reads the answer, or returns the error to report for err, with which the request failed. It uses the
// decoder of one SDK for the streams of both vendors, but no SDK's stream type: one takes an event with
// "error": null for an error. It returns a complete reply or an error, never a part of a reply, because a
// part could lack a call that the rest of the text speaks of.
func (x *Exchange) Read(ctx context.Context, res *http.Response, err error, to Reader) (llm.Reply, error) {
	if err != nil {
		return llm.Reply{}, x.errorOf(ctx, err)
	}
	events := ssestream.NewDecoder(res)
	defer func() { _ = events.Close() }() // the reply is complete or lost by then
	for done := false; !done && events.Next(); {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue
		}
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			break
		}
		if isErrorEvent(data) {
			return llm.Reply{}, x.ErrorInStream(data)
		}
		if done, err = to.Event(data); err != nil {
			return llm.Reply{}, x.errorOf(ctx, err)
		}
	}
	// A connection that breaks after the last event takes nothing away, so its error is looked at only
	// without a reply.
	r, ok, err := to.Reply()
	if err != nil || ok {
		return r, err
	}
	return llm.Reply{}, x.errorOf(ctx, events.Err())
}

// isErrorEvent reports whether an event is an error in the middle of the stream. Some servers send "error":
// null with every event.
func isErrorEvent(data []byte) bool {
	var e struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &e) != nil {
		return false
	}
	return e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null"
}

// errorOf returns the error to report for err, which came in place of the stream's last event. A nil err
// means that the stream ended without one.
func (x *Exchange) errorOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	switch {
	case err == nil:
		return llm.Errorf(llm.Incomplete, "%s stopped in the middle of its answer", x.Host())
	case x.answered:
		return llm.Errorf(llm.Incomplete, "the answer of %s broke off: %w", x.Host(), err)
	default:
		return llm.Errorf(llm.BadRequest, "the request to %s cannot be made: %w", x.Host(), err)
	}
}

// ErrBroken is the error for a stream that makes no sense. Its kind lets the request be repeated.
func (x *Exchange) ErrBroken(f string, a ...any) *llm.Error {
	return llm.Errorf(llm.Incomplete, "the answer of "+x.Host()+" is broken: "+f, a...)
}

// Call returns a call of the reply, for which the server said id. A server that leaves an id out or repeats
// one gets one made from the call's place in the conversation. It is the same when the request is sent
// again, and different from that of any other call.
func (x *Exchange) Call(id, name, input string) (llm.Call, error) {
	in, err := llm.Input([]byte(input))
	if err != nil {
		return llm.Call{}, x.ErrBroken("call %q: %w", name, err)
	}
	x.calls++
	if id == "" || x.ids[id] {
		id = fmt.Sprintf("call_%d_%d", x.messages, x.calls)
	}
	x.ids[id] = true
	return llm.Call{ID: id, Name: name, Input: in}, nil
}

// errNotStream recognises good answers that are no stream: redirects, and the HTML page that a wrong base
// URL gives. Without it, the SDK would report that the stream ended without a reply, which sends people to
// the wrong place.
func (p Peer) errNotStream(status int, h http.Header) *llm.Error {
	if status >= 300 && status < 400 {
		return &llm.Error{Kind: llm.BadRequest, Status: status,
			Err: fmt.Errorf("%s redirects to %s: give that URL instead", p.URL, h.Get("Location"))}
	}
	if media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); media == "text/html" {
		return &llm.Error{Kind: llm.BadRequest, Status: status,
			Err: fmt.Errorf("%s answers with a web page: is the URL right?", p.URL)}
	}
	return nil
}

// pingReader emits an empty delta for every piece of a body that arrives, so that a watchdog sees pings and
// other bytes that carry nothing to show.
type pingReader struct {
	io.ReadCloser
	emit func(llm.Delta)
}

// Read reads from the body and reports that something arrived.
func (a *pingReader) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if n > 0 {
		a.emit(llm.Delta{})
	}
	return n, err
}
