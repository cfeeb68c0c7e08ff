package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Name returns s in a form that every vendor accepts as a tool's name or a call's id: letters, digits, _
// and -, not empty, at most limit long. A changed name ends in a hash of the original, so that two
// different names stay different.
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

// OrDefault returns s, or what stands for it if it is empty.
func OrDefault(s json.RawMessage, byDefault string) json.RawMessage {
	if len(s) == 0 {
		return json.RawMessage(byDefault)
	}
	return s
}
