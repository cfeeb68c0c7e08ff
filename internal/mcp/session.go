package mcp

import (
	"bufio"
	"cmp"
	"context"
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
	"syscall"
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
	answers  answers
	closed   atomic.Bool // the program has closed its output
	logLine  func(line string)
	running  *sync.WaitGroup // what goes on in the background
}

// log logs what a server has printed beside its messages.
func (x *session) log(text string) {
	line := said(text)
	x.words.set(line)
	x.logLine(line)
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
	case isAnswer || errors.Is(err, errSilent):
	case err == nil || x.closed.Load() || isEnd(err):
		err = errors.New("it has closed the connection")
		x.words.wait()
	case x.isLocal:
		err = fmt.Errorf("it has given an answer of a wrong form (%w)", err)
	}
	text := said(err.Error())
	if line := x.words.last(); line != "" {
		text += " (the last line that it printed: " + line + ")"
	}
	return errors.New(text)
}

// isEnd reports whether an error says that a connection has ended.
func isEnd(err error) bool {
	return slices.ContainsFunc([]error{sdk.ErrConnectionClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
		os.ErrClosed, syscall.EPIPE}, func(end error) bool { return errors.Is(err, end) })
}

// errSilent is the error of a server that does not answer when a connection begins.
var errSilent = fmt.Errorf("it has not answered within %s", clock.Duration(startTimeout))

// open connects to a server. Most speak the older protocol only, and some end when they are asked for the newer one, so
// that comes second.
func (s *server) open(ctx context.Context) (x *session, err error) {
	for _, version := range []string{"2025-11-25", ""} {
		x = &session{name: s.Name, kill: func() {}, isLocal: s.URL == "", logLine: s.logLine,
			running: &s.pool.running}
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

// logLine logs what the server has printed for people.
func (s *server) logLine(line string) {
	s.pool.Log.Debug("MCP server", "server", s.Name, "says", s.pool.Secrets.String(line))
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
		x.words.read(errs, x.logLine)
	})
	x.kill = func() { _ = process.Kill() }
	messages := x.messages(out)
	return &sdk.IOTransport{Reader: messages, Writer: noting{in, &x.answers},
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
			_, _, _ = messages.Close(), out.Close(), errs.Close()
		}), nil
}

// messages returns the messages in the output of a program, one a line, as the SDK can read them.
func (x *session) messages(out io.Reader) *io.PipeReader {
	r, w := io.Pipe()
	send := func(m []byte) error {
		_, err := w.Write(append(m, '\n')) // one call: others may send too
		return err
	}
	x.answers.inject = func(m []byte) { _ = send(m) } // the connection has ended otherwise
	lines := &lineReader{r: bufio.NewReader(out)}
	x.running.Go(func() {
		for {
			line, err := lines.line()
			for _, m := range x.answers.received(line, x.log) {
				if send(m) != nil {
					return
				}
			}
			if err != nil {
				x.closed.Store(true)
				_ = w.CloseWithError(err)
				return
			}
		}
	})
	return r
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
			w.set(line)
			log(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// set sets the last line.
func (w *words) set(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = line
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
	return answer, mendAnswer(r, answer, b.session.log)
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
