package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster/internal/redact"
	"muster/internal/text"
	"muster/llm"
)

// Endpoint returns the URL of a path below a base URL. People write the base with or without a slash and a version at
// its end. tail comes between the two: "/" takes a /v1 at the end of the base away, and "/v1/" is left out if the base
// has a version anywhere in its path (/api/paas/v4, /v1beta/openai). A query of the base stays.
func Endpoint(base, tail, path string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return base // the request reports it
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	if tail == "/" {
		u.Path = strings.TrimSuffix(u.Path, "/v1")
	} else if slices.ContainsFunc(strings.Split(u.Path, "/"), isVersion) {
		tail = "/"
	}
	u.Path += tail + path
	return u.String()
}

// isVersion reports whether a path element is a version, such as v1 or v1beta.
func isVersion(s string) bool {
	return len(s) >= 2 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// Exchange is one request and its answer. It emits what streams in, and makes the calls of the reply.
type Exchange struct {
	Peer
	Emit func(llm.Delta)

	// answered says that a stream came. An error from then on means a broken answer, which is asked for
	// again; an error before it means that the request could not be made.
	answered   bool
	request    llm.Request
	kept       int  // bytes of the reply
	isOverfull bool // the reply had more in it than any may have
}

// NewExchange returns the exchange for a request. emit may be nil.
func NewExchange(p Peer, r llm.Request, emit func(llm.Delta)) *Exchange {
	if emit == nil {
		emit = func(llm.Delta) {}
	}
	return &Exchange{Peer: p, Emit: emit, request: r}
}

// Post sends body as JSON by c and reads the answer. header has what the
// vendor wants beside the ordinary headers. Post returns a complete reply or an error, never a part of a reply,
// because a part could lack a call that the rest of the text speaks of.
func (x *Exchange) Post(
	ctx context.Context, c *http.Client, endpoint string, header http.Header, body any, to Reader,
) (reply llm.Reply, err error) {
	for name, value := range x.Header {
		header.Set(name, value)
	}
	// Servers quote the key that they refuse, and proxies the whole request.
	defer func() { err = secretsOf(endpoint, header).Error(err) }()
	text, err := x.encode(body)
	if err != nil {
		return llm.Reply{}, x.errorOf(ctx, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(text))
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // u prints the URL
		}
		return llm.Reply{}, x.errorOf(ctx, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "muster")
	maps.Copy(req.Header, header)
	if err := checkHeader(req.Header); err != nil {
		return llm.Reply{}, x.errorOf(ctx, err)
	}
	client := *c
	// A redirect would carry the key and the conversation to a host that nobody named.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return llm.Reply{}, x.errorOf(ctx, x.errUnreachable(err))
	}
	if x.Observe != nil {
		x.Observe(res)
	}
	x.Emit(llm.Delta{Answer: answerOf(res, time.Now())})
	defer func() { _ = res.Body.Close() }() // the reply is complete or lost by then
	if res.StatusCode >= 400 {
		// A body that breaks off does not change what the status says.
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		e := x.bySize(x.errorForResponse(res.StatusCode, res.Header, body), body)
		return llm.Reply{}, x.errorOf(ctx, x.byTool(e, body))
	}
	if e := x.errNotStream(res.StatusCode, res.Header); e != nil {
		return llm.Reply{}, x.errorOf(ctx, e)
	}
	x.answered = true
	stream := &limited{io.TeeReader(res.Body, pinger(x.Emit)), MaxStream,
		x.errLimit("does not end: it has more than %s", formatSize(MaxStream))}
	return x.read(ctx, bufio.NewReaderSize(stream, 32<<10), to)
}

// encode returns a body as JSON that is all Unicode, with the fields of Extra in place of those of the same names. The
// fields are in one order for all requests of a peer, because the vendors' caches compare bytes.
func (p Peer) encode(body any) ([]byte, error) {
	text, err := p.encodeFields(body)
	return toUnicode(text), err
}

