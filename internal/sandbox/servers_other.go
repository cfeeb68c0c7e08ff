//go:build !linux

package sandbox

import (
	"context"
	"net"

	"muster"
)

// Server is a port at which a confined program listens. This system has none.
type Server struct {
	Port, PID int
	Program   string
}

// Servers returns nothing: this system has no sandbox with a loopback of its own.
func Servers(string) []Server { return nil }

// Connect returns an error: there are no servers.
func (Server) Connect(context.Context, *net.TCPConn) error {
	return muster.Errorf(muster.Unavailable, "this system has no sandbox with a loopback of its own")
}

// dial is never called here.
func dial(string) error { return nil }

// identity returns nothing: only Linux starts sandboxes ahead.
func identity(string) string { return "" }
