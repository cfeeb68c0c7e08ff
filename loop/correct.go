package loop

import (
	"fmt"
	"strings"

	"muster/llm"
	"muster/llm/repair"
)

// toolNames returns the names of the tools, in their order.
func (a Agent) toolNames() []string {
	names := make([]string, len(a.Tools))
	for i, t := range a.Tools {
		names[i] = t.Spec().Name
	}
	return names
}

// choices says which tools there are, those with a name like this first.
func (a Agent) choices(name string) string {
	if len(a.Tools) == 0 {
		return "There are no tools."
	}
	return "There are: " + strings.Join(repair.Nearest(name, a.toolNames()), ", ") + "."
}

// malformedResult answers a call whose arguments could not be read. Nothing has run.
func malformedResult(c llm.Call, s llm.Spec) llm.Result {
	const most = 200 // of what was sent: enough to recognise it
	_, err := repair.Object([]byte(c.Malformed))
	return llm.ErrorResult("%s: nothing was done, because the arguments are not a JSON object: %v. You sent: %s\n"+
		"Call it again with one JSON object that fits this schema, and escape quotes, backslashes and line ends in "+
		"strings: %s", s.Name, err, shorten(c.Malformed, most), s.Schema)
}

// shorten returns text, or its beginning and end with a mark between them, about n bytes in all.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s ... %s", text[:n/2], text[len(text)-n/2:]), "")
}
