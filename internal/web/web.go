// Package web shows a team in a browser. It is a face as the others are: it reads with internal/face and package team,
// writes records with package team alone, and keeps neither policy nor state. The page is a few files inside the
// program: there is nothing to build, and nothing is fetched from anywhere else.
//
// Who can reach the port could steer a team that runs commands, so these rules hold (guard.go):
//
//   - Whoever asks shows that it knows the token: once in the address, and from then on in a cookie that no script can
//     read. The token is in memory alone, because the team's own tools could read a file.
//   - The Host of a request is the address that is listened on. A name that somebody has pointed at this machine is
//     refused.
//   - Only POST with a body of JSON changes anything, and only from the page's own origin.
//   - The page may load and connect to nothing but this server, and sets texts as texts, never as HTML.
//
// Phone is a second entrance to the page, for one device of the local network (phone.go). It reads and answers, and the
// routes say what else it may not do.
//
// State is read when the page asks (state.go, read.go). The page asks when a message of its stream says that something
// has changed (events.go). A message of the stream has a position of the journal as its id. A page that lost the stream
// goes on from there, also when the server has been started again meanwhile.
//
// A server with Replay shows the past of a team alone, such as an archived one. It takes no change, sends no stream
// to its page, and its state names the run and nothing of the present. All else is asked for as by a page that looks
// back beside a team at work (past.go).
//
// Share makes one file of the page with a run in it, which needs no server (share.go, inline.go).
//
// Read web.go first, then guard.go, state.go, events.go, read.go, past.go, change.go, control.go, share.go
// and phone.go.
package web

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"net"
	"net/http"
	"path"
	"sync"
	"time"

	"muster"
	"muster/team"
)

// files are what the page consists of.
//
//go:embed static
var files embed.FS

// heartbeat is how often a stream says that it lives, and looks for what no event tells: that a process has died.
const heartbeat = 15 * time.Second

// grace is how long what is under way may take when the server ends.
const grace = 3 * time.Second

// maxBody is how much a page may send at once.
const maxBody = 1 << 20

// Server serves the page of one team. New makes one.
type Server struct {
	// Hide hides secrets in a text of JSON. Nil hides nothing.
	Hide func([]byte) []byte
	// Now is the time that states are read at.
	Now func() time.Time
	// Window returns how many tokens a model takes; 0 is unknown. Nil knows none.
	Window func(model string) int
	// Launch brings the team to work in a process of its own: on a goal, or where it stopped with "". Nil: it cannot be
	// done from here.
	Launch func(ctx context.Context, goal string) error
	// Merge takes the work to the user's branch, and returns what is to be said of it. Nil: it cannot be done from
	// here.
	Merge func(ctx context.Context) (string, error)
	// Hosts are the names, with or without a port, by which the page is reached where its port is forwarded.
	Hosts []string
	// Replay shows the past alone. Nothing can be changed then.
	Replay bool

	team  *team.Team
	token string
	// reading lets one request at a time read the whole state, so that many pages cost no more memory than one.
	reading sync.Mutex
	replay  *replay // nil before the first look at the past; reading guards it

	mu      sync.Mutex
	tickets map[string]bool // that are not used yet
	host    string          // the address that is listened on, with its port
}

// New returns a server for a team, with a token of its own.
func New(t *team.Team) *Server {
	return &Server{Now: time.Now, team: t, token: random(), tickets: map[string]bool{}}
}

// random returns 256 random bits as text.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Listen listens on an address. The error is Invalid for one that other machines can reach.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "%q is no address: %w", addr, err).
			WithHint("as in --addr 127.0.0.1:7310")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, muster.Errorf(muster.Invalid, "%q can be reached from other machines, without encryption, and "+
			"who has the page steers a team that runs commands", addr).
			WithHint("keep it here:  muster web --addr 127.0.0.1:%[1]s\n"+
				"and reach it from elsewhere through ssh:  ssh -L %[1]s:127.0.0.1:%[1]s THIS-MACHINE", port)
	}
	if host == "localhost" { // a file may give the name to another machine
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "cannot listen on %s: %w", addr, err).
			WithHint("let the system choose a port:  muster web")
	}
	return l, nil
}

