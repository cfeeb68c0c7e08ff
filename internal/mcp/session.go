package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/internal/clock"
	"muster/internal/proc"
	"muster/internal/proxies"
)

// maxMessage is how long a message of a server may be, in bytes. A longer one ends the connection.
const maxMessage = 16 << 20

// session is a connection to a server.
type session struct {
	name string // of the server
	*sdk.ClientSession
	progress sync.Map // functions that show the progress of calls, by the token of the call
	words    words
	kill     func()      // ends the program of a server at once; of another server it does nothing
	isLocal  bool        // it is a program
	ended    func()      // is called once, to end everything
	denied   atomic.Bool // an HTTP server has asked for credentials
}

// end ends the connection and the program of the server. It may be called several times, and waits for the end.
func (x *session) end() { x.ended() }

// explain returns an error with what else is known of its cause, in one line.
func (x *session) explain(err error) error {
	_, isAnswer := errors.AsType[*jsonrpc.Error](err)
	switch {
	case x.denied.Load():
		return errors.New("it refuses access: log in with muster mcp login " + x.name +
			", or put a token into its headers, as in Authorization: Bearer ${TOKEN}")
	case errors.Is(err, errTooLong):
		err = errTooLong // without the words of the SDK around it
	case err == nil || errors.Is(err, sdk.ErrConnectionClosed) || x.isLocal && !isAnswer && !errors.Is(err, errSilent):
		err = errors.New("it has closed the connection") // for a program there is no other reason
		x.words.wait()
	}
	text := said(err.Error())
	if line := x.words.last(); line != "" {
		text += " (the last line that it printed: " + line + ")"
	}
	return errors.New(text)
}

// errSilent is the error of a server that does not answer when a connection begins.
var errSilent = fmt.Errorf("it has not answered within %s", clock.Duration(startTimeout))

// open connects to a server. Most speak the older protocol only, and some end when they are asked for the newer one, so
// that comes second.
func (s *server) open(ctx context.Context) (x *session, err error) {
	for _, version := range []string{"2025-11-25", ""} {
		x = &session{name: s.Name, kill: func() {}, isLocal: s.URL == ""}
		transport, closeAll, errDial := s.pool.dial(s, x)
		if errDial != nil {
			return nil, errDial
		}
		client := sdk.NewClient(&sdk.Implementation{Name: "muster", Version: "1"}, &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{}, ProgressNotificationHandler: x.showProgress,
			MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}})
		x.ClientSession, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err == nil {
			x.ended = sync.OnceFunc(func() {
				if x.isLocal { // what it has begun ends with it
					closeAll()
				}
				_ = x.Close()
				closeAll()
			})
			return x, nil
		}
		err = cmp.Or(context.Cause(ctx), err)
		closeAll()
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok ||
			wire.Code != jsonrpc.CodeMethodNotFound && wire.Code != sdk.CodeUnsupportedProtocolVersion {
			break
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSilent
	}
	return nil, x.explain(err)
}

// reach makes the transport to a server. closeAll closes what is left when the connection has ended.
func (s *server) reach(x *session) (_ sdk.Transport, closeAll func(), err error) {
	if x.isLocal {
		return s.overStdio(x)
	}
	transport, closeAll := s.overHTTP(x)
	return transport, closeAll, nil
}

// showProgress shows the progress that a server tells of a call.
func (x *session) showProgress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	show, ok := x.progress.Load(fmt.Sprint(r.Params.ProgressToken))
	if !ok {
		return
	}
	line := said(r.Params.Message)
	if r.Params.Total > 0 {
		line = strings.TrimSpace(fmt.Sprintf("%.0f%% %s", 100*r.Params.Progress/r.Params.Total, line))
	}
	if line != "" {
		show.(func(string))(line)
	}
}

