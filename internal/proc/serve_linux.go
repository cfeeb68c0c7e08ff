package proc

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster/internal/cgroup"
)

// This file is the guard's side. Everything that descends from the guard's tools stays below the guard: it is a
// subreaper, so the kernel makes it the parent of whatever they orphan. The only question is which tool an orphan
// belongs to. It is asked when a tool ends or is to be killed, and the first of these answers counts:
//
//   - the tool of a living ancestor, or the answer that was found before;
//   - the tool of its session or process group;
//   - the tool whose mark it has (see marker). Children inherit the mark, and it outlives setsid and an empty
//     environment;
//   - the tool whose tag is in the environment that it was started with;
//   - one of the tools that ran when it was first seen. It lives until none of them runs.

const (
	guardWord   = "guard-of-muster-tools" // the first argument of a guard
	guardSocket = 3                       // the descriptor of its end of the socket

	killLimit = 2 * time.Second // how long the guard does nothing but one kill
	streams   = 3               // the descriptors that come with an order to start: what the tool reads and writes
	mostFiles = streams + 1     // and its ruleset

	killAgain = 200 * time.Millisecond // the pause before it tries again to kill what survived that
)

// run is a tool as the guard sees it.
type run struct {
	call   uint64
	pid    int
	tag    string // is in the environment of what it has started
	mark   uint64 // is inherited by what it has started; 0: none
	over   bool   // it has ended, or muster has ordered it to be killed: what belongs to it dies
	status int
	thread chan struct{} // closed to end the thread of a confined tool; nil without one
	fd     int           // a pidfd that becomes readable at its end; -1: only SIGCHLD tells

	dir      string
	limits   Limits
	group    *cgroup.Group // that keeps them; nil: the guard counts
	freeDisk int64         // bytes on the disk of dir, when last measured
	reached  []string      // the limits that it was killed for
}

// guard is the state of the guard's process. One thread uses it.
type guard struct {
	socket     *os.File
	tag        string // of all calls of this guard
	mark       marker
	running    map[int]*run         // by pid
	adopted    map[processID][]*run // which tool an adopted process belongs to, or which it may belong to
	ended      []*run               // reaped, not yet reported
	left       int                  // how many processes the last sweep could not kill
	hasNoChild bool                 // when last reaped
	closing    bool                 // muster is gone: everything is to die
	limiter    limiter
}

// serve runs the guard. It returns when its program is gone and everything is dead.
func serve() error {
	runtime.LockOSThread() // tools die with the thread that started them (Pdeathsig), and their limits are the thread's
	// As a subreaper the guard becomes the parent of every orphan below it, which is what makes a whole tree findable.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("this system has no subreaper: %w", err)
	}
	// No tool may read or write the memory of the guard, whose rights are the user's. The threads that start confined
	// tools are under the same rules as these, so the rules do not keep them apart.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("the memory of the guard cannot be protected: %w", err)
	}
	if _, err := unix.FcntlInt(guardSocket, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return errors.New("this is muster's guard of tools: it is started by muster only")
	}
	// Caught, not ignored: every tool would ignore it too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	_ = os.WriteFile("/proc/self/comm", []byte("muster-guard"), 0) // for people who look at ps
	self, _ := readProcess(os.Getpid())
	g := &guard{
		socket:  os.NewFile(guardSocket, "muster"),
		tag:     guardTag(os.Getpid(), self.started),
		mark:    newMarker(),
		running: map[int]*run{},
	}
	w, err := newWaiter(guardSocket, died)
	if err != nil {
		return fmt.Errorf("the guard of tools cannot wait: %w", err)
	}
	// Whoever reads what muster prints waits until nobody has it open, so the guard has /dev/null from here on.
	_ = unix.Dup3(0, 2, 0)
	defer g.limiter.close()
	g.obey(w)
	return nil
}

