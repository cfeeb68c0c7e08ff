// Package mcp is the client of the Model Context Protocol: it starts servers, lists what they have, and calls their
// tools. It is made of the official SDK and knows nothing of teams.
//
// A Server is the definition of a server, as Parse reads it. A Pool has the connections to servers, which all members
// of a process share. Pool.Tools returns what their models are offered: each tool under the name mcp__server__tool, or,
// where these are many, two tools that find and call the others.
//
// A server is started when it is first needed. Its list of tools is remembered in a file of the user's, so that later
// runs can offer the tools without a start. Pool.Prepare reads what is remembered, and starts the servers of which
// nothing is.
//
// The invariants:
//
//   - What Tools returns does not change in the life of a Pool, and is the same for a Pool that goes on with the same
//     run, so that providers can cache what requests begin with. What a server lists later is for the next run.
//   - All that a server says is text of a stranger. It is bounded and cleaned before it is stored or shown, and marks
//     of the runtime are escaped.
//   - A server never stops the run: a call of one that is not there is answered with a result that says so.
//   - When Close has returned, no program of a server runs any more.
//
// Whether a server may be started is not decided here: a Pool starts what it is given.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/internal/clock"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/text"
)

// Options are what a Pool works with.
type Options struct {
	Launcher proc.Launcher
	Env      []string        // of the programs of servers, beside that of their definitions
	Dir      string          // where they work: the root of the repository
	Cache    string          // the directory in which tools and logins are remembered; "" remembers nothing
	Secrets  *redact.Secrets // are hidden in what is told and logged; nil hides nothing
	Log      *slog.Logger
	Tell     func(line string) // is told once what the user should know of a server
}

// Pool has the connections to servers. Its methods are safe for concurrent use.
type Pool struct {
	Options
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	closing  atomic.Bool
	servers  []*server
	unusable []Server       // have a problem
	running  sync.WaitGroup // everything that goes on in the background
	progress atomic.Int64   // the last token of a call
	names    []named        // what Prepare has found, with the names that models see
	// dial makes the transport to a server, and what closes it. Tests have servers in this process.
	dial func(*server, *session) (sdk.Transport, func(), error)
}

