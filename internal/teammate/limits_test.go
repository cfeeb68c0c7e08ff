package teammate

import (
	"testing"

	"muster/llm"
)

func TestRepeatsAreCounted(t *testing.T) {
	p := phase{}
	call := func(name, input, result string) {
		c := llm.Call{ID: "1", Name: name, Input: []byte(input)}
		p.calls([]llm.Call{c})
		polls := func(tool string) bool { return tool == "wait" }
		p.answered(llm.Result{ID: "1", Parts: []llm.Part{llm.Text{Text: result}}}, polls)
	}
	for range 3 {
		call("bash", `{"command":"ls"}`, "a")
	}
	if p.same != 3 {
		t.Errorf("three equal calls count %d", p.same)
	}
	call("wait", `{}`, "woken")
	call("bash", `{"command":"ls"}`, "a")
	if p.same != 4 {
		t.Errorf("a wait in between must not count; %d", p.same)
	}
	call("bash", `{"command":"ls"}`, "b")
	if p.same != 1 {
		t.Errorf("another result starts anew; %d", p.same)
	}
}
