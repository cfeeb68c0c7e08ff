package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"muster/internal/proc"
)

// A confined program has a loopback of its own, where nobody listens. This program, run again inside of the
// sandbox, listens there as an HTTP proxy and passes each connection to the socket of the Proxy outside.

const (
	// forwardWord is the first argument of this program as a forwarder, and dialWord as one that connects to a port of
	// the namespaces that it is in.
	forwardWord = "forward-of-muster-network"
	dialWord    = "dial-of-muster-sandbox"
	// Where the forwarder and the proxy's directory are seen in the sandbox.
	forwarderPath = "/run/muster/bin/muster"
	proxyPath     = "/run/muster/net"
)

// self is the path of this program, which can be a forwarder when it is run again; "" until ForwardMain is called.
var self string

// ForwardMain is called early in main, and in TestMain of packages whose tests confine programs. If this process was
// started as a forwarder, it runs the command and never returns; else it notes that a Proxy can have one. The same
// holds for one that connects to a Server.
func ForwardMain() {
	mains := map[string]func(args []string) (exit int, err error){forwardWord: forward, dialWord: dial}
	if len(os.Args) < 3 || mains[os.Args[1]] == nil {
		self, _ = os.Executable()
		return
	}
	exit, err := mains[os.Args[1]](os.Args[2:])
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(exit)
}

// Command returns the command that runs argv with the network of a proxy, and the rules that it needs.
func (p *Proxy) Command(argv []string) ([]string, Rules) {
	return append([]string{forwarderPath, forwardWord}, argv...), Rules{
		{Path: forwarderPath, From: self, MustExist: true}, {Path: proxyPath, From: p.dir, MustExist: true}}
}

// forward runs a command with the proxy, and returns its exit status.
func forward(argv []string) (exit int, err error) {
	const cannotStart = 127
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return cannotStart, fmt.Errorf("muster: the network of this command cannot be served: %w", err)
	}
	go accept(l, filepath.Join(proxyPath, socketName))
	url := "http://" + l.Addr().String()
	// The command ends with this process, as all in the sandbox does, so it needs no signal of ours.
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "http_proxy="+url, "https_proxy="+url, "HTTP_PROXY="+url, "HTTPS_PROXY="+url,
		"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1")
	if err = c.Run(); c.ProcessState == nil {
		return cannotStart, err
	}
	return proc.ExitStatus(c.ProcessState), nil
}

// accept passes each connection to the proxy outside, at its socket.
func accept(l net.Listener, socket string) {
	for {
		// It fails when the process ends, and with it the command.
		near, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer far.Close()
			join(near, near, far)
		}()
	}
}
