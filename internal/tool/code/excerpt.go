package code

import (
	"fmt"
	"strings"

	"muster/internal/text"
	"muster/llm"
)

// noOutput is the answer to a command that has printed nothing.
const noOutput = "[exit 0, no output]"

const (
	excerptEnds = 2   // lines of the beginning and of the end of an output that is not shown whole
	excerptLine = 200 // bytes of a line
)

// Excerpt returns what people are shown of the answer to a call of bash: the first and the last lines of the output. It
// is "" for other calls, and for a command that has printed nothing.
func Excerpt(c llm.Call, answer string) string {
	answer = strings.Trim(answer, "\n")
	if AsPatch(c).Name != "bash" || answer == noOutput {
		return ""
	}
	lines := strings.Split(answer, "\n")
	if more := len(lines) - 2*excerptEnds; more > 1 {
		end := lines[len(lines)-excerptEnds:]
		lines = append(lines[:excerptEnds:excerptEnds], fmt.Sprintf("... %d more lines", more))
		lines = append(lines, end...)
	}
	for i := range lines {
		lines[i] = text.CutBytes(lines[i], excerptLine)
	}
	return strings.Join(lines, "\n")
}