// New returns a pool of the usable ones among servers. Of two with one name the first counts. It starts nothing.
func New(ctx context.Context, o Options, servers []Server) *Pool {
	p := &Pool{Options: o, dial: (*server).reach}
	p.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range servers {
		isTaken := slices.ContainsFunc(p.servers, func(x *server) bool { return x.Name == s.Name })
		if s.Problem != "" {
			p.unusable = append(p.unusable, s)
		} else if !isTaken {
			s.Timeout = cmp.Or(s.Timeout, defaultTimeout)
			p.servers = append(p.servers, &server{Server: s, pool: p})
		}
	}
	slices.SortFunc(p.servers, func(a, b *server) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// Prepare reads what is remembered of the servers, and starts those of which nothing is, all at once. It waits for them
// until the time is over; a server that is later is for the next run. isNew says that a run begins: then the newest
// list counts, and otherwise the one that the run has had.
func (p *Pool) Prepare(ctx context.Context, wait time.Duration, isNew bool) {
	for _, s := range p.unusable {
		p.tell("the MCP server %s of %s is left out: %s", s.Name, s.File, s.Problem)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var starting sync.WaitGroup
	for _, s := range p.servers {
		if s.recall(isNew); s.known != nil || p.Launcher == nil {
			continue
		}
		starting.Go(func() {
			_, err := s.connected(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err == nil {
				s.known = s.listed
			} else if ctx.Err() != nil && p.ctx.Err() == nil {
				p.tell("the MCP server %s has not started within %s: its tools are there in the next run", s.Name,
					clock.Duration(wait))
			}
		})
	}
	starting.Wait()
	p.names = p.nameAll()
}

// Server returns the server with a name, and nil if there is none.
func (p *Pool) server(name string) *server {
	for _, s := range p.servers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// tell tells the user a line.
func (p *Pool) tell(format string, args ...any) {
	line := p.Secrets.String(fmt.Sprintf(format, args...))
	p.Log.Warn("MCP", "line", line)
	if p.Tell != nil {
		p.Tell(line)
	}
}

// Close ends all servers and waits for their end.
func (p *Pool) Close() {
	p.closing.Store(true)
	p.cancel()
	var ending sync.WaitGroup
	for _, s := range p.servers {
		ending.Go(s.close)
	}
	ending.Wait()
	p.running.Wait()
}

// server is a server of a pool, with its connection.
type server struct {
	Server
	pool  *Pool
	known *catalogue        // what models are offered; set by Prepare
	oauth auth.OAuthHandler // asks the user to log in; nil: a stored login is used

	mu       sync.Mutex
	session  *session
	listed   *catalogue    // what the server has said last
	starting chan struct{} // is closed when the start that is under way is over; nil: none is
	failures int           // in a row
	failure  error         // the last
	retryAt  time.Time     // before which it is not started again
}

// The limits of a connection.
const (
	startTimeout = 30 * time.Second
	healthyTime  = time.Minute // after which an end is no failure of the start
	maxPause     = time.Minute // between two starts
	closeGrace   = time.Second // for a server to end by itself
	maxSaid      = 300         // bytes of what a server says in a line for people
)

// connected returns the connection to a server, which is started if it has to be. All that wait for it share one start,
// which goes on when the caller leaves.
func (s *server) connected(ctx context.Context) (*session, error) {
	s.mu.Lock()
	for s.session == nil {
		pause := time.Until(s.retryAt)
		switch {
		case s.pool.ctx.Err() != nil:
			s.mu.Unlock()
			return nil, errEnded
		case s.starting == nil && pause > 0:
			err := fmt.Errorf("%w; it can be started again in %s", s.failure, clock.Duration(pause.Round(time.Second)))
			s.mu.Unlock()
			return nil, err
		case s.starting == nil:
			s.starting = make(chan struct{})
			s.pool.running.Go(s.start)
		}
		starting := s.starting
		s.mu.Unlock()
		select {
		case <-starting:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
		if s.session == nil && s.failure != nil {
			err := s.failure
			s.mu.Unlock()
			return nil, err
		}
	}
	x := s.session
	s.mu.Unlock()
	return x, nil
}

// errEnded is the error of a call after Close.
var errEnded = errors.New("is not running any more")

// start starts the server and asks for its tools.
func (s *server) start() {
	ctx, cancel := context.WithTimeout(s.pool.ctx, startTimeout)
	defer cancel()
	began := time.Now()
	x, err := s.open(ctx)
	var listed *catalogue
	if err == nil {
		if listed, err = x.list(ctx, s.Server); err != nil {
			err = x.explain(err)
			x.end()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.starting)
	s.starting = nil
	if err != nil {
		s.fail("does not start", err)
		return
	}
	if s.pool.closing.Load() {
		s.pool.running.Go(x.end)
		return
	}
	s.pool.Log.Info("MCP server started", "server", s.Name, "tools", len(listed.Tools), "after", time.Since(began))
	s.session, s.listed = x, listed
	s.remember(listed)
	s.pool.running.Go(func() { s.watch(x) })
}

// watch waits for the end of a connection.
func (s *server) watch(x *session) {
	began := time.Now()
	err := x.Wait()
	x.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != x {
		return
	}
	s.session = nil
	if time.Since(began) >= healthyTime {
		s.failures = 0
	}
	s.fail("has ended", x.explain(err))
}

// fail notes a failure, and tells the first in a row. The caller holds the lock.
func (s *server) fail(what string, err error) {
	s.failures++
	s.failure = fmt.Errorf("%s: %w", what, err)
	pause := min(time.Second<<min(s.failures-1, 10), maxPause)
	s.retryAt = time.Now().Add(pause)
	if s.pool.closing.Load() {
		return
	}
	s.pool.Log.Warn("MCP server failed", "server", s.Name, "what", what, "err", s.pool.Secrets.String(err.Error()))
	if s.failures == 1 {
		s.pool.tell("the MCP server %s %v; it is started again when it is needed, after a pause", s.Name, s.failure)
	}
}

// close ends the connection.
func (s *server) close() {
	s.mu.Lock()
	x := s.session
	s.session = nil
	s.mu.Unlock()
	if x != nil {
		x.end()
	}
}

// said returns what a server has said, as a part of a line for people.
func said(s string) string {
	return text.CutBytes(text.OneLine(s), maxSaid)
}
