// Package script is a scripted model, for tests and demonstrations without a vendor. Load reads a Script
// from a file; its Model says who says what when, with values such as task and request ids filled in.
//
// Compatibility: scripts that are valid today stay valid and play the same.
//
// The file is YAML (so JSON does too):
//
//	speakers:                       # what a member says from its beginning, by name, else by role
//	  lead:
//	    - say: Two tasks.
//	      do:                       # calls of one reply, in order
//	        - task_create: {subject: tokenizer}
//	        - task_create: {subject: counter, blocked_by: [tokenizer]}
//	    - do: [{wait: {}}]
//	      until: All done           # again and again until what comes back matches
//	    - say: Both have landed.
//	scenes:                         # what anybody says when something comes in
//	  - cue: '<mail from="(?P<who>\w+)"[^>]* type="plan_approval_request"'
//	    who: [lead]                 # names or roles; left out: everybody
//	    turns:
//	      - do: [{review_plan: {request_id: "${request:${who}}", approve: true}}]
//	  - cue: '(?m)^Task #\d+: tokenizer$'
//	    turns:
//	      - think: Small functions first.
//	        wait: 200ms             # how long it thinks
//	        do: [{write_file: {path: tokenizer.go, content: "package words\n"}}]
//	      - do: [{complete_task: {task_id: "${task}", summary: Splits at spaces.}}]
//	      - cue: came back          # only if what came in since the turn before matches
//	        do: [{bash: {command: go test ./...}}]
//	      - say: Done.
//	        stop: end               # or max_tokens, refused; turns with calls have none
//	        error: {kind: overloaded, after: 1s, times: 2}   # fails twice before it replies
//
// What a turn of the conversation brings in (text, and the results of calls) is matched against the cues of
// the scenes, which are Go regular expressions. A match enters the scene; when its turns are played,
// whoever spoke before goes on where it was. One message can enter several scenes, in the order in which
// they occur in it, and one scene several times if its named groups capture different things: whether two
// mails come together or one by one makes no difference. When nothing is left, a member says so and ends
// its turn.
//
// ${NAME} stands for what a named group captured, or for one of these; a string that is nothing but a value
// of the first two lines becomes a number, as tools want it:
//
//	${task}, ${task:SUBJECT}        the task claimed last; the task with that subject
//	${number:NAME}                  what a group captured
//	${request}, ${request:NAME}     the last request's id; the last one of that member
//	${me}                           the speaker
//
// A value may be nested in another's name, as above. $${NAME} is left as ${NAME}. In a {...} of YAML a
// value needs quotes.
//
// The speaker is Request.CacheKey up to the @; a subagent with the key alice@team/sub is alice/sub, of the
// role subagent. What is said next is found by walking the conversation that the request holds, so the
// model keeps no state and a member that was killed goes on at the right line. (The one exception: how
// often a turn has failed is counted in memory.)
package script

import "muster/llm"

// Script is a script that was read. It never changes, so several models may play it.
type Script struct {
	file     string
	speakers map[string]list[turn]
	scenes   list[scene]
}

// scene is what is said when its cue comes in.
type scene struct {
	Cue   cue
	Who   []string // names or roles; empty: everybody
	Turns list[turn]
}

// turn is one reply. The values in its texts are still to be filled in.
type turn struct {
	Cue   cue // the turn is skipped unless it matches
	Until cue // the turn is repeated until it matches
	Say   string
	Think string
	Do    list[call]
	Wait  duration
	Stop  placed[llm.Stop]
	Error *failure

	line, column int
}

// call is one call of a reply. The values in its input are still to be filled in.
type call struct {
	tool  string
	input map[string]any
}

// failure is an error that a turn ends in before it replies.
type failure struct {
	Kind  llm.Kind
	After duration
	Times placed[int]
}

// Model returns a model that plays s.
func (s *Script) Model() llm.Model { return s.ModelAt(1) }

// ModelAt returns a model that plays s with every wait multiplied by pace; 0 leaves the waits out.
func (s *Script) ModelAt(pace float64) llm.Model {
	return &model{script: s, pace: pace, failed: map[attempt]int{}}
}
