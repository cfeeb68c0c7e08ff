package proc

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster/internal/cgroup"
	"muster/internal/landlock"
)

// This file is the guard's side. What the guard's tools orphan becomes its child, and belongs to the tool whose mark it
// has inherited (see marker). An orphan whose mark cannot be told, because the system gives none or the orphan has
// changed it, lives until no tool runs that may have started it.
//
// A tool with a PID namespace of its own has no orphans but the first process of that namespace. The kernel kills all
// others with that one.

const (
	guardWord = "guard-of-muster-tools" // the first argument of a guard
	killLimit = 2 * time.Second         // how long the guard does nothing but one kill
	streams   = 3                       // what a tool reads and writes
	mostFiles = 1 + streams + 1         // for a tool: its connection, streams, and Extra or Ruleset of its Spec
)

// run is a tool as the guard sees it.
type run struct {
	order
	conn   *os.File // to muster: see keeper
	pid    int
	mark   uint64 // is inherited by what it has started; 0: none
	over   bool   // it has ended, or muster has ordered it to be killed: what belongs to it dies
	status int
	ended  chan struct{} // closed to end the thread of a tool under a ruleset; nil without one

	group   *cgroup.Group // that keeps its limits; nil: the guard counts
	free    room          // on the disk of its directory, when last measured
	reached []string      // a text for each limit that it was killed for
}

// guard is the state of the guard's process. One goroutine uses it.
type guard struct {
	events  chan func() // are run one after the other
	calls   uint64      // how many tools were to start
	mark    marker
	running map[int]*run // by pid
	ended   []*run       // reaped, not yet reported
	left    int          // how many processes the last sweep could not kill
	closing bool         // muster is gone: everything is to die
	pool    *cgroup.Pool // nil where there are no control groups
	thread  thread       // starts the tools with a namespace
	null    int          // /dev/null as that thread sees it; -1 is as everybody does
}

// serve runs the guard. It returns when its program is gone and everything is dead.
func serve() error {
	runtime.LockOSThread() // tools die with the thread that started them (Pdeathsig)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("this system has no subreaper: %w", err)
	}
	// No tool may read or write the memory of the guard, whose rights are the user's. A tool with a ruleset could trace
	// the thread that has started it: both are under the same rules.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("the memory of the guard cannot be protected: %w", err)
	}
	socket := os.NewFile(3, "muster") // the first of the files that startGuard has given it besides
	conn, err := net.FileConn(socket)
	if err != nil {
		return errors.New("this is muster's guard of tools: it is started by muster only")
	}
	_ = socket.Close()
	// Caught, not ignored: every tool would ignore it too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	_ = os.WriteFile("/proc/self/comm", []byte("muster-guard"), 0) // for people who look at ps
	// Whoever reads what muster prints waits until nobody has it open, so the guard has /dev/null from here on.
	_ = unix.Dup3(0, 2, 0)
	g := &guard{events: make(chan func()), mark: newMarker(), running: map[int]*run{}, pool: newPool("")}
	_ = g.thread.do(func() error {
		newSessionKeyring()
		g.null = protectDevices()
		return nil
	})
	defer g.pool.Close()
	go g.accept(conn.(*net.UnixConn))
	g.obey(died)
	return nil
}

// newSessionKeyring gives this thread and what it starts a session keyring of their own, without the keys of the user's
// session. Where the kernel has no keyrings, there are no keys.
func newSessionKeyring() { _, _ = unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) }

// protectDevices gives this thread, and what it starts, a view of the files in which the devices that a namespace has
// are read-only. That keeps nobody from writing to a device: it keeps programs of root from changing its mode and its
// times, which are those of the machine. It returns /dev/null there, and -1 where the kernel does not let it.
func protectDevices() (null int) {
	if os.Geteuid() != 0 || unix.Unshare(unix.CLONE_NEWNS) != nil ||
		unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "") != nil {
		return -1
	}
	for _, name := range []string{"full", "null", "random", "tty", "urandom", "zero"} {
		path := "/dev/" + name
		var now unix.Statfs_t
		if unix.Mount(path, path, "", unix.MS_BIND, "") != nil || unix.Statfs(path, &now) != nil {
			continue
		}
		// The flags that are there must stay.
		kept := uintptr(now.Flags) & (unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
		_ = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept, "")
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return null
}

