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
)

// This file is the guard's side. Everything that descends from the guard's tools stays below the guard: it is a
// subreaper, so the kernel makes it the parent of whatever they orphan. The only question is which tool an orphan
// belongs to. It is asked when a tool ends or is to be killed, and the first of these answers counts:
//
//   - the tool of a living ancestor, or the answer that was found before;
//   - the tool of its session or process group;
//   - the tool whose mark it has (mark_linux.go). Children inherit the mark, and it outlives setsid and an empty
//     environment;
//   - the tool whose tag is in the environment that it was started with;
//   - one of the tools that ran when it was first seen. It lives until none of them runs.

const (
	guardWord   = "guard-of-muster-tools" // the first argument of a guard
	guardSocket = 3                       // the descriptor of its end of the socket

	killLimit = 2 * time.Second        // how long the guard does nothing but one kill
	killAgain = 200 * time.Millisecond // the pause before it tries again to kill what survived that
)

// run is a tool as the guard sees it.
type run struct {
	call    uint64
	pid     int
	tag     string
	mark    uint64
	mustEnd bool // muster has ordered it to be killed
	status  int
	fd      int // a pidfd that becomes readable at its end; -1: only SIGCHLD tells
}

// guard is the state of the guard's process. One thread uses it.
type guard struct {
	socket     int
	tag        string // of all calls of this guard
	mark       marker
	running    map[uint64]*run          // by call
	pids       map[int]*run             // the same by pid
	owners     map[processID]*ownership // whose adopted processes are, as far as known
	ended      []*run                   // reaped, not yet reported
	left       int                      // how many processes the last sweep could not kill
	hasNoChild bool                     // when last reaped
	closing    bool                     // muster is gone: everything is to die
}

// ownership says which call an orphan belongs to, or which calls it may belong to. None means: to one that has ended.
type ownership struct {
	of []uint64
}

// message is what came over the socket.
type message struct {
	kind  kind
	body  body
	files []int
}

// serve runs the guard. It returns when its program is gone and everything is dead.
func serve() error {
	runtime.LockOSThread() // tools die with the thread that started them (Pdeathsig), and their limits are the thread's
	// As a subreaper the guard becomes the parent of every orphan below it, which is what makes a whole tree findable.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("this system has no subreaper: %w", err)
	}
	if _, err := unix.FcntlInt(guardSocket, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return errors.New("this is muster's guard of tools: it is started by muster only")
	}
	// Caught, not ignored: what is ignored would be ignored by every tool too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	_ = os.WriteFile("/proc/self/comm", []byte("muster-guard"), 0) // for people who look at ps
	self, _ := readProcess(os.Getpid())
	g := &guard{
		socket:  guardSocket,
		tag:     guardTag(os.Getpid(), self.started),
		mark:    newMarker(),
		running: map[uint64]*run{},
		pids:    map[int]*run{},
		owners:  map[processID]*ownership{},
	}
	w, err := newWaiter(g.socket, died)
	if err != nil {
		return fmt.Errorf("the guard of tools cannot wait: %w", err)
	}
	var again time.Time // when what a sweep left is tried again; zero: nothing was
	for {
		why := w.wait(g, again)
		// Ends are handled before orders: a kill order for a tool that has ended finds nothing to kill.
		if why.ended {
			g.reap()
		}
		if why.timedOut {
			g.sweep()
			again = time.Time{}
		}
		if why.readable {
			// The end of the socket is the end of the program, however it died.
			m, ok := receive(g.socket)
			if !ok {
				g.closing = true
				g.sweep()
				g.report()
				return nil
			}
			g.handle(m)
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
func guardTag(pid int, started uint64) string { return fmt.Sprintf("%d.%d.", pid, started) }

// handle obeys a message of the program.
func (g *guard) handle(m message) {
	defer func() {
		for _, fd := range m.files {
			_ = unix.Close(fd)
		}
	}()
	call, err := m.body.takeUint()
	if err != nil {
		return
	}
	switch m.kind {
	case frameStart:
		r := &run{call: call, tag: g.tag + strconv.FormatUint(call, 10), mark: g.mark.of(call)}
		if err := g.start(r, m); err != nil {
			errno := syscall.EINVAL
			errors.As(err, &errno)
			g.send(frameFailed, body{}.uint(call).uint(uint64(errno)))
			return
		}
		g.running[call], g.pids[r.pid], g.hasNoChild = r, r, false
		g.send(frameStarted, body{}.uint(call).uint(uint64(r.pid)))
	case frameKill:
		if r := g.running[call]; r != nil {
			r.mustEnd = true
			g.sweep()
		}
	}
}

// start starts a tool. The thread's mark is set meanwhile, so that the tool and its children inherit it.
func (g *guard) start(r *run, m message) error {
	dir, err1 := m.body.takeText()
	path, err2 := m.body.takeText()
	argv, err3 := m.body.takeList()
	env, err4 := m.body.takeList()
	if err := errors.Join(err1, err2, err3, err4); err != nil || len(m.files) != 2 {
		return syscall.EBADMSG
	}
	unmark := g.mark.set(r.mark)
	defer unmark()
	fd := -1
	in, out := uintptr(m.files[0]), uintptr(m.files[1])
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir:   dir,
		Env:   setTag(env, r.tag),
		Files: []uintptr{in, out, out},
		// Pdeathsig kills the tool when the guard itself is killed.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &fd},
	})
	r.pid, r.fd = pid, fd
	return err
}