// obey does what the program orders and what the limits of its tools demand, until the program is gone and everything
// is dead.
func (g *guard) obey(w *waiter) {
	var again time.Time // when what a sweep left is tried again; zero: nothing was
	for {
		why := w.wait(g, earlier(again, g.limiter.next))
		// Ends are handled before orders: a kill order for a tool that has ended finds nothing to kill.
		if why.ended {
			g.reap()
		}
		if isDue(again) {
			g.sweep()
			again = time.Time{}
		}
		if isDue(g.limiter.next) {
			g.measure()
		}
		if why.readable {
			// The end of the socket is the end of the program, however it died.
			order, files, err := receive(g.socket)
			if err != nil {
				g.closing = true
				g.sweep()
				g.report()
				return
			}
			g.handle(order, files)
		}
		g.report()
		switch {
		case g.left == 0:
			again = time.Time{}
		case again.IsZero():
			again = time.Now().Add(killAgain)
		}
	}
}

// guardTag begins the tag of each call of a guard. The start time tells the guard from a later one with the same pid.
func guardTag(pid int, started uint64) string { return processID{pid, started}.String() + "." }

// handle obeys an order of the program. files are the descriptors that came with it.
func (g *guard) handle(order frame, files []int) {
	defer func() {
		for _, fd := range files {
			_ = unix.Close(fd)
		}
	}()
	switch order.kind {
	case frameStart:
		r, err := g.start(order, files)
		if err != nil {
			errno := syscall.EINVAL
			errors.As(err, &errno)
			g.send(frameFailed, order.call, strconv.Itoa(int(errno)))
			return
		}
		g.running[r.pid], g.hasNoChild = r, false
		g.send(frameStarted, r.call, strconv.Itoa(r.pid))
	case frameKill:
		for _, r := range g.running {
			if r.call == order.call {
				r.over = true
				g.sweep()
				return
			}
		}
	}
}

// start starts a tool. The thread's mark is set meanwhile, so that the tool and its children inherit it. The error is
// the errno that the system gave.
func (g *guard) start(order frame, files []int) (*run, error) {
	const first = 5 // the argument after dir, path, limits and the two numbers
	args, writable := order.args, first+order.number(first-2)
	env := writable + order.number(first-1)
	if len(files) < streams || writable <= first || env < writable || env > len(args) {
		return nil, syscall.EBADMSG
	}
	r := &run{call: order.call, tag: g.tag + strconv.FormatUint(order.call, 10), mark: g.mark.of(order.call), fd: -1,
		dir: args[0], limits: parseLimits(args[2])}
	r.group = g.limiter.group(r.limits)
	unmark := g.mark.set(r.mark)
	defer unmark()
	attr := &syscall.ProcAttr{
		Dir:   args[0],
		Env:   WithVariables(args[env:], CallVar+"="+r.tag),
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		// Pdeathsig kills the tool when the guard itself is killed.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &r.fd},
	}
	fork := r.fork
	if len(files) == mostFiles {
		fork = func(path string, argv []string, attr *syscall.ProcAttr) error {
			return r.forkConfined(files[streams], args[writable:env], path, argv, attr)
		}
	}
	lift := limitFiles(r.limits)
	err := fork(args[1], args[first:writable], attr)
	lift()
	if err == nil {
		g.limit(r)
	}
	return r, err
}

// reap reaps what has died. The tools among it go to ended, and are reported only when nothing of them is left.
func (g *guard) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		g.hasNoChild = err == unix.ECHILD
		if err != nil || pid <= 0 {
			return
		}
		// Orphans are reaped too. Only tools are reported.
		r := g.running[pid]
		if r == nil {
			continue
		}
		r.over = true
		r.status = status.ExitStatus()
		if status.Signaled() {
			r.status = 128 + int(status.Signal())
		}
		r.closeFD()
		r.endThread()
		delete(g.running, pid)
		g.ended = append(g.ended, r)
	}
}

// report kills what ended tools left behind, and only then tells the program that they have ended: Wait promises that
// the whole tree is dead.
func (g *guard) report() {
	if len(g.ended) == 0 {
		return
	}
	if !g.hasNoChild && g.hasOrphans() {
		g.sweep()
	}
	for _, r := range g.ended {
		g.send(frameExited, r.call, strconv.Itoa(r.status), r.reachedLimits())
	}
	g.ended = nil
}

