package proc

import (
	"net"

	"golang.org/x/sys/unix"
)

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
