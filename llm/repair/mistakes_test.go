package repair_test

import (
	"strings"
	"testing"

	"muster/llm"
	"muster/llm/repair"
)

// The same mistake in the arguments of one tool ends the patience with a model at the third reply that has it, wherever
// it stands. Another mistake, and a call of the tool that can be read, begin anew; calls of other tools do not.
func TestMistakes(t *testing.T) {
	call := func(name, malformed string) llm.Call { return llm.Call{Name: name, Malformed: malformed} }
	cut, cutLater, missing := call("write", `{"a": "b`), call("write", `{"a": 1, "content": "xx`), call("write", `{"a" 1}`)
	missingLater := call("write", `{"a": 1, "b" 1}`)
	good, other := call("write", ""), call("read", "")
	for name, c := range map[string]struct {
		replies [][]llm.Call
		want    string
	}{
		"three times":               {[][]llm.Call{{cut}, {cut}, {cut}}, "write could not be read 3 times for the same reason: it ends in the middle"},
		"with another text":         {[][]llm.Call{{cut}, {cutLater}, {cut}}, "it ends in the middle"},
		"at another position":       {[][]llm.Call{{missing}, {missingLater}, {missing}}, "write could not be read 3 times"},
		"other tools between":       {[][]llm.Call{{cut}, {other}, {cut}, {other}, {cut}}, "3 times"},
		"beside other tools":        {[][]llm.Call{{other, cut}, {cut, other}, {other, cut}}, "3 times"},
		"a reply without calls":     {[][]llm.Call{{cut}, {cut}, nil, {cut}}, "3 times"},
		"twice":                     {[][]llm.Call{{cut}, {cut}}, ""},
		"side by side":              {[][]llm.Call{{cut, cut, cut}}, ""},
		"two mistakes in turn":      {[][]llm.Call{{cut}, {missing}, {cut}, {missing}, {cut}}, ""},
		"read well between":         {[][]llm.Call{{cut}, {cut}, {good}, {cut}, {cut}}, ""},
		"of two tools":              {[][]llm.Call{{cut}, {call("edit", `{"a": "b`)}, {cut}, {call("edit", `{"a": "b`)}}, ""},
		"one of two can be read":    {[][]llm.Call{{cut}, {cut}, {cut, good}}, ""},
		"nothing is wrong at all":   {[][]llm.Call{{good}, {good}, {good}, {good}}, ""},
		"the last of them is wrong": {[][]llm.Call{{good, cut}, {good, cut}, {good, cut}}, "3 times"},
	} {
		var m repair.Mistakes
		var err error
		for _, calls := range c.replies {
			err = m.Count(calls)
		}
		if err != nil && !strings.Contains(err.Error(), c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
