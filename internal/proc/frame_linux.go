package proc

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"
)

// frame is what goes over the socket between a program and its guard, in either direction. On the wire it is the length
// of its body, as four bytes, and its body: kind, call and arguments, separated by NUL bytes. No argument can contain
// one, because startWith refuses it. The descriptors of a start travel with the length.
type frame struct {
	kind string
	call uint64
	args []string
}

// The kinds of frames, with their arguments.
const (
	// To the guard: dir, path, limits, number of arguments, number of writable directories, argv, these directories,
	// env; descriptors: its three streams, and the ruleset that it is put under, where there is one.
	frameStart   = "start"
	frameKill    = "kill"    // to the guard: nothing
	frameStarted = "started" // from the guard: pid
	frameFailed  = "failed"  // from the guard: errno
	frameExited  = "exited"  // from the guard: exit status, the limits that it has reached
)

// lengthSize is the size of a frame's length.
const lengthSize = 4

// errFrame says that a body is not that of a frame.
var errFrame = errors.New("broken frame")

// encode returns the frame as it goes over the socket.
func (f frame) encode() []byte {
	body := strings.Join(append([]string{f.kind, strconv.FormatUint(f.call, 10)}, f.args...), "\x00")
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// number returns argument i as a number, or 0.
func (f frame) number(i int) int {
	if i >= len(f.args) {
		return 0
	}
	n, _ := strconv.Atoi(f.args[i]) // only the other side of this very program writes it
	return n
}

// readFrame reads one frame. head reads its length, where the guard receives the descriptors.
func readFrame(r io.Reader, head func([]byte) error) (f frame, err error) {
	length := make([]byte, lengthSize)
	if err := head(length); err != nil {
		return f, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(length))
	if _, err := io.ReadFull(r, body); err != nil {
		return f, err
	}
	fields := strings.Split(string(body), "\x00")
	if len(fields) < 2 {
		return f, errFrame
	}
	f.kind, f.args = fields[0], fields[2:]
	f.call, err = strconv.ParseUint(fields[1], 10, 64)
	return f, err
}
