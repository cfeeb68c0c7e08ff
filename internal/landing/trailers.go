package landing

import (
	"strconv"
	"strings"

	"muster"
)

// Trailers returns what the message of a commit says of the landing that made it. ok is false where none has.
func Trailers(message string) (task muster.TaskID, landed muster.Landed, ok bool) {
	m := landedTrailers().FindStringSubmatch(strings.TrimRight(message, "\n") + "\n")
	if m == nil {
		return 0, landed, false
	}
	id, err := strconv.Atoi(m[1])
	return muster.TaskID(id), muster.Landed{Receipt: m[2], Check: m[3], Review: m[4]}, err == nil
}