func (p Peer) encodeFields(body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a prompt with code in it is shorter without
	if err := encoder.Encode(body); err != nil || len(p.Extra) == 0 {
		return text.Bytes(), err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text.Bytes(), &fields); err != nil {
		return nil, err
	}
	for name, value := range p.Extra {
		if fields[name] = value; string(value) == "null" {
			delete(fields, name)
		}
	}
	text.Reset()
	err := encoder.Encode(fields)
	return text.Bytes(), err
}

// secretsOf returns what is secret in a request: the values of the headers with the names of credentials, and what is
// in the URL.
func secretsOf(endpoint string, header http.Header) *redact.Secrets {
	values := redact.InURLs(endpoint)
	for name := range header {
		values = append(values, redact.InHeader(name, header.Get(name))...)
	}
	return redact.New(values...)
}

// Reader makes a reply of the events of a stream.
type Reader interface {
	// Event applies the JSON of the next event. It returns true if no later event matters.
	Event(data []byte) (done bool, err error)
	// Reply returns the finished reply; ok is false if the stream has not reached its end, or with an error.
	Reply() (r llm.Reply, ok bool, err error)
}

// read reads the events of a stream. Some servers, and what stands in front of them, answer in one piece although a
// stream was asked for: that piece is the only event.
func (x *Exchange) read(ctx context.Context, stream *bufio.Reader, to Reader) (llm.Reply, error) {
	var broken error
	n, all := 0, events(stream)
	switch firstByte(stream) {
	case '{':
		all = oneEvent(stream)
	case '<': // whatever its type says
		return llm.Reply{}, x.errWebPage(http.StatusOK)
	}
	for e, err := range all {
		if err != nil || bytes.HasPrefix(e.data, []byte("[DONE]")) {
			broken = err
			break
		}
		if n++; n > MaxEvents {
			return llm.Reply{}, x.errLimit("does not end: it has more than %d events", MaxEvents)
		}
		if problem := checkJSON(e.data); problem != "" {
			return llm.Reply{}, x.errLimit("has an event that %s", problem)
		}
		e.data = bytes.ToValidUTF8(e.data, []byte("\ufffd"))
		if e.name == "error" || isErrorEvent(e.data) {
			return llm.Reply{}, x.byTool(x.ErrorInStream(e.data), e.data)
		}
		done, err := to.Event(e.data)
		if err != nil {
			return llm.Reply{}, x.errorOf(ctx, err)
		}
		if done {
			break
		}
	}
	// A connection that breaks after the last event takes nothing away, so its error is looked at only
	// without a reply.
	r, ok, err := to.Reply()
	if ok {
		return r, nil
	}
	return llm.Reply{}, x.errorOf(ctx, cmp.Or(err, broken))
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
	case errors.Is(err, bufio.ErrTooLong):
		return x.errLimit("has an event of more than %s", formatSize(MaxEvent))
	case err == nil:
		return llm.Errorf(llm.Incomplete, "%s stopped in the middle of its answer", x.Host())
	case x.answered && isMalformed(err):
		return x.ErrMalformed("%w", err)
	case x.answered:
		return llm.Errorf(llm.Incomplete, "the answer of %s broke off: %w", x.Host(), err)
	default:
		return llm.Errorf(llm.BadRequest, "the request to %s cannot be made: %w", x.Host(), err)
	}
}

// ErrBroken is the error for a reply that the server has given up. The request is repeated like that of a stream that
// breaks off.
func (x *Exchange) ErrBroken(f string, a ...any) *llm.Error {
	return llm.Errorf(llm.Incomplete, "the answer of "+x.Host()+" is broken: "+f, a...)
}

// ErrMalformed is the error for a reply that makes no sense. The request is repeated once.
func (x *Exchange) ErrMalformed(f string, a ...any) *llm.Error {
	e := x.ErrBroken(f, a...)
	e.Malformed = true
	return e
}

// isMalformed reports whether JSON was decoded that is wrong, and not only cut off.
func isMalformed(err error) bool {
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	return isType || isSyntax && syntax.Error() != "unexpected end of JSON input"
}

