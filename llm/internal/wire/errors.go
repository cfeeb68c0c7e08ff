// Package wire is what the adapters share about HTTP: which error an answer
// means, how long to wait after it, and what a base URL is.
package wire

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster/llm"
)

// Peer is who is spoken to, for sentences.
type Peer struct {
	URL   string // the base URL
	Model string
}

// Host is the host part of the peer's URL.
func (p Peer) Host() string {
	if u, err := url.Parse(p.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return p.URL
}

// unreachable is the error for a request that got no answer.
func (p Peer) unreachable(err error) *llm.Error {
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &cert):
		return llm.Errorf(llm.Denied, "the certificate of %s is not trusted: %w", p.Host(), err)
	case errors.As(err, &dns):
		return llm.Errorf(llm.Overloaded, "the host %s is not found: %w", p.Host(), err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return llm.Errorf(llm.Overloaded, "%s refuses the connection: is a server running there?", p.Host())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return llm.Errorf(llm.Incomplete, "%s closed the connection without an answer: %w", p.Host(), err)
	case errors.As(err, &op), errors.As(err, &timeout) && timeout.Timeout():
		return llm.Errorf(llm.Overloaded, "%s cannot be reached: %w", p.Host(), err)
	}
	if u, ok := errors.AsType[*url.Error](err); ok && u.URL != "" && !strings.HasPrefix(u.URL, "http") {
		return llm.Errorf(llm.BadRequest, "%s is no URL that can be asked: %w", p.URL, u.Err)
	}
	return llm.Errorf(llm.Overloaded, "%s cannot be reached: %w", p.Host(), err)
}

// fault is the body of an error, of either vendor and most that imitate them.
type fault struct {
	Type    string
	Code    string // or a number as text
	Message string
}

func (f fault) is(word string) bool { return f.Code == word || f.Type == word }

// parse reads {"error":{...}}, {"error":"..."}, {"code":..,"message":..} and text.
func parse(body []byte) fault {
	type said struct {
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"` // a string, or with some servers a number
		Message string          `json:"message"`
	}
	var outer struct {
		said
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return fault{Message: firstLine(body)}
	}
	e := outer.said
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		e = said{Message: outer.Message}
		if json.Unmarshal(outer.Error, &e) != nil {
			_ = json.Unmarshal(outer.Error, &e.Message)
		}
	}
	f := fault{Type: e.Type, Message: e.Message}
	if json.Unmarshal(e.Code, &f.Code) != nil {
		f.Code = string(e.Code)
	}
	if f.Message == "" {
		f.Message = firstLine(body)
	}
	return f
}

func firstLine(b []byte) string {
	s, _, _ := strings.Cut(string(bytes.TrimSpace(b)), "\n")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}

// refusal is what an answer with an error status means.
func (p Peer) refusal(status int, h http.Header, body []byte) *llm.Error {
	f := parse(body)
	e := p.fault(status, f)
	e.Status = status
	if e.Kind == llm.Overloaded || e.Kind == llm.Limited && !spends(f, status) {
		e.After = RetryAfter(h, time.Now())
	}
	return e
}

// Event is what an error inside a stream means; body is its JSON. A limit that
// strikes in the middle is not a spend limit, so it has a time even where none is said.
func (p Peer) Event(body []byte) *llm.Error {
	f := parse(body)
	status := statusOf(f)
	if status == 0 {
		return llm.Errorf(llm.Incomplete, "%s broke off its answer: %s", p.Host(), f.Message)
	}
	e := p.fault(status, f)
	if e.Kind == llm.Limited && !spends(f, status) {
		e.After = midstream
	}
	return e
}

// statusOf is the HTTP status that f would have had before the stream began.
func statusOf(f fault) int {
	for _, word := range []string{f.Code, f.Type} {
		switch word {
		case "overloaded_error":
			return 529
		case "api_error", "server_error", "internal_error", "internal_server_error":
			return 500
		case "timeout_error":
			return 504
		case "rate_limit_error", "rate_limit_exceeded", "insufficient_quota":
			return 429
		case "request_too_large", "context_length_exceeded", "exceed_context_size_error":
			return 413
		case "not_found_error", "model_not_found":
			return 404
		case "permission_error":
			return 403
		case "billing_error":
			return 402
		case "authentication_error", "invalid_api_key":
			return 401
		case "invalid_request_error", "invalid_prompt":
			return 400
		}
	}
	if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 {
		return n
	}
	if full(f) {
		return 413
	}
	return 0
}

// midstream is the wait after a rate limit that was not announced in a header.
const midstream = 20 * time.Second

func (p Peer) fault(status int, f fault) *llm.Error {
	says := or(f.Message, f.Type, f.Code, http.StatusText(status), "no reason given")
	switch {
	case spends(f, status):
		return llm.Errorf(llm.Limited, "%s has a spend limit or no credit left: %s", p.Host(), says)
	case full(f), status == http.StatusRequestEntityTooLarge:
		return llm.Errorf(llm.ContextFull, "the conversation is too long for %s: %s", p.Model, says)
	case status == http.StatusTooManyRequests:
		return llm.Errorf(llm.Limited, "%s limits the rate: %s", p.Host(), says)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.Errorf(llm.Denied, "%s denies access: %s", p.Host(), says)
	case status == http.StatusNotFound:
		return llm.Errorf(llm.Denied, "%s does not know the model %q, or its URL is another: %s", p.URL, p.Model, says)
	case status == http.StatusRequestTimeout, status >= 500:
		return llm.Errorf(llm.Overloaded, "%s answers %d: %s", p.Host(), status, says)
	case f.is("model_not_found"):
		return llm.Errorf(llm.Denied, "%s does not know the model %q: %s", p.URL, p.Model, says)
	default:
		return llm.Errorf(llm.BadRequest, "%s refuses the request: %s", p.Host(), says)
	}
}

// spends: the money is gone, which no waiting brings back. One vendor says it
// with a plain invalid_request_error, so that only its words tell.
func spends(f fault, status int) bool {
	return status == http.StatusPaymentRequired ||
		f.is("insufficient_quota") || f.is("billing_hard_limit_reached") || f.is("billing_error") ||
		strings.Contains(f.Message, "credit balance is too low")
}

// full: the conversation is longer than the model's window. The code is one
// vendor's; the others have nothing but words for it.
func full(f fault) bool {
	if f.is("context_length_exceeded") || f.is("exceed_context_size_error") {
		return true
	}
	m := strings.ToLower(f.Message)
	for _, s := range []string{
		"prompt is too long",
		"exceed context limit",
		"maximum context length",
		"context length exceeded",
		"exceeds the available context size",
		"exceeds the context window",
		"input is too long",
	} {
		if strings.Contains(m, s) {
			return true
		}
	}
	return false
}

func or(ss ...string) string {
	for _, s := range ss {
		if s != "" {
			return s
		}
	}
	return ""
}
