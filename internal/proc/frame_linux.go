package proc

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// An order to start a tool is a list of texts: dir, path, way to start, limits, number of arguments, number of writable
// directories, argv, these directories, env. With it go the descriptors of the three streams, and of Extra or Ruleset
// of the Spec, where there is one.

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

// readOrder reads an order with its descriptors, which the caller closes.
func readOrder(conn *net.UnixConn) (texts []string, files []int, err error) {
	length := make([]byte, lengthSize)
	if files, err = receive(conn, length); err != nil {
		return nil, files, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(length))
	_, err = io.ReadFull(conn, body)
	return strings.Split(string(body), "\x00"), files, err
}

// send sends data. Descriptors go with the first byte.
func send(conn *net.UnixConn, data []byte, files ...int) error {
	n, _, err := conn.WriteMsgUnix(data, unix.UnixRights(files...), nil)
	if err == nil && n < len(data) { // the guard may have answered and closed already
		_, err = conn.Write(data[n:])
	}
	return err
}

// receive fills data, and returns the descriptors that come with it.
func receive(conn *net.UnixConn, data []byte) (files []int, err error) {
	oob := make([]byte, unix.CmsgSpace(mostFiles*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, err
	}
	controls, err := unix.ParseSocketControlMessage(oob[:oobn])
	for _, c := range controls {
		fds, errRights := unix.ParseUnixRights(&c)
		files, err = append(files, fds...), errors.Join(err, errRights)
	}
	_, errRead := io.ReadFull(conn, data[n:])
	return files, errors.Join(err, errRead)
}