// hasOrphans reports whether the guard has a child that is not a running tool.
func (g *guard) hasOrphans() bool {
	pids, known := children(os.Getpid())
	return !known || slices.ContainsFunc(pids, func(pid int) bool { return g.running[pid] == nil })
}

// sweep kills every process whose tool has ended or must end. left is how many it could not kill in time.
func (g *guard) sweep() {
	g.left = killAll(func() []process {
		g.reap()
		return g.victims(descendants(os.Getpid()))
	}, killLimit)
	g.reap() // the last to die
}

// victims returns those of all processes that must be killed: everything below a tool that is over, and each adopted
// process of which no possible owner runs any more. A doubt keeps a process alive until the last tool that it may
// belong to has ended.
func (g *guard) victims(all map[int]process) (list []process) {
	owners := g.ownersOf(all)
	for _, t := range all {
		of := owners[topmost(all, t).pid]
		dies := g.closing || !slices.ContainsFunc(of, func(r *run) bool { return !r.over })
		if dies && !t.isDead() {
			list = append(list, t)
		}
	}
	return list
}

// ownersOf returns for each child of the guard, by its pid, the tools that it and all below it may belong to: itself,
// if it is a tool. What was found out about an adopted process is kept until it is gone.
func (g *guard) ownersOf(all map[int]process) map[int][]*run {
	owners, adopted := map[int][]*run{}, map[processID][]*run{}
	for _, t := range all {
		top := topmost(all, t)
		if _, known := owners[top.pid]; known {
			continue
		}
		if r := g.running[top.pid]; r != nil {
			owners[top.pid] = []*run{r}
			continue
		}
		of, known := g.adopted[top.id()]
		if !known {
			of = g.findOwners(top)
		}
		owners[top.pid], adopted[top.id()] = of, of
	}
	g.adopted = adopted
	return owners
}

// topmost returns the child of the guard that a process descends from. The walk is bounded, because entries of /proc
// are read one after the other and may contradict each other.
func topmost(all map[int]process, t process) process {
	for range len(all) {
		up, ok := all[t.parent]
		if !ok {
			break
		}
		t = up
	}
	return t
}

// findOwners finds the tool that a process belongs to whose ancestors are dead. None means one that has ended.
func (g *guard) findOwners(t process) []*run {
	running := slices.Collect(maps.Values(g.running))
	for _, r := range slices.Concat(g.ended, running) {
		if t.session == r.pid || t.group == r.pid {
			return []*run{r}
		}
	}
	mark, marked := g.mark.read(t.pid)
	for _, r := range running {
		if marked && r.mark == mark || !marked && hasTag(t.pid, CallVar+"="+r.tag, false) {
			return []*run{r}
		}
	}
	if marked || hasTag(t.pid, CallVar+"="+g.tag, true) {
		return nil
	}
	return running
}

// send sends an answer. A write error means that the program is gone, which the end of the socket tells as well.
func (g *guard) send(kind string, call uint64, args ...string) {
	_, _ = g.socket.Write(frame{kind, call, args}.encode())
}

// receive reads the next order from the socket, with the descriptors that come with it. The error is that of its end.
// It waits for the rest of an order that has begun: its writer is writing all of it, or is dead.
func receive(socket *os.File) (order frame, files []int, err error) {
	order, err = readFrame(socket, func(head []byte) error {
		oob := make([]byte, unix.CmsgSpace(mostFiles*4))
		var n, oobn int
		for again := true; again; again = errors.Is(err, unix.EINTR) {
			n, oobn, _, _, err = unix.Recvmsg(guardSocket, head, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		}
		if err != nil || n < len(head) {
			return io.EOF
		}
		controls, _ := unix.ParseSocketControlMessage(oob[:oobn])
		for _, c := range controls {
			fds, _ := unix.ParseUnixRights(&c)
			files = append(files, fds...)
		}
		return nil
	})
	return order, files, err
}
