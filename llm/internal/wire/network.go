package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"muster/internal/proxies"
	"muster/llm"
)

// NewClient returns a client that says what a proxy answers. The proxies are those of the environment, ALL_PROXY the
// last of them.
func NewClient() *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // a program that embeds this one has its own
		return new(http.Client)
	}
	transport = transport.Clone()
	transport.Proxy = proxies.Last(transport.Proxy)
	transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
		if r.StatusCode != http.StatusOK {
			return &proxyError{r.StatusCode, r.Status}
		}
		return nil
	}
	return &http.Client{Transport: transport}
}

// proxyError is the answer of a proxy that does not connect.
type proxyError struct {
	code   int
	status string
}

// Error returns the status.
func (e *proxyError) Error() string { return e.status }

// errUnreachable is the error for a request that got no answer. Its kind decides what happens next: a
// network that is down may come back, and a certificate that is not trusted will not be trusted later.
func (p Peer) errUnreachable(err error) *llm.Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.URL != "" && !strings.HasPrefix(u.URL, "http") {
			return llm.Errorf(llm.BadRequest, "%s is no URL that can be asked: %w", p.shownURL(), u.Err)
		}
		err = u.Err // u prints the URL, whose query may hold a key
	}
	if e := p.errProxy(err); e != nil {
		return e
	}
	if e := p.errTLS(err); e != nil {
		return e
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return llm.Errorf(llm.Unreachable, "the host %s is not found: is its name right, and the network up? %w",
			p.Host(), err)
	case errors.As(err, &dns):
		return llm.Errorf(llm.Unreachable, "the name server does not say where %s is: %w", p.Host(), err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return llm.Errorf(llm.Unreachable, "%s refuses the connection: is a server running there?", p.Host())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return llm.Errorf(llm.Incomplete, "%s closed the connection without an answer: %w", p.Host(), err)
	}
	return llm.Errorf(llm.Unreachable, "%s cannot be reached: %w", p.Host(), err)
}

// wantsLogin is what to do about a proxy that wants to know who asks.
const wantsLogin = "the proxy on the way to %s wants a name and a password: " +
	"HTTPS_PROXY, HTTP_PROXY or ALL_PROXY takes them as in http://name:password@host:port"

// errProxy returns the error for a request that got no further than to the proxy, or nil.
func (p Peer) errProxy(err error) *llm.Error {
	if answer, ok := errors.AsType[*proxyError](err); ok {
		switch {
		case answer.code == http.StatusProxyAuthRequired:
			return llm.Errorf(llm.Denied, wantsLogin, p.Host())
		case answer.code < 500:
			return llm.Errorf(llm.Denied, "the proxy does not let connections to %s pass (%w): "+
				"ask who runs it, or name the host in NO_PROXY", p.Host(), answer)
		}
		return llm.Errorf(llm.Unreachable, "the proxy does not reach %s: %w", p.Host(), answer)
	}
	if errors.Is(err, proxies.ErrKind) {
		return llm.Errorf(llm.BadRequest, "%s cannot be asked: %w", p.Host(), err)
	}
	op, ok := errors.AsType[*net.OpError](err)
	switch {
	case ok && op.Op == "proxyconnect":
		return llm.Errorf(llm.Unreachable, "the proxy on the way to %s cannot be reached: are HTTPS_PROXY, "+
			"HTTP_PROXY, ALL_PROXY and NO_PROXY right? %w", p.Host(), op.Err)
	case !ok || op.Op != "socks connect":
		return nil
	case strings.Contains(op.Err.Error(), "authentication"): // net/http has no kinds of these errors
		return llm.Errorf(llm.Denied, wantsLogin, p.Host())
	case strings.Contains(op.Err.Error(), "not allowed"):
		return llm.Errorf(llm.Denied, "the proxy does not let connections to %s pass (%w): "+
			"ask who runs it, or name the host in NO_PROXY", p.Host(), op.Err)
	}
	return llm.Errorf(llm.Unreachable, "the proxy does not reach %s: %w", p.Host(), op.Err)
}

// errTLS returns the error for a connection that is not safe, or nil.
func (p Peer) errTLS(err error) *llm.Error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(err, &unknown):
		return llm.Errorf(llm.Denied, "the certificate of %s is not trusted: it is signed by an authority that this "+
			"machine does not know. If that is your company's, add its certificate to the system's, "+
			"or name its file in SSL_CERT_FILE", p.Host())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return llm.Errorf(llm.Denied, "the certificate of %s is valid from %s to %s only: is this machine's clock "+
			"right? If it is, the server needs a new one", p.Host(), invalid.Cert.NotBefore.Format("2006-01-02"),
			invalid.Cert.NotAfter.Format("2006-01-02"))
	case errors.As(err, &name):
		return llm.Errorf(llm.Denied, "the certificate is not one for %s: is the URL right, or does something "+
			"stand in between? %w", p.Host(), err)
	case errors.As(err, &cert):
		return llm.Errorf(llm.Denied, "the certificate of %s is not trusted: %w", p.Host(), err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return llm.Errorf(llm.BadRequest, "%s does not speak TLS: is its URL one with http instead of https?", p.Host())
	case errors.As(err, &op) && op.Op == "remote error": // an alert of TLS
		return llm.Errorf(llm.Denied, "%s ends the TLS connection: %w", p.Host(), err)
	}
	return nil
}
