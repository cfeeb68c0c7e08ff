package proc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster"
)

// guarded says that GuardMain was called: that this program, run again, can be a guard. It is a fact about the process,
// set once before anything else happens. Without it New would have to be told, and whoever told it wrongly would
// start the program again and again.
var guarded atomic.Bool

func guardable() bool { return guarded.Load() }

// GuardMain is called first thing in main, and in TestMain of packages whose tests start tools. If this process was
// started as a guard, it serves and never returns; else it notes that New can start one.
func GuardMain() {
	if len(os.Args) != 2 || os.Args[1] != guardWord {
		guarded.Store(true)
		return
	}
	if err := serve(); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		syscall.Exit(1)
	}
	syscall.Exit(0) // not os.Exit, which takes a second in a program built with -race
}

// Guard is a launcher whose tools are started by a guard. If that is killed, the next Start starts another.
type Guard struct {
	mu     sync.Mutex
	link   *link // the last guard; it may be dead
	closed bool
}

func newGuard() (*Guard, error) {
	l, err := dial()
	if err != nil {
		return nil, err
	}
	return &Guard{link: l}, nil
}

// PID is the process id of the guard.
func (g *Guard) PID() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.link.pid
}

func (g *Guard) Start(ctx context.Context, s Spec) (Process, error) {
	path, err := prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	pipes, err := plumb(s)
	if err != nil {
		return nil, refused(s, err)
	}
	c, err := g.start(ctx, s, path, pipes)
	if err != nil {
		pipes.abandon()
		return nil, err
	}
	return c, nil
}

func (g *Guard) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	for try := 0; ; try++ {
		l, err := g.living()
		if err != nil {
			return nil, err
		}
		c, err := l.start(ctx, s, path, pipes)
		if !errors.Is(err, errGone) || try == 3 {
			return c, err
		}
		select { // until what the dead one left is cleared away
		case <-l.gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// living returns the guard, a new one if the last has died.
func (g *Guard) living() (*link, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, closed()
	}
	select {
	case <-g.link.gone:
		l, err := dial()
		if err != nil {
			return nil, err
		}
		g.link = l
	default:
	}
	return g.link, nil
}

// Close ends the guard, which kills everything first.
func (g *Guard) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.link.awake()
	_ = g.link.conn.CloseWrite()
	select {
	case <-g.link.gone:
		return nil
	case <-time.After(killLimit + linger):
		_ = g.link.guard.Kill()
		<-g.link.gone
		return muster.Errorf(muster.Unavailable, "the guard did not end by itself: it was killed")
	}
}

// link is one guard that lives or lived.
type link struct {
	pid   int
	tag   string
	guard *os.Process
	conn  *net.UnixConn
	gone  chan struct{} // closed when the guard is dead and all that it ran too

	writing sync.Mutex // orders what is written; listen never takes it, so it never waits for a full socket

	mu    sync.Mutex
	next  uint64
	calls map[uint64]*call // nil when the guard is gone
}

// call is a tool between its start and its end.
type call struct {
	child   *child
	started chan error // nil, or the errno of the start
	exited  func(status int, err error)
}

// errGone: the guard died before it had the whole order, so the tool was not started.
var errGone = muster.Errorf(muster.Unavailable, "the guard of tools dies again and again")

