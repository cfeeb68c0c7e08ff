package code

import (
	"fmt"
	"strings"

	"muster/internal/text"
	"muster/llm"
)

const (
	excerptEnds  = 2    // lines of the beginning and of the end of an output that is not shown whole
	excerptLine  = 200  // bytes of a line
	excerptBytes = 2000 // of the changed part of a file
)

// Excerpt returns what people are shown of the answer to a call: of the output of a command the first and the last
// lines, of an edit the changed part of the file, for Edit.Locate. It is "" for other tools.
func Excerpt(c llm.Call, answer string) string {
	switch AsPatch(c).Name {
	case "bash":
		lines := strings.Split(strings.Trim(answer, "\n"), "\n")
		if more := len(lines) - 2*excerptEnds; more > 1 {
			end := lines[len(lines)-excerptEnds:]
			lines = append(lines[:excerptEnds:excerptEnds], fmt.Sprintf("... %d more lines", more))
			lines = append(lines, end...)
		}
		for i := range lines {
			lines[i] = text.CutBytes(lines[i], excerptLine)
		}
		return strings.Join(lines, "\n")
	case "edit_file":
		if len(answer) > excerptBytes { // without a part of a line
			answer = answer[:excerptBytes]
			answer = answer[:strings.LastIndexByte(answer, '\n')+1]
		}
		return answer
	}
	return ""
}
