package retry_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/internal/wire"
	"muster/llm/llmtest"
	"muster/llm/openai"
	"muster/llm/retry"
)

// vendors are the models that ask at a URL, by the name of their interface.
var vendors = map[string]func(url string, c *http.Client) llm.Model{
	"messages": func(url string, c *http.Client) llm.Model {
		return anthropic.New(anthropic.Options{Model: "m", BaseURL: url, Client: c, Known: small})
	},
	"chat": func(url string, c *http.Client) llm.Model {
		return openai.New(openai.Options{Model: "m", BaseURL: url, API: openai.Chat, Client: c, Known: small})
	},
	"responses": func(url string, c *http.Client) llm.Model {
		return openai.New(openai.Options{Model: "m", BaseURL: url, API: openai.Responses, Client: c, Known: small})
	},
}

// small is a model with a small window.
var small = catalogue.Model{Name: "m", Window: 8000, MaxOutput: 1000}

// good answers with a text and a call.
var good = llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{
	llm.Text{Text: "Here is the whole of it."}, llm.Call{ID: "call_1", Name: "write", Input: json.RawMessage(`{"path":"a"}`)}}}}

// isGood reports whether a reply is the good one.
func isGood(r llm.Reply) bool {
	calls := r.Message.Calls()
	return r.Stop == good.Stop && r.Message.Text() == good.Message.Text() && len(calls) == 1 &&
		calls[0].Name == "write" && string(calls[0].Input) == `{"path":"a"}`
}

// replies is the model behind a server. It has one reply.
type replies llm.Reply

// Reply implements llm.Model.
func (m replies) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	return llm.Reply(m), nil
}

// answer answers a request in place of the good answer, which it has.
type answer func(w http.ResponseWriter, good *httptest.ResponseRecorder)

// status answers with a status, a body and headers "name: value".
func status(code int, body string, headers ...string) answer {
	return func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// says is the error of most servers with a message.
func says(code int, message string) answer {
	return status(code, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, message))
}

// beginning is the first half of a good answer.
func beginning(good *httptest.ResponseRecorder) string {
	events := strings.SplitAfter(good.Body.String(), "\n\n")
	return strings.Join(events[:len(events)/2], "")
}

// broken answers with the beginning of a good answer and what follows it.
func broken(after string, headers ...string) answer {
	return func(w http.ResponseWriter, good *httptest.ResponseRecorder) {
		status(200, beginning(good)+after, append([]string{"Content-Type: text/event-stream"}, headers...)...)(w, good)
	}
}

// hijacked takes the connection over.
func hijacked(w http.ResponseWriter) net.Conn {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

// hangUp ends the connection without an answer, with a reset or without.
func hangUp(reset bool) answer {
	return func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		c := hijacked(w)
		if tcp, ok := c.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// server answers so many times with trouble and then well. asked counts the requests.
func server(t *testing.T, trouble answer, times int) (s *httptest.Server, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	behind := llmtest.Handler(replies(good))
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder()
		behind.ServeHTTP(whole, r)
		if int(asked.Add(1)) <= times {
			trouble(w, whole)
			return
		}
		status(whole.Code, whole.Body.String(), "Content-Type: text/event-stream")(w, whole)
	}))
	s.Config.SetKeepAlivesEnabled(false) // a connection that waits for the next request would hold up the bubble's clock
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s, asked
}

// A full window that a server does not name is recognised by the size of what was sent; an image counts little.
func TestContextFullBySize(t *testing.T) {
	long := strings.Repeat("some words ", 2000)
	image := llm.Image{Media: "image/png", Data: make([]byte, 1<<20)}
	for name, c := range map[string]struct {
		answer
		parts llm.Parts
		kind  llm.Kind
	}{
		"no words":                {status(400, ""), llm.Parts{llm.Text{Text: long}}, llm.ContextFull},
		"no words of its own":     {says(400, "Bad Request"), llm.Parts{llm.Text{Text: long}}, llm.ContextFull},
		"422":                     {status(422, "{}"), llm.Parts{llm.Text{Text: long}}, llm.ContextFull},
		"a page":                  {status(400, "<html><body>400 Bad Request</body></html>"), llm.Parts{llm.Text{Text: long}}, llm.ContextFull},
		"a short prompt":          {status(400, ""), llm.Parts{llm.Text{Text: "hi"}}, llm.BadRequest},
		"an image":                {status(400, ""), llm.Parts{llm.Text{Text: "hi"}, image}, llm.BadRequest},
		"words":                   {says(400, "temperature: range: 0..1"), llm.Parts{llm.Text{Text: long}}, llm.BadRequest},
		"words, and far too long": {says(400, "Nope, too much of it."), llm.Parts{llm.Text{Text: long + long}}, llm.ContextFull},
		"a maximum of the reply":  {says(400, "max_tokens: 100 is refused"), llm.Parts{llm.Text{Text: long + long}}, llm.BadRequest},
	} {
		for api, model := range vendors {
			s, _ := server(t, c.answer, 1)
			_, err := model(s.URL, nil).Reply(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: c.parts}}}, nil)
			if llm.KindOf(err) != c.kind {
				t.Errorf("%s, %s: %v, want %s", name, api, err, c.kind)
			}
		}
	}
}