// errNotStream recognises good answers that are no stream: redirects, the HTML page that a wrong base URL gives, and
// what is packed in a way that is not known here. Without it, the error would be that the stream ended without a reply,
// which sends people to the wrong place.
func (p Peer) errNotStream(status int, h http.Header) *llm.Error {
	if status >= 300 && status < 400 {
		to := "another URL"
		if u, err := url.Parse(h.Get("Location")); err == nil && u.Path+u.Host != "" {
			to = withoutSecrets(u) // a server repeats the query that it was asked with
		}
		return &llm.Error{Kind: llm.BadRequest, Status: status,
			Err: fmt.Errorf("%s redirects to %s: give that URL instead", p.shownURL(), to)}
	}
	if media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); media == "text/html" {
		return p.errWebPage(status)
	}
	if packed := h.Get("Content-Encoding"); packed != "" && packed != "identity" { // gzip is unpacked already
		return &llm.Error{Kind: llm.BadRequest, Status: status,
			Err: fmt.Errorf("%s packs its answer as %q, which it was not asked for", p.shownURL(),
				text.CutBytes(packed, 40))}
	}
	return nil
}

// errWebPage is the error for a page in place of an answer.
func (p Peer) errWebPage(status int) *llm.Error {
	return &llm.Error{Kind: llm.BadRequest, Status: status,
		Err: fmt.Errorf("%s answers with a web page: is the URL right?", p.shownURL())}
}

// pinger emits an empty delta for every piece of a body that arrives, so that a watchdog sees pings and other
// bytes that carry nothing to show.
type pinger func(llm.Delta)

// Write reports that something arrived.
func (emit pinger) Write(p []byte) (int, error) {
	emit(llm.Delta{})
	return len(p), nil
}

// firstByte returns the first byte of a body that is no white space, or 0 if there is none. It is not read yet.
func firstByte(body *bufio.Reader) byte {
	for n := 1; ; n++ {
		begin, err := body.Peek(n)
		if err != nil {
			return 0
		}
		if c := begin[n-1]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
}

// oneEvent yields a whole body as an event. The error of a body that is too large is bufio.ErrTooLong.
func oneEvent(body io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		data, err := io.ReadAll(io.LimitReader(body, MaxEvent+1))
		if err == nil && len(data) > MaxEvent {
			err = bufio.ErrTooLong
		}
		yield(event{data: data}, err)
	}
}

// event is an event of a stream. Its data is valid until the next one.
type event struct {
	name string // often empty
	data []byte
}

// events yields the events of a stream in the format of server-sent events, without those that have no data. An event
// ends at a blank line; one that the end of the stream cuts off is not yielded. The last pair may have the error of
// reading, which is bufio.ErrTooLong for an event that is too large.
//
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
func events(r io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, MaxEvent)
		var e event
		for lines.Scan() {
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case string(name) == "event":
				e.name = string(value)
			case string(name) == "data" && len(e.data)+len(value) > MaxEvent:
				yield(event{}, bufio.ErrTooLong)
				return
			case string(name) == "data":
				e.data = append(append(e.data, value...), '\n')
			case len(lines.Bytes()) == 0: // the end of the event
				data := bytes.TrimSpace(e.data)
				if len(data) > 0 && !yield(event{e.name, data}, nil) {
					return
				}
				e = event{data: e.data[:0]}
			}
		}
		if err := lines.Err(); err != nil {
			yield(event{}, err)
		}
	}
}

// Name returns s in a form that every vendor accepts as a tool's name or a call's id: letters, digits, _
// and -, not empty, at most limit long. A changed name ends in a hash of the original, so that two
// different names stay different.
func Name(s string, limit int) string {
	ok := s != "" && len(s) <= limit
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		ok = false
		return '_'
	}, s)
	if ok {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return out[:min(len(out), limit-9)] + "_" + hex.EncodeToString(sum[:4])
}

// OrDefault returns s, or what stands for it if it is empty.
func OrDefault(s json.RawMessage, byDefault string) json.RawMessage {
	if len(s) == 0 {
		return json.RawMessage(byDefault)
	}
	return s
}
