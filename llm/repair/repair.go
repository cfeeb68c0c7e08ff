// Package repair makes replies of models usable that are finished and slightly wrong: calls whose arguments are not
// quite JSON, calls by a name that a tool has elsewhere, and calls that a server has left in the text.
//
// Reply is the whole of it, and the loop of an agent calls it once for each reply, before it keeps the reply. What is
// kept is the repaired form, so a model reads in its own history how the call is written.
//
// These hold:
//   - A call is changed only where it has one reading. In doubt it stays as it is, and its model reads what was wrong.
//   - Nothing that was cut runs: a string, a list or a number that has no end makes a call unusable.
//   - A reply that needs no repair is returned as it is.
//
// What the fields of a tool mean is no matter of this package: package tool knows their types and other names.
//
// Read in this order: repair.go, name.go, json.go, text.go, leak.go.
package repair

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/llm"
)

// Reply returns r with each of its calls repaired as far as it can be. before are the messages that r answers, and
// tools the names of the tools that there are. A call whose arguments are beyond repair keeps them in Malformed.
func Reply(r llm.Reply, before []llm.Message, tools []string) llm.Reply {
	if r.Stop == llm.StopEnd {
		return withLeaked(r, before, tools)
	}
	if r.Stop != llm.StopTools { // nothing runs of a reply that was cut or refused
		return r
	}
	r.Message.Parts = slices.Clone(r.Message.Parts) // they may be somebody else's, too
	for i, part := range r.Message.Parts {
		if c, ok := part.(llm.Call); ok {
			r.Message.Parts[i] = call(c, tools)
		}
	}
	return r
}

// call repairs one call. Servers of GLM leave the arguments in the name if they do not know its format.
func call(c llm.Call, tools []string) llm.Call {
	if strings.Contains(c.Name, "<arg_key>") && string(c.Input) == "{}" && c.Malformed == "" {
		taken, rest := take("<tool_call>" + c.Name + "</tool_call>")
		if len(taken) != 1 || rest != "" {
			return c
		}
		c.Name, c.Input = taken[0].Name, taken[0].Input
	}
	said := Fold(c.Name)
	c.Name = cmp.Or(Name(c.Name, tools), c.Name)
	if c.Malformed != "" {
		if input, err := Object([]byte(c.Malformed)); err == nil {
			c.Input, c.Malformed = input, ""
		}
	}
	if c.Name == "read_file" && slices.Contains(listers, said) && c.Malformed == "" {
		c.Input = withPath(c.Input)
	}
	return c
}

// listers are the names that a tool for listing a directory has elsewhere, as Fold returns them.
var listers = []string{"ls", "listdir", "listdirectory", "listfiles"}

// withPath returns the input of a lister with the working directory as its path if it names no directory.
func withPath(input json.RawMessage) json.RawMessage {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return input
	}
	for _, v := range fields {
		if text, ok := v.(string); ok && text != "" {
			return input
		}
	}
	if fields == nil { // null
		return input
	}
	fields["path"] = "."
	with, err := json.Marshal(fields)
	if err != nil {
		return input
	}
	return with
}

// withLeaked returns r with the calls at the end of its text as calls. Their ids are made of their place in the
// conversation, as those of calls that came without one are.
func withLeaked(r llm.Reply, before []llm.Message, tools []string) llm.Reply {
	last := len(r.Message.Parts) - 1
	if last < 0 || len(r.Message.Calls()) > 0 {
		return r
	}
	text, ok := r.Message.Parts[last].(llm.Text)
	if !ok {
		return r
	}
	said, calls := leaked(text.Text, tools)
	if len(calls) == 0 {
		return r
	}
	taken := map[string]bool{}
	for _, m := range before {
		for _, c := range m.Calls() {
			taken[c.ID] = true
		}
	}
	r.Message.Parts, r.Stop = slices.Clone(r.Message.Parts[:last]), llm.StopTools
	if said != "" {
		r.Message.Parts = append(r.Message.Parts, llm.Text{Text: said})
	}
	n := 0
	for _, c := range calls {
		for c.ID == "" || taken[c.ID] {
			n++
			c.ID = fmt.Sprintf("call_%d_%d", len(before), n)
		}
		r.Message.Parts = append(r.Message.Parts, c)
	}
	return r
}
