package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster/llm"
)

// Base returns a base URL in the form that an SDK wants. People write it with or without a slash and a version at its
// end; the result ends in tail, which is "/" or "/v1/". A version anywhere in the path (/api/paas/v4, /v1beta/openai)
// takes the place of /v1.
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

// Client returns a copy of c, or of the default client, that follows no redirects. A redirect would carry the key and
// the conversation to a host that nobody named.
func Client(c *http.Client) *http.Client {
	var d http.Client
	if c != nil {
		d = *c
	}
	d.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &d
}

// Exchange is one request and its answer. Do is a middleware for either vendor's SDK; it returns a stream, or an error
// as the contract of llm.Model demands.
type Exchange struct {
	Peer Peer
	Emit func(llm.Delta)

	answered bool // a stream came
}

// Do sends req by next.
func (x *Exchange) Do(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return nil, x.Peer.errUnreachable(err)
	}
	if res.StatusCode >= 400 {
		// A body that breaks off does not change what the status says.
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close() // its status has said it all
		return nil, x.Peer.errorForResponse(res.StatusCode, res.Header, body)
	}
	if e := x.Peer.errNotStream(res.StatusCode, res.Header); e != nil {
		_ = res.Body.Close() // its status has said it all
		return nil, e
	}
	x.answered = true
	res.Body = &pingReader{res.Body, x.Emit}
	return res, nil
}

// Error returns the error to report for err, which an SDK gave in place of the stream's last event. A nil err means
// that the stream ended without one.
func (x *Exchange) Error(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	switch host := x.Peer.Host(); {
	case err == nil:
		return llm.Errorf(llm.Incomplete, "%s stopped in the middle of its answer", host)
	case x.answered:
		return llm.Errorf(llm.Incomplete, "the answer of %s broke off: %w", host, err)
	default:
		return llm.Errorf(llm.BadRequest, "the request to %s cannot be made: %w", host, err)
	}
}

// errNotStream recognises good answers that are no stream: redirects, and the HTML page that a wrong base URL gives.
// Without it, the SDK would report that the stream ended without a reply, which sends people to the wrong place.
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

// pingReader emits an empty delta for every piece of a body that arrives, so that a watchdog sees pings and other
// bytes that carry nothing to show.
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
