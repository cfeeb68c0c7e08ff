package file

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"sync"
	"unicode/utf8"

	"muster"
	"muster/internal/durable"
)

// A line that we write ends in a checksum of the record without it: {"a":1} becomes {"a":1,"sum":"e1b2c3d4"}. Programs
// that do not know of it see one more field. A line without a checksum was written by another program and is accepted
// as it is.
const (
	sumHead = `"sum":"`
	sumTail = `"}`
	sumSize = 8 // hex digits
	sumLen  = len(sumHead) + sumSize + len(sumTail)
)

// castagnoli returns the table of the checksum. It is made when first needed, because many commands read and write no
// line.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// addChecksum returns a record, a JSON object on one line, with its checksum and a newline.
func addChecksum(rec []byte) []byte {
	line := make([]byte, 0, len(rec)+sumLen+2)
	line = append(line, rec[:len(rec)-1]...)
	if len(bytes.TrimSpace(line)) > 1 {
		line = append(line, ',')
	}
	return fmt.Appendf(line, "%s%08x%s\n", sumHead, crc32.Checksum(rec, castagnoli()), sumTail)
}

// verifyLine checks a line without its newline and returns the record, which reuses the bytes of the line. why says
// what is wrong with it, or is empty.
func verifyLine(line []byte) (rec []byte, why string) {
	if body, ours, good := splitChecksum(line); ours {
		if !good {
			return nil, "its checksum does not fit"
		}
		line[len(body)] = '}'
		return line[: len(body)+1 : len(body)+1], ""
	}
	if !utf8.Valid(line) {
		return nil, "it is not UTF-8 text"
	}
	if !isObject(line) {
		return nil, "it is not a JSON object"
	}
	return line, ""
}

// splitChecksum returns the record without its last brace, whether the line ends in a checksum of ours, and whether
// that is correct.
func splitChecksum(line []byte) (body []byte, ours, good bool) {
	at := len(line) - sumLen
	if at < 1 {
		return nil, false, false
	}
	rec, comma := bytes.CutSuffix(line[:at], []byte{','})
	sum := crc32.Update(crc32.Checksum(rec, castagnoli()), castagnoli(), []byte{'}'})
	// Nothing here allocates, because long logs have many lines.
	var fitting [sumSize]byte
	hex.Encode(fitting[:], binary.BigEndian.AppendUint32(make([]byte, 0, sumSize/2), sum))
	end := line[at:]
	fits := bytes.Equal(end[len(sumHead):len(sumHead)+sumSize], fitting[:])
	// A line of another program that has no checksum must be accepted, and a line of ours whose checksum is damaged
	// must not pass for one. So the text around the digits decides, and up to two wrong bytes in it still count as
	// ours.
	const around = sumHead + "........" + sumTail
	wrong := 0
	for i, c := range end {
		if c != around[i] && around[i] != '.' {
			wrong++
		}
	}
	switch {
	case wrong == 0:
		// As addChecksum writes it, to the byte.
		return rec, true, fits && comma == (len(bytes.TrimSpace(rec)) > 1)
	case wrong <= 2 && fits: // ours, damaged at the checksum's own name
		return nil, true, false
	}
	return nil, false, false
}

// isObject reports whether b is one JSON object.
func isObject(b []byte) bool { return len(b) > 0 && b[0] == '{' && json.Valid(b) }

// checkRecord reports why rec cannot be a record. A newline in it would make two lines of it, and neither would be one.
// One that is too long could not be read again.
func checkRecord(stream string, rec []byte) error {
	if len(rec)+sumLen+2 > durable.MaxLine {
		return muster.Errorf(muster.Invalid, "a record for %s has %d bytes: a line has at most %d", stream, len(rec),
			durable.MaxLine)
	}
	if !isObject(rec) || rec[len(rec)-1] != '}' || bytes.ContainsAny(rec, "\r\n") || !utf8.Valid(rec) {
		return muster.Errorf(muster.Invalid, "a record for %s is not a JSON object on one line", stream)
	}
	return nil
}
