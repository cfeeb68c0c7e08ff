package loop

import (
	"muster/internal/text"
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

// maxChoices is how many tools are named to a model that calls one that there is not. Its request has the others.
const maxChoices = 5

// choices says which tools there are, those with a name like this first.
func (a Agent) choices(name string) string {
	if len(a.Tools) == 0 {
		return "There are no tools."
	}
	return "There are: " + text.List(repair.Nearest(name, a.toolNames()), maxChoices) + "."
}

// malformedResult answers a call whose arguments could not be read. Nothing has run.
func malformedResult(c llm.Call, s llm.Spec) llm.Result {
	const most = 200 // of what was sent: enough to recognise it
	_, err := repair.Object([]byte(c.Malformed))
	sent := c.Malformed
	if len(sent) > most {
		sent = text.FirstBytes(sent, most/2) + " ... " + text.LastBytes(sent, most/2)
	}
	return llm.ErrorResult("%s: nothing was done, because the arguments are not a JSON object: %v. You sent: %s\n"+
		"Call it again with one JSON object that fits this schema, and escape quotes, backslashes and line ends in "+
		"strings: %s", s.Name, err, sent, s.Schema)
}
