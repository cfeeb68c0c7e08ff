package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The guard's side. Everything that descends from the guard's tools stays below the guard, because a subreaper adopts
// what they orphan. So the only question is whose an adopted process is. It is asked when a tool ends or is to end:
//
//   - whose ancestor's it was, if that ancestor lives; or what was found before;
//   - whose session or process group it is in;
//   - whose mark it bears: each tool is started with a limit on POSIX message queues of its own (a few bytes below the
//     usual), which children inherit and which nobody changes. It outlives setsid and an empty environment;
//   - whose tag is in the environment it was started with;
//   - if all that says nothing: somebody's who ran when it was first seen, so it lives until none of those runs.

// guardWord is the first argument of a guard, guardSocket its end of the socket.
const (
	guardWord   = "guard-of-muster-tools"
	guardSocket = 3
)

const (
	killLimit = 2 * time.Second        // how long the guard looks at nothing else than one killing
	killAgain = 200 * time.Millisecond // what survived that is tried again at this pace
)

// run is a tool as the guard sees it.
type run struct {
	call   uint64
	pid    int
	tag    string
	mark   uint64
	doomed bool // to be killed
	status int
	fd     int // a pidfd that tells of its end; -1: only SIGCHLD does
}

type guard struct {
	socket    int
	tag       string // of all calls of this guard
	mark      marker
	running   map[uint64]*run        // by call
	pids      map[int]*run           // the same by pid
	adopted   map[identity]*adoption // whose adopted processes are, as far as known
	ended     []*run                 // reaped, not yet reported
	left      int                    // how many processes the last sweep could not kill
	childless bool                   // when last reaped
	closing   bool                   // muster is gone: everything is to die
}

// adoption says whose an adopted process is: of one call, or of one of several.
type adoption struct {
	of []uint64
}

// message is what came over the socket.
type message struct {
	kind  kind
	body  body
	files []int
}

// serve is the guard. It returns when its program is gone and everything is dead.
func serve() error {
	runtime.LockOSThread() // tools die with the thread that started them (Pdeathsig), and their limits are the thread's
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("this system has no subreaper: %w", err)
	}
	if _, err := unix.FcntlInt(guardSocket, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return errors.New("this is muster's guard of tools: it is started by muster only")
	}
	// Caught, not ignored: what is ignored would be ignored by every tool too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	_ = os.WriteFile("/proc/self/comm", []byte("muster-guard"), 0) // for people who look at ps
	self, _ := inspect(os.Getpid())
	g := &guard{
		socket:  guardSocket,
		tag:     guardTag(os.Getpid(), self.born),
		mark:    newMarker(),
		running: map[uint64]*run{},
		pids:    map[int]*run{},
		adopted: map[identity]*adoption{},
	}
	w, err := newWaiter(g.socket, died)
	if err != nil {
		return fmt.Errorf("the guard of tools cannot wait: %w", err)
	}
	var again time.Time // when what a sweep left is tried again; zero: nothing was
	for {
		why := w.wait(g, again)
		if why.ended {
			g.reap()
		}
		if why.late {
			g.sweep()
			again = time.Time{}
		}
		if why.spoken {
			m, ok := receive(g.socket)
			if !ok {
				g.closing = true
				g.sweep()
				g.report()
				return nil
			}
			g.obey(m)
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

func guardTag(pid int, born uint64) string { return fmt.Sprintf("%d.%d.", pid, born) }

func (g *guard) obey(m message) {
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
		g.running[call], g.pids[r.pid], g.childless = r, r, false
		g.send(frameStarted, body{}.uint(call).uint(uint64(r.pid)))
	case frameKill:
		if r := g.running[call]; r != nil {
			r.doomed = true
			g.sweep()
		}
	}
}

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
		Env:   withTag(env, r.tag),
		Files: []uintptr{in, out, out},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &fd}, // should the guard itself be killed
	})
	r.pid, r.fd = pid, fd
	return err
}

// reap takes what has died. The tools among it go to ended.
func (g *guard) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		g.childless = err == unix.ECHILD
		if err != nil || pid <= 0 {
			return
		}
		r := g.pids[pid]
		if r == nil {
			continue
		}
		r.status = status.ExitStatus()
		if status.Signaled() {
			r.status = 128 + int(status.Signal())
		}
		r.forgetFD()
		delete(g.pids, pid)
		delete(g.running, r.call)
		g.ended = append(g.ended, r)
	}
}

// report kills what ended tools left behind, and only then says that they have ended.
func (g *guard) report() {
	if len(g.ended) == 0 {
		return
	}
	if !g.childless && g.strangers() {
		g.sweep()
	}
	for _, r := range g.ended {
		g.send(frameExited, body{}.uint(r.call).uint(uint64(r.status)))
	}
	g.ended = nil
}

// strangers tells whether there is any child that is not a running tool.
func (g *guard) strangers() bool {
	pids, known := children(os.Getpid())
	return !known || slices.ContainsFunc(pids, func(pid int) bool { return g.pids[pid] == nil })
}

// sweep kills every process whose tool does not run or is doomed. What it could not kill in time it notes in left.
func (g *guard) sweep() {
	g.left = exterminate(func() []task {
		g.reap()
		return g.condemned(descendants(os.Getpid()))
	}, killLimit)
	g.reap() // the last to die
}

// condemned are those of all that are to die.
func (g *guard) condemned(all map[int]task) (list []task) {
	seen := map[identity]*adoption{}
	for _, t := range all {
		top := t
		for range len(all) {
			up, ok := all[top.parent]
			if !ok {
				break
			}
			top = up
		}
		dies := g.closing
		if r := g.pids[top.pid]; r != nil {
			dies = dies || r.doomed
		} else if !dies {
			a := g.adopted[top.identity()]
			if a == nil {
				a = g.adopt(top)
				g.adopted[top.identity()] = a
			}
			seen[top.identity()] = a
			dies = !slices.ContainsFunc(a.of, func(call uint64) bool { r := g.running[call]; return r != nil && !r.doomed })
		}
		if dies && !t.dead() {
			list = append(list, t)
		}
	}
	g.adopted = seen // what is gone is forgotten
	return list
}

// adopt finds out whose t is, a process whose parents are dead.
func (g *guard) adopt(t task) *adoption {
	for _, r := range slices.Concat(g.ended, g.list()) {
		if t.session == r.pid || t.group == r.pid {
			return &adoption{of: []uint64{r.call}}
		}
	}
	if mark, ok := g.mark.read(t.pid); ok {
		for _, r := range g.running {
			if r.mark == mark {
				return &adoption{of: []uint64{r.call}}
			}
		}
		return &adoption{} // of one that has ended
	}
	for _, r := range g.running {
		if tagged(t.pid, CallVar+"="+r.tag, false) {
			return &adoption{of: []uint64{r.call}}
		}
	}
	if tagged(t.pid, CallVar+"="+g.tag, true) {
		return &adoption{} // of one that has ended
	}
	a := &adoption{}
	for _, r := range g.running {
		a.of = append(a.of, r.call)
	}
	return a
}

func (g *guard) list() (rs []*run) {
	for _, r := range g.running {
		rs = append(rs, r)
	}
	return rs
}

// send sends a frame. If nobody reads it any more, the end of the socket says so too.
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

// receive takes the next message from the socket; ok is false at its end. It waits for a message that has begun: who
// writes one is writing all of it, or dead.
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
