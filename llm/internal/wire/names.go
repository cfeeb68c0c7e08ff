package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Name makes s one that every vendor takes as a tool's name or a call's id:
// letters, digits, _ and -, not empty, at most limit long. What is changed gets a
// hash of the original, so that two different ones stay two.
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

// IDs gives the calls of one reply their ids. A server that leaves an id out, or
// repeats one, gets one made from the call's place in the conversation: the same
// if it is asked again, and no other call's.
type IDs struct {
	Turn int // the number of messages of the request
	n    int
	seen map[string]bool
}

// Take is the id for the next call, for which the server said id.
func (d *IDs) Take(id string) string {
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
