package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Name returns s in a form that every vendor accepts as a tool's name or a call's id: letters, digits, _ and -, not
// empty, at most limit long. A changed name ends in a hash of the original, so that two different names stay
// different.
func Name(s string, limit int) string {
	ok := s != "" && len(s) <= limit
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		ok = false
		return '_'
	}, s)
	if ok {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return out[:min(len(out), limit-9)] + "_" + hex.EncodeToString(sum[:4])
}

// IDs gives the calls of one reply their ids. A server that leaves an id out or repeats one gets one made from the
// call's place in the conversation. It is the same when the request is sent again, and different from that of any
// other call.
type IDs struct {
	Turn int // the number of messages of the request
	n    int
	seen map[string]bool
}

// Next returns the id of the next call, for which the server said id.
func (d *IDs) Next(id string) string {
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.n++
	if id == "" || d.seen[id] {
		id = fmt.Sprintf("call_%d_%d", d.Turn, d.n)
	}
	d.seen[id] = true
	return id
}