// URL returns the address of the page, with the token.
func (s *Server) URL(l net.Listener) string {
	return "http://" + l.Addr().String() + "/?token=" + s.token
}

// TicketURL returns an address that opens the page once. It is for programs whose arguments others can see.
func (s *Server) TicketURL(l net.Listener) string {
	ticket := random()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickets[ticket] = true
	return "http://" + l.Addr().String() + "/?token=" + ticket
}

// Serve answers until ctx ends. Streams that are open then are cut, and their pages connect again later.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	s.host = l.Addr().String()
	s.mu.Unlock()
	return serveAt(ctx, l, s.handler())
}

// serveAt answers at an address until ctx ends.
func serveAt(ctx context.Context, l net.Listener, handler http.Handler) error {
	// The contexts of requests end with ctx, so that no stream keeps the server.
	// Streams have no end, so there is no limit on how long an answer takes to write.
	h := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		IdleTimeout: 2 * time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// The handlers use the team, which the caller closes next, so they have to be over. What they do ends with ctx.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if h.Shutdown(late) != nil {
		_ = h.Close() // a page that reads nothing any more is not waited for
	}
	return nil
}

// route is what answers requests of a method and a path.
type route struct {
	pattern string
	do      http.HandlerFunc
	// phone answers a paired phone; nil refuses it. A new route has none.
	phone http.HandlerFunc
}

// routes are all routes of the page. This is the only list of what a phone may do: it reads, and it answers.
func (s *Server) routes() []route {
	p, c := fromPhone{s}, control{s}
	all := []route{
		{"GET /api/state", s.answer(s.state), s.answer(p.state)},
		{"GET /api/events", s.events, s.events},
		{"GET /api/member/{name}", s.answer(s.member), s.answer(s.member)},
		{"GET /api/task/{id}", s.answer(s.task), s.answer(s.task)},
		{"GET /api/inbox", s.answer(s.mails), s.answer(s.mails)},
		{"GET /api/history", s.answer(s.history), s.answer(s.history)},
		{"GET /api/past", s.answer(s.past), s.answer(p.past)},
		{"GET /api/work", s.answer(c.work), nil},
		{"POST /api/code", s.answer(s.code), s.answer(s.code)}, // it reads what the page has already
	}
	// All files of the directory are the page's, and only those: a path outside of it is never read.
	for name, data := range pageFiles() {
		file := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
			_, _ = w.Write(data) // the page has gone
		}
		pattern := "GET /" + name
		if name == "index.html" {
			pattern = "GET /{$}"
		}
		all = append(all, route{pattern, file, file})
	}
	// What cannot be asked for cannot be done, whatever the page offers.
	if s.Replay {
		return append(all, route{"POST /api/", s.answer(func(*http.Request) (any, error) {
			return nil, muster.Errorf(muster.Invalid, "a replay changes nothing").WithHint("muster web")
		}), nil})
	}
	// These change something.
	return append(all, []route{
		{"POST /api/start", s.answer(c.start), nil},
		{"POST /api/resume", s.answer(c.resume), nil},
		{"POST /api/stop", s.answer(c.stop), nil},
		{"POST /api/merge", s.answer(c.merge), nil},
		{"POST /api/answer", s.answer(s.decide), s.answer(p.decide)},
		{"POST /api/mail", s.answer(s.mail), s.answer(p.mail)},
		{"POST /api/comment", s.answer(s.comment), nil},
		{"POST /api/retry", s.answer(s.retry), nil},
		{"POST /api/take", s.answer(s.take), nil},
	}...)
}

func (s *Server) handler() http.Handler {
	m := http.NewServeMux()
	for _, r := range s.routes() {
		m.HandleFunc(r.pattern, r.do)
	}
	return s.guard(m)
}

// pageFiles returns the files of the page by their names.
func pageFiles() map[string][]byte {
	entries, err := files.ReadDir("static")
	if err != nil {
		panic(err) // the files are not in the program
	}
	all := map[string][]byte{}
	for _, e := range entries {
		all[e.Name()] = static(e.Name())
	}
	return all
}

// contentTypes are fixed, because the tables of a system may say anything.
var contentTypes = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
