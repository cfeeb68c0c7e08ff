package proc

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster"
)

// hasGuardMain says that GuardMain was called, so that this program, run again, can be a guard. It is a fact about the
// process, set once before anything else happens. If New were told it instead, a wrong answer would start the program
// again and again.
var hasGuardMain bool

// GuardMain is called first thing in main, and in TestMain of packages whose tests start tools. If this process was
// started as a guard, it serves and never returns; else it notes that New can start one.
func GuardMain() {
	if len(os.Args) != 3 || os.Args[1] != guardWord {
		hasGuardMain = true
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
	keeper *keeper // the last guard, which may be dead
	closed bool
}

// newLauncher starts a guard and returns the launcher that uses it, or one without a guard where GuardMain was not
// called.
func newLauncher() (Launcher, error) {
	if !hasGuardMain {
		return new(groups), nil
	}
	k, err := startGuard()
	if err != nil {
		return nil, err
	}
	return &Guard{keeper: k}, nil
}

// PID is the process id of the guard.
func (g *Guard) PID() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keeper.process.Pid
}

// Start has the guard start a program.
func (g *Guard) Start(ctx context.Context, s Spec) (Process, error) {
	return startWith(ctx, s, g.start)
}

// liveKeeper returns the guard, a new one if the last has died.
func (g *Guard) liveKeeper() (*keeper, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed()
	}
	select {
	case <-g.keeper.gone:
		k, err := startGuard()
		if err != nil {
			return nil, err
		}
		g.keeper = k
	default:
	}
	return g.keeper, nil
}

// Close ends the guard, which kills everything first. A guard that does not manage it in time is killed itself, and
// each call kills what is left of its tool.
func (g *Guard) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.keeper.wake()
	// The guard takes the end of the socket as the end of the program: it kills everything and ends.
	_ = g.keeper.socket.Close()
	select {
	case <-g.keeper.gone:
		return nil
	case <-time.After(killLimit + outputTimeout):
		_ = g.keeper.process.Kill()
		<-g.keeper.gone
		return muster.Errorf(muster.Unavailable, "the guard did not end by itself: it was killed")
	}
}

// keeper is a guard that lives or lived. For each tool there is a connection of its own, which muster makes and hands
// over, with what the tool reads and writes. It carries the order to start, then an answer that says how the start
// ended, then one that says how the tool ended. One byte more, or its end when muster is dead, tells the guard to kill
// the tool.
type keeper struct {
	tag     string // begins the tags of all its calls
	process *os.Process
	socket  *net.UnixConn // to it go the connections; its end tells the guard to end
	gone    chan struct{} // closed when the guard is dead
}

// order asks the guard to start a tool. It goes over the connection of the tool, encoded by encoding/gob: JSON would
// not keep an argument that is no UTF-8. With the guard's end of the connection go the descriptors of the three
// streams, and of Extra or Ruleset of the Spec, where there is one.
type order struct {
	Dir, Path              string
	Argv, Env, Writable    []string
	Limits                 Limits
	HasNamespace, HasRules bool // see Spec.HasNamespace and Spec.Ruleset
}

// answer is what the guard says of a tool, as JSON: once when it has started, and once when it has ended.
type answer struct {
	Number  int      // first the pid, or minus the errno of a failed start; then the exit status
	Reached []string // a text for each limit that the tool was killed for
}

