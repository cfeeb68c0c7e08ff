package proc

import (
	"encoding/binary"
	"io"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// An order to start a tool is a list of texts: dir, path, way to start, limits, number of arguments, number of writable
// directories, argv, these directories, env. It goes over the connection of the tool. With the guard's end of that go
// the descriptors of the three streams, and of Extra or Ruleset of the Spec, where there is one.

// The ways to start a tool.
const (
	startPlain     = "plain"
	startNamespace = "namespace" // see Spec.HasNamespace
	startRuleset   = "ruleset"   // see Spec.Ruleset
)

// lengthSize is the size of an order's length, which goes before it.
const lengthSize = 4

// encode returns an order as it goes over a connection. No text contains a NUL byte, because startWith refuses it.
func encode(texts []string) []byte {
	body := strings.Join(texts, "\x00")
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// readOrder reads an order.
func readOrder(conn net.Conn) (texts []string, err error) {
	length := make([]byte, lengthSize)
	if _, err := io.ReadFull(conn, length); err != nil {
		return nil, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(length))
	_, err = io.ReadFull(conn, body)
	return strings.Split(string(body), "\x00"), err
}

// send sends descriptors, with a byte.
func send(conn *net.UnixConn, files []int) error {
	_, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(files...), nil)
	return err
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