// reap reaps what has died. The tools among it go to ended.
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
		r := g.pids[pid]
		if r == nil {
			continue
		}
		r.status = status.ExitStatus()
		if status.Signaled() {
			r.status = 128 + int(status.Signal())
		}
		r.closeFD()
		delete(g.pids, pid)
		delete(g.running, r.call)
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
		g.send(frameExited, body{}.uint(r.call).uint(uint64(r.status)))
	}
	g.ended = nil
}

// hasOrphans reports whether the guard has a child that is not a running tool.
func (g *guard) hasOrphans() bool {
	pids, known := children(os.Getpid())
	return !known || slices.ContainsFunc(pids, func(pid int) bool { return g.pids[pid] == nil })
}

// sweep kills every process whose tool has ended or must end. left is how many it could not kill in time.
func (g *guard) sweep() {
	g.left = killAll(func() []process {
		g.reap()
		return g.victims(descendants(os.Getpid()))
	}, killLimit)
	g.reap() // the last to die
}

// victims returns those of all processes that must be killed.
func (g *guard) victims(all map[int]process) (list []process) {
	seen := map[processID]*ownership{}
	for _, t := range all {
		top := t
		// The walk goes up to a child of the guard. It is bounded, because entries of /proc are read one after the
		// other and may contradict each other.
		for range len(all) {
			up, ok := all[top.parent]
			if !ok {
				break
			}
			top = up
		}
		dies := g.closing
		if r := g.pids[top.pid]; r != nil {
			dies = dies || r.mustEnd
		} else if !dies {
			a := g.owners[top.id()]
			if a == nil {
				a = g.findOwners(top)
				g.owners[top.id()] = a
			}
			seen[top.id()] = a
			dies = !slices.ContainsFunc(a.of, func(call uint64) bool {
				r := g.running[call]
				return r != nil && !r.mustEnd
			})
		}
		if dies && !t.isDead() {
			list = append(list, t)
		}
	}
	g.owners = seen // what is gone is forgotten
	return list
}

// findOwners finds the tool that a process belongs to whose ancestors are dead.
func (g *guard) findOwners(t process) *ownership {
	for _, r := range slices.Concat(g.ended, slices.Collect(maps.Values(g.running))) {
		if t.session == r.pid || t.group == r.pid {
			return &ownership{of: []uint64{r.call}}
		}
	}
	// A mark of no running tool is of one that has ended.
	if mark, ok := g.mark.read(t.pid); ok {
		for _, r := range g.running {
			if r.mark == mark {
				return &ownership{of: []uint64{r.call}}
			}
		}
		return &ownership{} // of one that has ended
	}
	for _, r := range g.running {
		if hasTag(t.pid, CallVar+"="+r.tag, false) {
			return &ownership{of: []uint64{r.call}}
		}
	}
	if hasTag(t.pid, CallVar+"="+g.tag, true) {
		return &ownership{} // of one that has ended
	}
	a := &ownership{}
	for _, r := range g.running {
		a.of = append(a.of, r.call)
	}
	return a
}

// send sends a frame. A write error means that the program is gone, which the end of the socket tells as well.
func (g *guard) send(k kind, b body) {
	data := append(b.header(k), b...)
	for len(data) > 0 {
		n, err := unix.SendmsgN(g.socket, data, nil, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		data = data[n:]
	}
}

// receive reads the next message from the socket; ok is false at its end. It waits for the rest of a message that has
// begun: its writer is writing all of it, or is dead.
func receive(socket int) (m message, ok bool) {
	k, b, err := readFrame(reader(socket), func(head []byte) error {
		oob := make([]byte, unix.CmsgSpace(2*4))
		for len(head) > 0 {
			n, oobn, _, _, err := unix.Recvmsg(socket, head, oob, unix.MSG_CMSG_CLOEXEC)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 {
				return io.EOF
			}
			if controls, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
				for _, c := range controls {
					fds, _ := unix.ParseUnixRights(&c)
					m.files = append(m.files, fds...)
				}
			}
			head = head[n:]
		}
		return nil
	})
	m.kind, m.body = k, b
	return m, err == nil
}

// reader reads a descriptor in blocking calls.
type reader int

// Read reads, and repeats a call that a signal has interrupted.
func (r reader) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