func isNull(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}

// obey does what muster orders and what the limits of its tools demand, until muster is gone and everything is dead.
func (g *guard) obey(died <-chan os.Signal) {
	var tick <-chan time.Time
	for !g.closing {
		var event func()
		select {
		case event = <-g.events:
		case <-died:
		case <-tick:
			tick = nil
			g.measure()
		}
		g.reap() // first: an order to kill a tool that has ended finds nothing to kill
		if event != nil {
			event()
		}
		g.report()
		if tick == nil && (g.left > 0 || len(g.running) > 0) {
			tick = time.After(measurePause)
		}
	}
	g.sweep()
	g.report()
}

// accept takes connections for tools, until muster is gone, however it died.
func (g *guard) accept(socket *net.UnixConn) {
	for {
		files, err := receive(socket)
		if err != nil {
			g.events <- func() { g.closing = true }
			return
		}
		if len(files) > 0 { // else this process has too many open
			go g.serve(os.NewFile(uintptr(files[0]), "muster"), files[1:])
		}
	}
}

// serve starts the tool of a connection with descriptors, and kills it when muster orders that or is gone.
func (g *guard) serve(conn *os.File, files []int) {
	r := &run{conn: conn}
	err := gob.NewDecoder(conn).Decode(&r.order)
	g.events <- func() {
		if err == nil {
			err = g.start(r, files)
		}
		for _, fd := range files {
			_ = unix.Close(fd)
		}
		if err != nil {
			errno := syscall.EINVAL
			errors.As(err, &errno)
			r.answer(-int(errno))
			_ = conn.Close()
			return
		}
		g.running[r.pid] = r
		r.answer(r.pid)
	}
	_, _ = conn.Read(make([]byte, 1))
	g.events <- func() {
		if g.running[r.pid] == r {
			r.kill()
			g.sweep()
		}
	}
}

// start starts a tool. The guard has the tool's mark meanwhile, so that the tool and its children inherit it. The error
// is the errno that the system gave.
func (g *guard) start(r *run, files []int) error {
	g.calls++
	if len(files) < streams || r.HasRules && len(files) == streams { // this process has too many open
		return syscall.EMFILE
	}
	tag := os.Args[2] + strconv.FormatUint(g.calls, 10)
	attr := &syscall.ProcAttr{
		Dir: r.Dir,
		Env: WithVariables(r.Env, CallVar+"="+tag),
		// Pdeathsig kills the tool when the guard itself is killed.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	for _, fd := range files {
		if r.HasNamespace && g.null >= 0 && isNull(fd) {
			fd = g.null
		}
		attr.Files = append(attr.Files, uintptr(fd))
	}
	var unmark func()
	r.mark, unmark = g.mark.set(g.calls)
	defer unmark()
	// The tool has this limit from its first moment on. It could lift it, so limit follows. The guard itself writes no
	// file that is so large.
	lift, _ := limitOwn(unix.RLIMIT_FSIZE, uint64(max(r.Limits.FileSize, 0)))
	defer lift()
	fork := func() (err error) {
		r.pid, err = syscall.ForkExec(r.Path, r.Argv, attr)
		return err
	}
	var err error
	switch {
	case r.HasRules:
		last := len(files) - 1
		attr.Files = attr.Files[:last]
		err = r.forkConfined(files[last], fork)
	case r.HasNamespace:
		err = g.forkInGroup(r, attr, func() error { return g.thread.do(fork) })
	default:
		err = g.forkInGroup(r, attr, fork)
	}
	if err == nil {
		g.limit(r)
	}
	return err
}