// overStdio starts the program of a server. closeAll ends it, at first by closing its input, and waits for its end.
func (s *server) overStdio(x *session) (_ sdk.Transport, closeAll func(), err error) {
	var files []*os.File // both ends of input, output and error output
	closeFiles := func(list []*os.File) {
		for _, f := range list {
			_ = f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(files)
			return nil, nil, err
		}
		files = append(files, r, w)
	}
	argv := slices.Clone(s.Command)
	if strings.ContainsRune(argv[0], filepath.Separator) && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(s.pool.Dir, argv[0])
	}
	var env []string
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	process, err := s.pool.Launcher.Start(context.WithoutCancel(s.pool.ctx), proc.Spec{Argv: argv, Dir: s.pool.Dir,
		Env: proc.WithVariables(s.pool.Env, env...), Stdin: files[0], Out: files[3], Err: files[5]})
	if err != nil {
		closeFiles(files)
		return nil, nil, err
	}
	closeFiles([]*os.File{files[0], files[3], files[5]})
	in, out, errs := files[1], files[2], files[4]
	x.words.done = make(chan struct{})
	s.pool.running.Go(func() {
		x.words.read(errs, func(line string) {
			s.pool.Log.Debug("MCP server", "server", s.Name, "says", s.pool.Secrets.String(line))
		})
	})
	x.kill = func() { _ = process.Kill() }
	return &sdk.IOTransport{Reader: &messages{r: bufio.NewReader(out), Closer: out}, Writer: in,
			MaxLineLength: -1}, sync.OnceFunc(func() {
			_ = in.Close()
			late := time.AfterFunc(closeGrace, x.kill)
			if s.pool.ctx.Err() == nil { // the connection has ended, so the program has no reason to live
				x.kill()
			}
			_, _ = process.Wait()
			late.Stop()
			// What the program has said last arrives before its output is closed.
			_ = errs.SetReadDeadline(time.Now().Add(closeGrace))
			<-x.words.done
			_, _ = out.Close(), errs.Close()
		}), nil
}

// messages are the lines of a server's output that are messages. Some programs print other lines too, which are left
// out, as other clients do.
type messages struct {
	io.Closer
	r    *bufio.Reader
	rest []byte // of the last message
}

// Read reads a message, or a part of one.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if err != nil {
			return 0, err
		}
		if begin := bytes.TrimSpace(line); len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') && json.Valid(begin) {
			m.rest = line
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// errTooLong is the error of a message that is longer than maxMessage.
var errTooLong = fmt.Errorf("it has sent more than %d MB at once", maxMessage>>20)

// line returns the next line, with its end.
func (m *messages) line() (line []byte, err error) {
	for {
		part, err := m.r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxMessage {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// words keeps the last line that the program of a server has printed for people.
type words struct {
	mu   sync.Mutex
	line string
	done chan struct{} // is closed when all was read
}

// read reads lines until their end, and passes each to log.
func (w *words) read(r io.Reader, log func(line string)) {
	defer close(w.done)
	lines := bufio.NewReaderSize(r, 4<<10)
	for {
		part, err := lines.ReadSlice('\n') // of a longer line the parts count as lines
		if line := said(string(part)); line != "" {
			w.mu.Lock()
			w.line = line
			w.mu.Unlock()
			log(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// wait returns when all was read, or after a moment if the program has not ended.
func (w *words) wait() {
	if w.done == nil { // there is no program
		return
	}
	select {
	case <-w.done:
	case <-time.After(closeGrace):
	}
}

// last returns the last line.
func (w *words) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line
}

// overHTTP returns the connection to a server over HTTP.
func (s *server) overHTTP(x *session) (_ sdk.Transport, closeAll func()) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy = proxies.Last(base.Proxy)
	client := &http.Client{Transport: &bounded{base: base, server: s, session: x},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != via[0].URL.Host || len(via) > 5 {
				return http.ErrUseLastResponse
			}
			return nil
		}}
	// Nothing is expected of the server beside its answers.
	t := &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, DisableStandaloneSSE: true,
		MaxEventSize: maxMessage, OAuthHandler: s.oauth}
	if t.OAuthHandler == nil {
		t.OAuthHandler = loginOf(s.Server, s.pool.Cache)
	}
	return t, base.CloseIdleConnections
}

// bounded sends the headers of a server to that server alone, and bounds its answers.
type bounded struct {
	base    http.RoundTripper
	server  *server
	session *session
}

// RoundTrip sends a request.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if u, err := url.Parse(b.server.URL); err == nil && u.Host == r.URL.Host && u.Scheme == r.URL.Scheme {
		r = r.Clone(r.Context())
		for name, value := range b.server.Header {
			r.Header.Set(name, value)
		}
	}
	answer, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b.session.denied.Store(answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
	answer.Body = &limitedBody{answer.Body, 4 * maxMessage}
	return answer, nil
}

// limitedBody is a body that ends with an error when it is too long.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read reads a part of the body.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
