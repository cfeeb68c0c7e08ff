package landing

import (
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// words are what the message of a landed commit says before the trailers of the landing. They are found in the lane:
// the owner's own message where one commit has its work, and else what the setting landing.message makes of the task.
type words struct {
	text     string   // subject and body
	trailers []string // lines; Signed-off-by is the last
}

// trailerLine matches a line of trailers that has a value.
var trailerLine = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]*: +\S.*$`)

// splitTrailers takes the trailers off a message. They are its last paragraph, if that is not the first and each of its
// lines is one. Those of muster's own are left out: only a landing writes them.
func splitTrailers(message string) (rest string, trailers []string) {
	message = strings.TrimSpace(message)
	at := strings.LastIndex(message, "\n\n")
	if at < 0 {
		return message, nil
	}
	lines := strings.Split(strings.TrimSpace(message[at:]), "\n")
	for _, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		if !trailerLine().MatchString(line) {
			return message, nil
		}
		if len(line) < len("Muster-") || !strings.EqualFold(line[:len("Muster-")], "Muster-") {
			trailers = append(trailers, line)
		}
	}
	return strings.TrimSpace(message[:at]), trailers
}

// add adds a trailer with a value, unless it is there.
func (w *words) add(line string) {
	isSame := func(other string) bool { return strings.EqualFold(other, line) }
	if trailerLine().MatchString(line) && !slices.ContainsFunc(w.trailers, isSame) {
		w.trailers = append(w.trailers, line)
	}
}

// tidyMessage returns a message without empty lines at its ends, and with one at most between two paragraphs.
func tidyMessage(s string) string {
	for strings.Contains(s, "\n\n\n") {
		s = strings.ReplaceAll(s, "\n\n\n", "\n\n")
	}
	return strings.TrimSpace(s)
}

// isTrue reports whether a value of git's config means true.
func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}
