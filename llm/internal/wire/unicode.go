package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// Arguments returns the input of a call as text for a server that reads it as JSON once more. It is all Unicode.
func Arguments(input json.RawMessage) string {
	return string(toUnicode(bytes.Clone(OrDefault(input, "{}"))))
}

// toUnicode returns JSON with U+FFFD in place of what is no text: half of a surrogate pair, NUL, and bytes that are not
// UTF-8. Models write the first, results of tools have the others, and a server that refuses one of them refuses each
// later request of the conversation. It may write to data.
func toUnicode(data []byte) []byte {
	const size = len(`\u0000`)
	for i := 0; ; {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 || i+next+1 >= len(data) {
			break
		}
		i += next
		r, ok := escaped(data[i:])
		if !ok {
			i += 2
			continue
		}
		if low, ok := escaped(data[i+size:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			i += 2 * size
			continue
		}
		if r == 0 || utf16.IsSurrogate(r) {
			copy(data[i:], `\ufffd`)
		}
		i += size
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// escaped returns the number of the escape \uXXXX with which data begins.
func escaped(data []byte) (r rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	for _, c := range data[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
