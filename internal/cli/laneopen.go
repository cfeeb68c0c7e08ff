package cli

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/sandbox"
	"muster/internal/text"
)

// laneAddress is where a server of a lane is shown. It is no address at which anything else of the user's listens: a
// browser sends the cookies of a host to each of its ports, and the page of muster web is at another one.
const laneAddress = "127.0.0.2"

// openServer returns muster worktree open. A command in a sandbox listens on a loopback of its own, which no browser
// reaches.
func (l laneCommands) openServer() *cobra.Command {
	var noOpen bool
	c := &cobra.Command{Use: "open NAME [PORT]", Short: "show a server that a command in a lane has started",
		Args: namedArgs("NAME", "[PORT]"),
		Long: "A confined command has a loopback of its own. This passes one of its ports on to " + laneAddress +
			", until Ctrl-C. Without PORT it is the only one at which something listens."}
	c.Flags().BoolVar(&noOpen, "no-open", false, "do not open a browser")
	c.RunE = l.looking(nil, func(c *cobra.Command, o opened, args []string) error {
		port := 0
		if len(args) > 1 {
			n, err := strconv.ParseUint(args[1], 10, 16)
			if err != nil || n == 0 {
				return &usageError{c.CommandPath(), fmt.Sprintf("%q is no port", args[1])}
			}
			port = int(n)
		}
		lane, err := o.Lanes().Get(c.Context(), muster.Name(args[0]))
		if err != nil {
			return err
		}
		server, err := chooseServer(lane, sandbox.Servers(lane.Path), port)
		if err != nil {
			return err
		}
		return l.pass(c.Context(), server, noOpen)
	})
	return c
}

// chooseServer returns the server with a port; 0 is the only one.
func chooseServer(lane muster.Lane, all []sandbox.Server, port int) (sandbox.Server, error) {
	var ports []string
	for _, s := range all {
		if s.Port == port || port == 0 && len(all) == 1 {
			return s, nil
		}
		ports = append(ports, fmt.Sprintf("%d (%s)", s.Port, text.OneLine(s.Program)))
	}
	switch {
	case len(all) == 0:
		return sandbox.Server{}, muster.Errorf(muster.NotFound,
			"nothing listens in the sandbox of a command in lane %s", lane.Name).
			WithHint("a server that is not confined is reached at its own address")
	case port == 0:
		return sandbox.Server{}, muster.Errorf(muster.Invalid, "several servers listen in lane %s: %s", lane.Name,
			strings.Join(ports, ", ")).WithHint("muster worktree open %s %d", lane.Name, all[0].Port)
	}
	return sandbox.Server{}, muster.Errorf(muster.NotFound, "nothing listens at port %d in lane %s, but at %s", port,
		lane.Name, strings.Join(ports, ", "))
}

// pass passes connections on to a server until the command is interrupted. A server that ends meanwhile is no reason to
// end: each connection says so, and the member may start the server again at the same port only in another sandbox.
func (l laneCommands) pass(ctx context.Context, s sandbox.Server, noOpen bool) error {
	address := func(port int) string { return net.JoinHostPort(laneAddress, strconv.Itoa(port)) }
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address(s.Port)) // the same port, which links may name
	if err != nil {
		listener, err = config.Listen(ctx, "tcp", address(0))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be listened at: %w", laneAddress, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	url := "http://" + listener.Addr().String() + "/"
	if err := printAddress(l.App, webAddress{URL: url}); err != nil {
		return err
	}
	fmt.Fprintln(l.Stderr, "Ctrl-C ends this; the server goes on")
	if l.endsProcess && !noOpen && !l.json && l.screen(l.Stdout).Width > 0 {
		openBrowser(ctx, l.env, url)
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil { // it was interrupted, which is the way to end it
				return nil
			}
			return err
		}
		// A browser opens several at once, and keeps them.
		go func() {
			defer c.Close()
			if err := s.Connect(ctx, c.(*net.TCPConn)); err != nil {
				fmt.Fprintln(l.Stderr, muster.PlainText(err))
			}
		}()
	}
}
