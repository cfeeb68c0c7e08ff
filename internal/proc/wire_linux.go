package proc

import (
	"encoding/binary"
	"errors"
	"io"
)

// kind is the kind of a frame. Over the socket between a program and its guard go frames of a length, a kind and a
// body. The descriptors of a start travel with its header.
type kind uint32

const (
	frameStart   kind = iota + 1 // to the guard: call, dir, path, argv, env; descriptors: stdin, stdout and stderr
	frameKill                    // to the guard: call
	frameStarted                 // from the guard: call, pid
	frameFailed                  // from the guard: call, errno
	frameExited                  // from the guard: call, exit status
)

// headerSize is the size of a frame's length and kind.
const headerSize = 8

// body is the body of a frame, written or read from its front.
type body []byte

// uint appends a number.
func (b body) uint(n uint64) body { return binary.LittleEndian.AppendUint64(b, n) }

// text appends a string, after its length.
func (b body) text(s string) body { return append(b.uint(uint64(len(s))), s...) }

// list appends strings, after their number.
func (b body) list(l []string) body {
	b = b.uint(uint64(len(l)))
	for _, s := range l {
		b = b.text(s)
	}
	return b
}

// header returns the header of a frame with this body.
func (b body) header(k kind) []byte {
	h := binary.LittleEndian.AppendUint32(nil, uint32(len(b)))
	return binary.LittleEndian.AppendUint32(h, uint32(k))
}

// errFrame says that a body ends before it should.
var errFrame = errors.New("broken frame")

// takeUint takes a number from the front.
func (b *body) takeUint() (n uint64, err error) {
	if len(*b) < 8 {
		return 0, errFrame
	}
	n = binary.LittleEndian.Uint64(*b)
	*b = (*b)[8:]
	return n, nil
}

// takeText takes a string from the front.
func (b *body) takeText() (string, error) {
	n, err := b.takeUint()
	if err != nil || n > uint64(len(*b)) {
		return "", errFrame
	}
	s := string((*b)[:n])
	*b = (*b)[n:]
	return s, nil
}

// takeList takes a list of strings from the front.
func (b *body) takeList() (l []string, err error) {
	n, err := b.takeUint()
	if err != nil || n > uint64(len(*b)) {
		return nil, errFrame
	}
	l = make([]string, n)
	for i := range l {
		if l[i], err = b.takeText(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// readFrame reads one frame. head reads its first bytes, where the guard receives the descriptors.
func readFrame(r io.Reader, head func([]byte) error) (k kind, b body, err error) {
	h := make([]byte, headerSize)
	if err := head(h); err != nil {
		return 0, nil, err
	}
	b = make(body, binary.LittleEndian.Uint32(h))
	_, err = io.ReadFull(r, b)
	return kind(binary.LittleEndian.Uint32(h[4:])), b, err
}
