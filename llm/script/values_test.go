package script

import (
	"strings"
	"testing"

	"muster/llm"
)

const heardMail = `<mail from="bob" task_id="4" type="plan_approval_request" request_id="7f2c91aa">
look at }] this
</mail>
<mail from="carol" type="plan_approval_request" request_id="00112233">
x
</mail>
<mail from="bob">
I wait for request deadbeef.
</mail>`

func TestValues(t *testing.T) {
	for _, c := range []struct {
		name, heard, say, want string
	}{
		{"the task claimed", "<auto-claimed>\nTask #3: a\n\nIt builds on #1 b\n</auto-claimed>\nTask #9 came back",
			"${task}", "3"},
		{"the last claim", "<auto-claimed>\nTask #3: a</auto-claimed> <auto-claimed>\nTask #5: b</auto-claimed>",
			"${task}", "5"},
		{"no claim: what is named", "please claim task 8", "take ${task} now", "take 8 now"},
		{"created", "Task #2 tokenizer [pending] created.", "${task:tokenizer}", "2"},
		{"a line of the list", "#1 tokenizer rest [pending]\n#2 tokenizer [pending] waits for: #1",
			"${task:tokenizer}", "2"},
		{"briefed", "Task #4: the counter\n\nmore", "${task:the counter}", "4"},
		{"a blocker", "It builds on #1 parser (landed as abc): fine", "${task:parser}", "1"},
		{"exact before near", "#6 parse: all of it [pending]\n#7 parse [pending]\nIt builds on #8 parse: yes",
			"${task:parse}", "7"},
		{"JSON", "{\n  \"id\": 11,\n  \"subject\": \"say \\\"hi\\\"\"", `${task:say "hi"}`, "11"},
		{"the last request", heardMail, "${request}", "deadbeef"},
		{"a request in a result", "Shutdown request 0a1b2c3d sent to bob.", "${request}", "0a1b2c3d"},
		{"by member", heardMail, "${request:bob} ${request:carol}", "7f2c91aa 00112233"},
		{"by member, decided", "Request 99887766 of bob is approved.", "${request:bob}", "99887766"},
		{"me", "x", "I am ${me}", "I am alice"},
		{"captured", "file a.go line 12", "${file}:${line}", "a.go:12"},
		{"nested", heardMail + "file carol line 1", "${request:${file}}", "00112233"},
		{"plain", "x", "echo $${HOME} $(ls) ${me} $x {}", "echo ${HOME} $(ls) alice $x {}"},
		{"a value with a value's look", "file ${me} line 1", "${file}", "${me}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parsed(t, "speakers: {alice: [{cue: 'file (?P<file>\\S+) line (?P<line>\\d+)', say: '"+c.say+"'}, {say: '"+c.say+"'}]}")
			want(t, begin(t, s, "alice@demo").tell(c.heard), c.want)
		})
	}
}

func TestNumbersForTools(t *testing.T) {
	s := parsed(t, `
scenes:
  - cue: 'take (?P<n>\d+) (?P<id>\w+)'
    turns:
      - do: [{tool: {a: "${number:n}", b: "${n}", c: "${task}", d: ["x ${task}", {e: "${task:sub}"}], f: "${number:id}", g: 1.5, h: true, i: null, r: "${request}"}}]
`)
	k := begin(t, s, "alice@demo")
	want(t, k.tell("take 7 012 of Task #3 sub [pending], request 12345678"),
		`[tool {"a":7,"b":"7","c":3,"d":["x 3",{"e":3}],"f":"012","g":1.5,"h":true,"i":null,"r":"12345678"}]`)
}

func TestAValueThatIsNotKnownNamesTheLine(t *testing.T) {
	s := parsed(t, `
speakers:
  alice:
    - say: hi
    - do: [{claim_task: {task_id: "${task:parser}"}}]
`)
	k := begin(t, s, "alice@demo")
	k.tell("go")
	k.req.Messages = append(k.req.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "on"}}})
	_, err := k.model.Reply(t.Context(), k.req, func(llm.Delta) {})
	if llm.KindOf(err) != llm.BadRequest {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"script:5:", "alice", "${task:parser}"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
