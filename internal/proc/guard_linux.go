package proc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster"
)

// hasGuardMain says that GuardMain was called, so that this program, run again, can be a guard. It is a fact about the
// process, set once before anything else happens. If New were told it instead, a wrong answer would start the program
// again and again.
var hasGuardMain atomic.Bool

// canGuard reports whether New can start a guard.
func canGuard() bool { return hasGuardMain.Load() }

// GuardMain is called first thing in main, and in TestMain of packages whose tests start tools. If this process was
// started as a guard, it serves and never returns; else it notes that New can start one.
func GuardMain() {
	if len(os.Args) != 3 || os.Args[1] != guardWord {
		hasGuardMain.Store(true)
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
	mu      sync.Mutex
	link    *link // to the last guard, which may be dead
	closed  bool
	renewed func(pid int) // is told of each guard that follows the first; may be nil
}

// newGuard starts a guard and returns the launcher that uses it.
func newGuard() (*Guard, error) {
	l, err := startGuard()
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

// OnRenewal sets the function that is told the process id of each guard that takes the place of one that was killed,
// before it starts anything.
func (g *Guard) OnRenewal(f func(pid int)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renewed = f
}

// Start has the guard start a program.
func (g *Guard) Start(ctx context.Context, s Spec) (Process, error) {
	return startWith(ctx, s, g.start)
}

// start has the guard start a program. A guard that died before it had the whole order has not started it: then a new
// guard gets the order.
func (g *Guard) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	for try := 0; ; try++ {
		l, err := g.liveLink()
		if err != nil {
			return nil, err
		}
		c, err := l.start(ctx, s, path, pipes)
		if !errors.Is(err, errGuardGone) || try == 3 {
			return c, err
		}
		select { // until what the dead guard left is killed
		case <-l.gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// liveLink returns the link to the guard, to a new one if the last has died.
func (g *Guard) liveLink() (*link, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed()
	}
	select {
	case <-g.link.gone:
		l, err := startGuard()
		if err != nil {
			return nil, err
		}
		g.link = l
		if g.renewed != nil {
			g.renewed(l.pid)
		}
	default:
	}
	return g.link, nil
}

// Close ends the guard, which kills everything first. A guard that does not manage it in time is killed itself, and
// listen kills what is left.
func (g *Guard) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.link.wake()
	// The guard takes the end of the socket as the end of the program: it kills everything and ends.
	_ = g.link.conn.CloseWrite()
	select {
	case <-g.link.gone:
		return nil
	case <-time.After(killLimit + outputTimeout):
		_ = g.link.guard.Kill()
		<-g.link.gone
		return muster.Errorf(muster.Unavailable, "the guard did not end by itself: it was killed")
	}
}

// link is the connection to one guard, which lives or lived. Orders are written by whoever has them; one goroutine,
// listen, reads what the guard says and hands it to the call that it is about.
type link struct {
	pid   int
	tag   string // begins the tags of all its calls
	guard *os.Process
	conn  *net.UnixConn
	gone  chan struct{} // closed when the guard is dead, and all that it ran too

	writing sync.Mutex // orders what is written. listen never takes it, so it never waits for a full socket

	mu    sync.Mutex
	next  uint64           // the number of the last call
	calls map[uint64]*call // that are not over, by number; nil when the guard is gone
}

// call is a tool between its start and its end.
type call struct {
	pid int // 0 until it has started
	// answers has what the guard says: that the tool has started, or why not; then how it ended. Both fit into it, so
	// listen never waits for a caller.
	answers chan answer
}

// answer is the process id of a tool that has started, or the exit status of one that has ended.
type answer struct {
	number  int
	reached string // the limits that a tool which has ended has reached
	err     error
}

// errGuardGone says that the guard died before it had the whole order, so that the tool was not started.
var errGuardGone = muster.Errorf(muster.Unavailable,
	"the process that starts the commands of agents was killed again and again")

// startGuard starts a guard: this very program, even if its file was replaced meanwhile.
func startGuard() (*link, error) {
	fail := func(err error) error {
		return muster.Errorf(muster.Unavailable,
			"the process that starts the commands of agents cannot be started: %w", err)
	}
	// A socket pair has no name: nobody else can connect to the guard or speak for it.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fail(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "guard")
	defer ours.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fail(err)
	}
	defer null.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fail(err)
	}
	// /proc/self/exe is the running program, also when an update has replaced its file.
	// Its arguments say whose guard it is, for whoever finds it after its program has died: see KillAbandoned.
	program, _ := readProcess(os.Getpid())
	args := []string{os.Args[0], guardWord, program.id().String()}
	guard, err := os.StartProcess("/proc/self/exe", args, &os.ProcAttr{
		Dir:   "/",
		Env:   guardEnv(),
		Files: []*os.File{null, null, os.Stderr, theirs},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = conn.Close()
		return nil, fail(err)
	}
	self, _ := readProcess(guard.Pid)
	l := &link{
		pid: guard.Pid, tag: guardTag(guard.Pid, self.started), guard: guard,
		conn: conn.(*net.UnixConn), gone: make(chan struct{}), calls: map[uint64]*call{},
	}
	go l.listen()
	return l, nil
}

// guardEnv returns the environment of the guard. Tools can read it, so it has no keys. It keeps the guard's heap small.
func guardEnv() []string {
	env := []string{"GOMAXPROCS=2", "GOGC=50"}
	for _, name := range []string{"GODEBUG", "GORACE", "GOCOVERDIR", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// start orders a tool from the guard and waits until it has begun. The descriptors of its input and output travel with
// the order.
func (l *link) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	k := &call{answers: make(chan answer, 2)}
	id, err := l.addCall(k)
	if err != nil {
		return nil, err
	}
	// The descriptors are duplicated into the message, so they must stay open until it is written.
	files := []int{int(pipes.in.Fd()), int(pipes.out.Fd()), int(pipes.err.Fd())}
	if s.Ruleset != nil {
		files = append(files, int(s.Ruleset.Fd()))
	}
	rights := unix.UnixRights(files...)
	args := slices.Concat([]string{s.Dir, path, s.Limits.encode(), strconv.Itoa(len(s.Argv)),
		strconv.Itoa(len(s.Writable))}, s.Argv, s.Writable, s.Env)
	err = l.write(frame{frameStart, id, args}, rights)
	runtime.KeepAlive(pipes)
	runtime.KeepAlive(s.Ruleset)
	if err != nil {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
		return nil, errGuardGone
	}
	started := <-k.answers
	if errno, ok := errors.AsType[syscall.Errno](started.err); ok {
		return nil, startError(s, errno)
	}
	if started.err != nil {
		return nil, started.err
	}
	kill := func() error { return l.write(frame{kind: frameKill, call: id}, nil) }
	return follow(ctx, s, pipes, started.number, kill, func() (outcome, error) {
		ended := <-k.answers
		return outcome{ended.number, ended.reached}, ended.err
	}), nil
}

// addCall gives a call its number. The error is errGuardGone when listen has seen the guard's end.
func (l *link) addCall(k *call) (id uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		return 0, errGuardGone
	}
	l.next++
	l.calls[l.next] = k
	return l.next, nil
}

// wake continues a guard that somebody has stopped (SIGSTOP), or its tools would outlive their time limit. The error is
// of a dead guard, which listen notices.
func (l *link) wake() { _ = l.guard.Signal(unix.SIGCONT) }

// write writes a frame. Descriptors go with its first byte.
func (l *link) write(f frame, rights []byte) error {
	l.wake()
	// One frame at a time: parts of two frames must not mix.
	l.writing.Lock()
	defer l.writing.Unlock()
	data := f.encode()
	n, _, err := l.conn.WriteMsgUnix(data, rights, nil)
	if err == nil && n < len(data) {
		_, err = l.conn.Write(data[n:])
	}
	return err
}

// listen handles what the guard says until it is gone, and then ends the calls that are left.
func (l *link) listen() {
	r := bufio.NewReader(l.conn)
	for {
		f, err := readFrame(r, func(head []byte) error { _, err := io.ReadFull(r, head); return err })
		if err != nil {
			break
		}
		l.answer(f)
	}
	_ = l.guard.Kill() // it is dead, or says what cannot be understood
	_, _ = l.guard.Wait()
	l.mu.Lock()
	// From here on addCall refuses, so no call is added that nobody would end.
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	// The tools died with the guard (Pdeathsig). What they had started is found by its tag and its session.
	if len(calls) > 0 {
		killAll(func() []process { return l.orphans(calls) }, killLimit)
	}
	err := muster.Errorf(muster.Unavailable,
		"the process that started this command was killed, and the command with it: its outcome is unknown")
	for _, c := range calls { // those too that were not said to have started: they may have begun
		c.answers <- answer{number: 128 + int(unix.SIGKILL), err: err}
	}
	_ = l.conn.Close()
	close(l.gone)
}

// answer hands what the guard says to the call that it is about, and forgets a call that is over.
func (l *link) answer(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[f.call]
	if c == nil {
		return
	}
	a := answer{number: f.number(0)}
	switch f.kind {
	case frameStarted:
		c.pid = a.number
	case frameFailed:
		a.err = syscall.Errno(a.number)
		delete(l.calls, f.call)
	case frameExited:
		if len(f.args) > 1 {
			a.reached = f.args[1]
		}
		delete(l.calls, f.call)
	}
	c.answers <- a
}

// orphans returns the processes that a dead guard's tools left: those in the session or group of a tool, and those with
// the tag of the guard. It looks at all processes of the machine, because the kernel has given them another parent.
func (l *link) orphans(calls map[uint64]*call) (list []process) {
	sessions := map[int]bool{}
	for _, c := range calls {
		sessions[c.pid] = c.pid != 0 // session 0 is the kernel's
	}
	for _, t := range allProcesses() {
		if t.isDead() {
			continue
		}
		if sessions[t.session] || sessions[t.group] || hasTag(t.pid, CallVar+"="+l.tag, true) {
			list = append(list, t)
		}
	}
	return list
}