// forkInGroup starts a tool in a control group, where there are some.
func (g *guard) forkInGroup(r *run, attr *syscall.ProcAttr, fork func() error) error {
	if l := r.Limits; l.Processes > 0 || l.Memory > 0 {
		r.group = g.pool.New(l.Processes, l.Memory)
	}
	if r.group != nil {
		attr.Sys.CgroupFD, attr.Sys.UseCgroupFD = r.group.FD, true
		if fork() == nil {
			return nil
		}
		r.group.Remove() // it may be at fault
		r.group, attr.Sys.UseCgroupFD = nil, false
	}
	return fork()
}

// forkConfined starts a tool under a ruleset. It has no control group: the call that starts a program in one is refused
// there.
//
// A thread that is under a ruleset never comes out of it, so each tool has a thread of its own. The thread waits until
// the tool has ended, because the kernel kills the tool when the thread dies (Pdeathsig). The Go runtime runs nothing
// else on it, and starts no thread from it.
func (r *run) forkConfined(ruleset int, fork func() error) error {
	r.ended = make(chan struct{})
	started := make(chan error)
	landlock.OnThread(func() {
		newSessionKeyring()
		err := landlock.Restrict(ruleset, r.Writable)
		if err == nil {
			err = fork()
		}
		started <- err
		if err == nil {
			<-r.ended
		}
	})
	return <-started
}

// kill lets the next sweep kill a tool. The first process of a namespace takes all others with it, however many there
// are, so that one is killed at once. It is the tool's child until the tool reaps it, which it cannot while it is
// stopped.
func (r *run) kill() {
	r.over = true
	if !r.HasNamespace {
		return
	}
	_ = unix.Kill(r.pid, unix.SIGSTOP)
	for _, pid := range children(r.pid) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// reap reaps what has died. The tools among it go to ended, and are reported only when nothing of them is left.
func (g *guard) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		if err != nil || pid <= 0 {
			return
		}
		r := g.running[pid] // nil: an orphan
		if r == nil {
			continue
		}
		r.over = true
		r.status = exitStatus(syscall.WaitStatus(status))
		if r.ended != nil {
			close(r.ended)
		}
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
	g.sweep()
	for _, r := range g.ended {
		if r.group != nil {
			r.exceeded(nil)
			r.group.Remove()
		}
		r.answer(r.status, r.reached...)
		_ = r.conn.Close()
	}
	g.ended = nil
}

// sweep kills every process whose tool has ended or must end. left is how many it could not kill in time.
func (g *guard) sweep() {
	g.left = killAll(g.victims)
	g.reap() // the last to die
}

// victims returns the processes that must die: each child of the guard whose tool is over, and what is below it.
func (g *guard) victims() (list []process) {
	g.reap()
	for _, pid := range children(os.Getpid()) {
		t, ok := readProcess(pid)
		if !ok || !g.mustDie(t) {
			continue
		}
		all := slices.DeleteFunc(subtree(t), process.isDead)
		if r, _ := g.owner(t); r != nil && r.HasNamespace && r.pid != pid && len(all) <= 1 {
			// The first process of a namespace in which nothing else is left. To take the namespace down takes the
			// kernel some milliseconds, for which nobody waits.
			_ = unix.Kill(pid, unix.SIGKILL)
			continue
		}
		list = append(list, all...)
	}
	return list
}

func (g *guard) mustDie(t process) bool {
	r, known := g.owner(t)
	if known || g.closing {
		return g.closing || r == nil || r.over
	}
	for _, r := range g.running {
		if !r.over && !r.HasNamespace {
			return false
		}
	}
	return true
}

// owner returns the tool that a child of the guard is or belongs to; nil is one that was reported. known is false where
// that cannot be told.
func (g *guard) owner(t process) (r *run, known bool) {
	if r := g.running[t.pid]; r != nil {
		return r, true
	}
	mark, known := g.mark.read(t.pid)
	for _, r := range slices.AppendSeq(slices.Clone(g.ended), maps.Values(g.running)) {
		if known && r.mark == mark {
			return r, true
		}
	}
	return nil, known
}

// answer sends an answer over the connection of a tool. An error means that muster is gone, which accept notices.
func (r *run) answer(number int, reached ...string) {
	_ = json.NewEncoder(r.conn).Encode(answer{number, reached})
}