// want is what comes of a trouble.
type want struct {
	kind  llm.Kind      // of the trouble
	says  string        // the trouble, to people
	after time.Duration // the least time until the request is sent again
	ends  bool          // the trouble is the result: nothing is asked again
}

// askOf asks a model with retries for a reply.
func askOf(m llm.Model, o retry.Options) (llm.Reply, error) {
	return retry.Wrap(m, o).Reply(context.Background(), llm.Request{Messages: []llm.Message{
		{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "hi"}}}}}, nil)
}

// checkError checks the error of a trouble that is not waited out.
func checkError(t *testing.T, r llm.Reply, err error, w want) {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != w.kind || !strings.Contains(e.Error(), w.says) || len(r.Message.Parts) > 0 {
		t.Errorf("%q, %v; want %s, %q", r.Message.Parts, err, w.kind, w.says)
	}
}

// Each trouble of a model's server, over real connections, with each interface: what passes is waited out and the reply
// is whole, and what does not pass ends the request at once. The time is that of a bubble.
func TestTroublesOverSockets(t *testing.T) {
	gzipped := func(parts int) answer {
		return func(w http.ResponseWriter, good *httptest.ResponseRecorder) {
			var packed strings.Builder
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(good.Body.Bytes())
			_ = z.Close()
			status(200, packed.String()[:packed.Len()/parts], "Content-Type: text/event-stream", "Content-Encoding: gzip")(w, good)
		}
	}
	for name, c := range map[string]struct {
		answer
		want
	}{
		"429":                      {status(429, ""), want{kind: llm.Limited, says: "limits the rate"}},
		"429 with Retry-After":     {status(429, "", "Retry-After: 30"), want{kind: llm.Limited, says: "limits the rate", after: 30 * time.Second}},
		"529":                      {status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), want{kind: llm.Overloaded, says: "answers 529"}},
		"502, a gateway's page":    {status(502, "<html>Bad Gateway</html>", "Content-Type: text/html"), want{kind: llm.Overloaded, says: "answers 502"}},
		"a reset":                  {hangUp(true), want{kind: llm.Incomplete, says: "closed the connection without an answer"}},
		"a close":                  {hangUp(false), want{kind: llm.Incomplete, says: "closed the connection without an answer"}},
		"no terminal event":        {broken(""), want{kind: llm.Incomplete, says: "stopped in the middle of its answer"}},
		"half an event":            {broken(`data: {"type":"conte`), want{kind: llm.Incomplete, says: "stopped in the middle"}},
		"a truncated body":         {broken("", "Content-Length: 100000"), want{kind: llm.Incomplete, says: "broke off"}},
		"overloaded inside":        {broken("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), want{kind: llm.Overloaded, says: "Overloaded"}},
		"an event that is no JSON": {broken("data: {what}\n\n"), want{kind: llm.Incomplete, says: "is broken"}},
		"gzip that is cut":         {gzipped(2), want{kind: llm.Incomplete, says: "broke off"}},
		"gzip":                     {gzipped(1), want{}},
		"another type": {func(w http.ResponseWriter, good *httptest.ResponseRecorder) {
			status(200, good.Body.String(), "Content-Type: text/plain")(w, good)
		}, want{}},

		"401":                   {says(401, "invalid x-api-key"), want{kind: llm.Denied, says: "denies access: invalid x-api-key", ends: true}},
		"404":                   {says(404, "no such model"), want{kind: llm.Denied, says: `does not know the model "m"`, ends: true}},
		"407":                   {status(407, "", `Proxy-Authenticate: Basic`), want{kind: llm.Denied, says: "the proxy on the way to", ends: true}},
		"OpenAI's quota":        {status(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`), want{kind: llm.Spent, says: "no credit left", ends: true}},
		"413":                   {status(413, "<html>Request Entity Too Large</html>"), want{kind: llm.ContextFull, says: "too long", ends: true}},
		"pairing":               {says(400, "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"), want{kind: llm.BadHistory, says: "refuses the order", ends: true}},
		"400":                   {says(400, "temperature: range: 0..1"), want{kind: llm.BadRequest, says: "temperature", ends: true}},
		"a redirect":            {status(307, "", "Location: http://elsewhere.example/"), want{kind: llm.BadRequest, says: "redirects to http://elsewhere.example/", ends: true}},
		"a page, typed as JSON": {status(200, "\n<!DOCTYPE html>", "Content-Type: application/json"), want{kind: llm.BadRequest, says: "web page", ends: true}},
		"packed as nobody asked": {status(200, "x", "Content-Type: text/event-stream", "Content-Encoding: br"),
			want{kind: llm.BadRequest, says: `packs its answer as "br"`, ends: true}},
	} {
		for api, model := range vendors {
			t.Run(name+", "+api, func(t *testing.T) {
				s, asked := server(t, c.answer, 2)
				synctest.Test(t, func(t *testing.T) {
					began, waits := time.Now(), 0
					r, err := askOf(model(s.URL, nil), retry.Options{OnWait: func(_ time.Time, err error) {
						waits++
						checkError(t, llm.Reply{}, err, c.want)
					}})
					if c.ends {
						if checkError(t, r, err, c.want); asked.Load() != 1 || time.Since(began) > 0 {
							t.Errorf("asked %d times", asked.Load())
						}
						return
					}
					if c.says == "is broken" { // it came whole twice, and made no sense
						if checkError(t, r, err, c.want); asked.Load() != 2 {
							t.Errorf("asked %d times", asked.Load())
						}
						return
					}
					if err != nil || !isGood(r) {
						t.Fatalf("%q, %v", r.Message.Parts, err)
					}
					times := 2
					if c.kind == "" { // it is no trouble
						times = 0
					}
					if took := time.Since(began); waits != times || int(asked.Load()) != times+1 || took < time.Duration(times)*c.after {
						t.Errorf("waited %d times, asked %d times, after %v", waits, asked.Load(), took)
					}
				})
			})
		}
	}
}

// A server that is not there is waited for as long as patience lasts, and the error says what is wrong.
func TestNobodyAnswers(t *testing.T) {
	notFound := &net.DNSError{Err: "no such host", Name: "models.invalid", IsNotFound: true}
	for name, c := range map[string]struct {
		err error // of every connection
		url string
		want
	}{
		"refused": {os.NewSyscallError("connect", syscall.ECONNREFUSED), "http://models.invalid",
			want{kind: llm.Unreachable, says: "refuses the connection: is a server running there?"}},
		"no such host": {notFound, "http://models.invalid", want{kind: llm.Unreachable, says: "the host models.invalid is not found"}},
		"the proxy is gone": {os.NewSyscallError("connect", syscall.ECONNREFUSED), "https://models.invalid",
			want{kind: llm.Unreachable, says: "the proxy on the way to models.invalid cannot be reached"}},
	} {
		for api, model := range vendors {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r, err := askOf(model(c.url, client(func(x *http.Transport) {
					x.DialContext = func(context.Context, string, string) (net.Conn, error) {
						return nil, &net.OpError{Op: "dial", Net: "tcp", Err: c.err}
					}
					if name == "the proxy is gone" {
						through("http://proxy.invalid")(x)
					}
				})), retry.Options{OnWait: func(_ time.Time, err error) { checkError(t, llm.Reply{}, err, c.want) }})
				checkError(t, r, err, c.want)
				if took := time.Since(began); took != time.Hour || !strings.Contains(err.Error(), "did not pass within 1h") {
					t.Errorf("%s, %s: %v after %v", name, api, err, took)
				}
			})
		}
	}
}

// client returns a client as the adapters have one, changed.
func client(change func(*http.Transport)) *http.Client {
	c := wire.NewClient()
	change(c.Transport.(*http.Transport))
	return c
}

// through makes a transport ask by a proxy.
func through(proxy string) func(*http.Transport) {
	u, err := url.Parse(proxy)
	if err != nil {
		panic(err)
	}
	return func(x *http.Transport) { x.Proxy = http.ProxyURL(u) }
}

// A stall is taken for a broken answer. The time is the machine's, because a bubble's stands still while a connection is
// read. That pings are no stall is tested in llm/internal/wire.
func TestStallsOverSockets(t *testing.T) {
	for api, model := range vendors {
		s, _ := server(t, func(w http.ResponseWriter, good *httptest.ResponseRecorder) {
			broken("")(w, good)
			w.(http.Flusher).Flush()
			_, _ = io.Copy(io.Discard, hijacked(w)) // until the client hangs up
		}, 1)
		r, err := askOf(model(s.URL, nil), retry.Options{Tries: 1, FirstTimeout: time.Minute, IdleTimeout: 100 * time.Millisecond})
		if checkError(t, r, err, want{kind: llm.Incomplete, says: "the model was silent for 100ms"}); t.Failed() {
			t.Fatal(api)
		}
	}
}

// A proxy, or a certificate, that does not let the request pass has a sentence of its own, and nothing is asked again.
func TestProxiesAndCertificates(t *testing.T) {
	behind := httptest.NewUnstartedServer(llmtest.Handler(replies(good)))
	behind.Config.ErrorLog = log.New(io.Discard, "", 0)
	behind.StartTLS()
	defer behind.Close()
	_, port, _ := net.SplitHostPort(behind.Listener.Addr().String())
	trusted := func(x *http.Transport) {
		x.TLSClientConfig = behind.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	}
	// proxy refuses to connect with a status, or connects for 200.
	proxy := func(code int) func(*http.Transport) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code != 200 {
				w.WriteHeader(code)
				return
			}
			to, err := net.Dial("tcp", r.Host)
			if err != nil {
				panic(err)
			}
			from := hijacked(w) // before anything is written: what comes then must not be read by the server
			_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}))
		t.Cleanup(s.Close)
		return func(x *http.Transport) { trusted(x); through(s.URL)(x) }
	}
	plain := strings.Replace(behind.URL, "https:", "http:", 1)
	noTLS, _ := server(t, nil, 0)
	for name, c := range map[string]struct {
		url    string
		change func(*http.Transport)
		want
	}{
		"all is well":           {behind.URL, trusted, want{}},
		"a proxy that connects": {behind.URL, proxy(200), want{}},
		"407 of a proxy":        {behind.URL, proxy(407), want{kind: llm.Denied, says: "the proxy on the way to " + behind.Listener.Addr().String() + " wants a name and a password"}},
		"407, without TLS":      {plain, proxy(407), want{kind: llm.Denied, says: "wants a name and a password"}},
		"403 of a proxy":        {behind.URL, proxy(403), want{kind: llm.Denied, says: "the proxy does not let connections to"}},
		"502 of a proxy":        {behind.URL, proxy(502), want{kind: llm.Unreachable, says: "the proxy does not reach"}},
		"an unknown authority":  {behind.URL, func(*http.Transport) {}, want{kind: llm.Denied, says: "signed by an authority that this machine does not know"}},
		"an expired certificate": {behind.URL, func(x *http.Transport) {
			trusted(x)
			x.TLSClientConfig.Time = func() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }
		}, want{kind: llm.Denied, says: "is valid from 1970-01-01 to 2084-01-29 only"}},
		"another name": {"https://localhost:" + port, trusted, want{kind: llm.Denied, says: "the certificate is not one for localhost:" + port}},
		"no TLS there": {strings.Replace(noTLS.URL, "http:", "https:", 1), trusted, want{kind: llm.BadRequest, says: "does not speak TLS"}},
		"no TLS in common": {behind.URL, func(x *http.Transport) {
			trusted(x)
			x.TLSClientConfig.MaxVersion = tls.VersionTLS10
			x.TLSClientConfig.MinVersion = tls.VersionTLS10
		}, want{kind: llm.Denied, says: "ends the TLS connection"}},
	} {
		for api, model := range vendors {
			t.Run(name+", "+api, func(t *testing.T) {
				r, err := askOf(model(c.url, client(c.change)), retry.Options{Patience: -1})
				if c.kind != "" {
					checkError(t, r, err, c.want)
				} else if err != nil || !isGood(r) {
					t.Errorf("%q, %v", r.Message.Parts, err)
				}
			})
		}
	}
}
