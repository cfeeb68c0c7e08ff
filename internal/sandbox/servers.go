package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
)

// A confined command has a loopback of its own. What listens there is found in /proc, and reached from a process that
// enters the same namespaces: only the user who has made them, and root, may do so. Other systems than Linux have no
// such loopback, and nothing in /proc.

// Server is a port at which a confined program of a directory listens on its loopback.
type Server struct {
	Port    int
	PID     int    // of a process in the same sandbox
	Program string // its name
}

// Servers returns what listens in the sandboxes whose programs work in dir or below, by port.
func Servers(dir string) (all []Server) {
	own, _ := os.Readlink("/proc/self/ns/net")
	seen := map[string]bool{own: true, "": true} // a network is of all processes of a sandbox
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range pids {
		at, _ := os.Readlink(filepath.Join(entry, "cwd")) // both are "" where it has ended, or is another user's
		network, _ := os.Readlink(filepath.Join(entry, "ns", "net"))
		if !IsBelow(dir, at) || seen[network] {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(entry, "comm"))
		if string(name) == "bwrap\n" { // what has started the program says nothing about it
			continue
		}
		seen[network] = true
		pid, _ := strconv.Atoi(filepath.Base(entry))
		for _, port := range slices.Concat(listening(entry, "tcp"), listening(entry, "tcp6")) {
			all = append(all, Server{port, pid, strings.TrimSpace(string(name))})
		}
	}
	slices.SortFunc(all, func(a, b Server) int { return cmp.Or(a.Port-b.Port, a.PID-b.PID) })
	return slices.Compact(all) // many servers listen at one port of both families
}

// listening returns the ports at which something listens in the network of a process: see proc_pid_net(5). The fields
// of a line are a number, the address and the port in hexadecimal, those of the other end, and the state.
func listening(entry, kind string) (ports []int) {
	const listens = "0A"
	file, err := os.Open(filepath.Join(entry, "net", kind))
	if err != nil { // it has ended
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[3] != listens {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
			ports = append(ports, int(port))
		}
	}
	return ports
}

// Connect passes what comes over c to the server, and back, until either side ends. The error says why the server
// cannot be reached.
func (s Server) Connect(ctx context.Context, c *net.TCPConn) error {
	socket, err := c.File() // nothing is copied here
	if err != nil {
		return err
	}
	defer socket.Close()
	gone := func(err error) error { return muster.Errorf(muster.Unavailable, "port %d is gone: %w", s.Port, err) }
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", s.PID))
	if err != nil {
		return gone(err)
	}
	defer network.Close()
	// Who enters the user namespace that owns the network may enter the network. The program itself may be in another
	// one inside of it, and nothing else may be.
	user, err := userNamespace(network)
	if err != nil {
		return gone(err)
	}
	defer user.Close()
	args := []string{"--preserve-credentials", "--net=/proc/self/fd/4", self, dialWord, strconv.Itoa(s.Port)}
	own, ownErr := os.Stat("/proc/self/ns/user")
	if its, err := user.Stat(); cmp.Or(err, ownErr) != nil || !os.SameFile(own, its) { // root's programs have ours
		args = append([]string{"--user=/proc/self/fd/3"}, args...)
	}
	// A program of Go has several threads and cannot change its user namespace; nsenter of util-linux has one.
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.ExtraFiles = []*os.File{user, network} // descriptors 3 and 4
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin, cmd.Stdout = socket, socket
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return muster.Errorf(muster.Unavailable, "port %d cannot be reached: %s", s.Port,
			strings.TrimSpace(said.String()+" ("+err.Error()+")"))
	}
	return nil
}

// dial connects standard input and output to a port of the loopback, and returns an exit status.
func dial(port []string) (exit int, err error) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		var c net.Conn
		if c, err = net.Dial("tcp", net.JoinHostPort(address, port[0])); err == nil {
			go copyHalf(c, os.Stdin)
			_, _ = io.Copy(os.Stdout, c) // it fails when the user has closed the connection
			return 0, nil
		}
	}
	return 1, fmt.Errorf("nothing answers: %w", err)
}