// startGuard starts a guard: this very program, even if its file was replaced meanwhile.
func startGuard() (*keeper, error) {
	fail := func(err error) (*keeper, error) {
		return nil, muster.Errorf(muster.Unavailable,
			"the process that starts the commands of agents cannot be started: %w", err)
	}
	ours, theirs, err := connection()
	if err != nil {
		return fail(err)
	}
	defer ours.Close()
	defer theirs.Close()
	socket, err := net.FileConn(ours)
	if err != nil {
		return fail(err)
	}
	program, _ := readProcess(os.Getpid())
	// Its arguments say whose guard it is, and so do the tags of its tools: see KillAbandoned.
	tag := program.id() + "." + rand.Text() + "."
	c := exec.Command("/proc/self/exe") // the running program, also when an update has replaced its file
	c.Args = []string{os.Args[0], guardWord, tag}
	c.Dir, c.Env, c.Stderr, c.ExtraFiles = "/", guardEnv(), os.Stderr, []*os.File{theirs}
	// The kernel wakes a stopped guard (SIGSTOP) when this program dies.
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
	if err := c.Start(); err != nil {
		return fail(errors.Join(err, socket.Close()))
	}
	k := &keeper{tag, c.Process, socket.(*net.UnixConn), make(chan struct{})}
	go func() {
		_ = c.Wait()
		_ = socket.Close()
		close(k.gone)
	}()
	return k, nil
}

// connection returns the two ends of a connection. It has no name: no other can connect to the guard or speak for it.
func connection() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "guard"), nil
}

// receive returns the descriptors that come with the next byte.
func receive(conn *net.UnixConn) (files []int, err error) {
	oob := make([]byte, unix.CmsgSpace(mostFiles*4))
	_, oobn, _, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	controls, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(controls) == 0 {
		return nil, err
	}
	return unix.ParseUnixRights(&controls[0])
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
func (g *Guard) start(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error) {
	k, err := g.liveKeeper()
	if err != nil {
		return nil, err
	}
	conn, theirs, err := connection()
	if err != nil {
		return nil, startError(s, err)
	}
	// The descriptors are duplicated into the message, so they must stay open until it is written.
	files := []int{int(theirs.Fd()), int(pipes.in.Fd()), int(pipes.out.Fd()), int(pipes.err.Fd())}
	if extra := cmp.Or(s.Ruleset, s.Extra); extra != nil {
		files = append(files, int(extra.Fd()))
	}
	k.wake()
	_, _, err = k.socket.WriteMsgUnix([]byte{0}, unix.UnixRights(files...), nil)
	_ = theirs.Close()
	if err == nil {
		err = gob.NewEncoder(conn).Encode(order{s.Dir, path, s.Argv, s.Env, s.Writable, s.Limits, s.HasNamespace,
			s.Ruleset != nil})
	}
	runtime.KeepAlive(pipes)
	runtime.KeepAlive(s)
	if err != nil {
		_ = conn.Close()
		return nil, muster.Errorf(muster.Unavailable,
			"the process that starts the commands of agents was killed: this command was not started")
	}
	answers := json.NewDecoder(conn)
	begun, err := k.answer(answers, -1)
	pid := begun.Number
	if err == nil && pid < 0 {
		err = startError(s, syscall.Errno(-pid))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	kill := func() error { // nothing is left to be killed where it fails
		k.wake()
		_, _ = conn.Write([]byte{0})
		return nil
	}
	return follow(ctx, s, pipes, pid, kill, func() (exit int, reached []string, err error) {
		ended, err := k.answer(answers, pid)
		return ended.Number, ended.Reached, errors.Join(err, conn.Close())
	}), nil
}

// answer reads an answer about a tool. Where there is none, the guard is dead. Then it kills what the tool has left,
// and the error says that the outcome is unknown. pid is -1 before the tool has started.
func (k *keeper) answer(answers *json.Decoder, pid int) (a answer, err error) {
	if answers.Decode(&a) == nil {
		return a, nil
	}
	<-k.gone
	killAll(func() []process { return left(pid, k.tag) })
	return answer{Number: 128 + int(unix.SIGKILL)}, muster.Errorf(muster.Unavailable,
		"the process that started this command was killed, and the command with it: its outcome is unknown")
}

// wake continues a stopped guard (SIGSTOP): its tools would outlive their time limit.
func (k *keeper) wake() { _ = k.process.Signal(unix.SIGCONT) }