// dial starts a guard: this very program, even if its file was replaced meanwhile.
func dial() (*link, error) {
	fail := func(err error) error {
		return &muster.Error{Code: muster.Unavailable, Message: "cannot start the guard of tools: " + err.Error(), Err: err}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fail(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "guard")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fail(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = conn.Close()
		return nil, fail(err)
	}
	defer null.Close()
	guard, err := os.StartProcess("/proc/self/exe", []string{os.Args[0], guardWord}, &os.ProcAttr{
		Dir:   "/",
		Env:   guardEnv(os.Environ()),
		Files: []*os.File{null, null, os.Stderr, theirs},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = conn.Close()
		return nil, fail(err)
	}
	self, _ := inspect(guard.Pid)
	l := &link{
		pid: guard.Pid, tag: guardTag(guard.Pid, self.born), guard: guard,
		conn: conn.(*net.UnixConn), gone: make(chan struct{}), calls: map[uint64]*call{},
	}
	go l.listen()
	return l, nil
}

// guardEnv is what of our environment the guard gets: tools can read it, so no keys. Its heap is small and stays so.
func guardEnv(ours []string) []string {
	env := []string{"GOMAXPROCS=2", "GOGC=50"}
	for _, e := range ours {
		for _, name := range []string{"GODEBUG=", "GORACE=", "GOCOVERDIR=", "LD_LIBRARY_PATH="} {
			if strings.HasPrefix(e, name) {
				env = append(env, e)
			}
		}
	}
	return env
}

func (l *link) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	c := newChild()
	k := &call{child: c, started: make(chan error, 1)}
	id, err := l.enter(k)
	if err != nil {
		return nil, err
	}
	c.stop = func() error { return l.write(frameKill, body{}.uint(id), nil) }
	release := func() bool { return true }
	ready := make(chan struct{})
	k.exited = func(status int, err error) {
		go func() { // not in the listener: the last output may take its time
			<-ready
			output := pipes.finish()
			release()
			c.end(status, err, output)
		}()
	}
	rights := unix.UnixRights(int(pipes.in.Fd()), int(pipes.out.Fd()))
	b := body{}.uint(id).text(s.Dir).text(path).list(s.Argv).list(s.Env)
	err = l.write(frameStart, b, rights)
	runtime.KeepAlive(pipes)
	if err == nil {
		err = <-k.started
	} else {
		l.leave(id)
		err = errGone
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return nil, refused(s, errno)
	case err != nil:
		return nil, err
	}
	pipes.begin(s)
	release = c.follow(ctx)
	close(ready)
	return c, nil
}

func (l *link) enter(k *call) (id uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		return 0, errGone
	}
	l.next++
	l.calls[l.next] = k
	return l.next, nil
}

func (l *link) leave(id uint64) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.calls[id]
	delete(l.calls, id)
	return k
}

// awake lets a guard go on that somebody has stopped (SIGSTOP): else its tools would outlive their time.
func (l *link) awake() { _ = l.guard.Signal(unix.SIGCONT) } // of one that is dead, listen hears

// write writes a frame; its descriptors go with its first byte.
func (l *link) write(k kind, b body, rights []byte) error {
	l.awake()
	l.writing.Lock()
	defer l.writing.Unlock()
	data := append(b.header(k), b...)
	n, _, err := l.conn.WriteMsgUnix(data, rights, nil)
	if err == nil && n < len(data) {
		_, err = l.conn.Write(data[n:])
	}
	return err
}

// listen takes what the guard says until it is gone, and settles what that leaves.
func (l *link) listen() {
	r := bufio.NewReader(l.conn)
	for {
		k, b, err := readFrame(r, func(head []byte) error { _, err := io.ReadFull(r, head); return err })
		if err != nil {
			break
		}
		id, err1 := b.takeUint()
		n, err2 := b.takeUint()
		if err1 != nil || err2 != nil {
			break
		}
		switch k {
		case frameStarted:
			l.mu.Lock()
			c := l.calls[id]
			l.mu.Unlock()
			if c != nil {
				c.child.pid = int(n)
				c.started <- nil
			}
		case frameFailed:
			if c := l.leave(id); c != nil {
				c.started <- syscall.Errno(n)
			}
		case frameExited:
			if c := l.leave(id); c != nil {
				c.exited(int(n), nil)
			}
		}
	}
	_ = l.guard.Kill() // it is dead, or says nothing that we understand
	_, _ = l.guard.Wait()
	l.mu.Lock()
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	// The tools died with the guard (Pdeathsig); what they started is found by its tag and its session.
	if len(calls) > 0 {
		exterminate(func() []task { return l.orphans(calls) }, killLimit)
	}
	for _, c := range calls {
		err := muster.Errorf(muster.Unavailable, "the guard of this process's tools was killed, and this tool with it: its outcome is unknown")
		if c.child.pid == 0 {
			c.started <- err // it may have begun
			continue
		}
		c.exited(128+int(unix.SIGKILL), err)
	}
	_ = l.conn.Close()
	close(l.gone)
}

// orphans are the processes that a dead guard's tools left.
func (l *link) orphans(calls map[uint64]*call) (list []task) {
	sessions := map[int]bool{}
	for _, c := range calls {
		if c.child.pid != 0 {
			sessions[c.child.pid] = true
		}
	}
	for _, t := range everything() {
		if !t.dead() && (sessions[t.session] || sessions[t.group] || tagged(t.pid, CallVar+"="+l.tag, true)) {
			list = append(list, t)
		}
	}
	return list
}
