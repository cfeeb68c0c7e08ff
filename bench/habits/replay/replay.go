// Package replay sends the calls of a recorded session through muster's own tools, in a directory with the repository
// as it was at the last commit before the session. It runs no command: only calls that read, search, write and edit
// files are sent.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/bench/habits/session"
	"muster/internal/compact"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/loop"
)

// Verdict is what became of a call.
type Verdict string

// The verdicts. The first six are of calls that muster's tools got.
const (
	Same     Verdict = "accepted, as in the session"
	Cut      Verdict = "accepted, but with less than in the session, and says so"
	Done     Verdict = "accepted, nothing to compare"
	Other    Verdict = "accepted with another meaning"
	Refused  Verdict = "refused"
	AsBefore Verdict = "refused, as in the session"

	NoArguments Verdict = "not sent: the export does not have the arguments"
	Unplaced    Verdict = "not sent: where the session worked is not known"
	Drifted     Verdict = "not compared: the file is not as the session saw it"
)

// Outcome is a call with its verdict.
type Outcome struct {
	Call    *session.Call
	Verdict Verdict
	Said    string // of a refused call: what the model would read
}

// Report is what became of the calls of a session.
type Report struct {
	Outcomes  []Outcome
	Distances []int // tokens of results from the last read of a file to its edit, with the read itself
	Commands  int   // that were not run
}

// Session replays a session whose repository has a bare git directory. dir is an empty directory for its files.
func Session(ctx context.Context, s session.Session, agent string, start time.Time, gitDir, dir string) (
	Report, error) {
	git := repository(gitDir)
	commit, err := git.before(ctx, start)
	if err != nil {
		return Report{}, err
	}
	all, err := git.files(ctx, commit)
	if err != nil {
		return Report{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Report{}, err
	}
	defer root.Close()
	if err := git.write(ctx, all, root); err != nil {
		return Report{}, err
	}
	files := map[string]bool{}
	for _, b := range all {
		files[b.path] = true
	}
	return Calls(ctx, s, agent, root, files)
}

// IsNone reports whether the stored history has no commit from before the session.
func IsNone(err error) bool { return errors.Is(err, errNone) }

// player replays the calls of one session.
type player struct {
	root   *os.Root
	agent  string
	places places
	tools  []llm.Tool
	stale  map[string]bool // files that the session changed by calls that could not be sent
	report Report
	tokens int
	reads  map[string]int // of each file: the tokens before its last read
}

// lane is the directory of the tools.
type lane struct{ dir string }

// Workdir returns the directory.
func (l lane) Workdir(context.Context) (code.Workdir, error) {
	return code.Workdir{Dir: l.dir, Writable: true}, nil
}

// Calls replays the calls of a session in a directory that has the files.
func Calls(ctx context.Context, s session.Session, agent string, root *os.Root, files map[string]bool) (Report, error) {
	p := &player{root: root, agent: agent, stale: map[string]bool{}, reads: map[string]int{}}
	var calls []*session.Call
	for _, e := range s.Events {
		if e.Call != nil {
			calls = append(calls, e.Call)
		}
	}
	p.places = find(calls, files)
	for _, t := range code.Tools(lane{root.Name()}, nil, nil, code.Options{Patches: true, Environ: []string{"PATH="}}) {
		switch t.Spec().Name {
		case "bash", "check_background", "stop_background":
		default:
			p.tools = append(p.tools, t)
		}
	}
	for _, e := range s.Events {
		if e.IsSummary() {
			clear(p.reads)
		}
		if e.Call == nil {
			continue
		}
		if err := p.call(ctx, e.Call, e.Side); err != nil {
			return p.report, err
		}
	}
	return p.report, nil
}

// call replays a call, and counts the tokens of its result: those of muster's, or else those of the export. The results
// of a subagent's calls are none of the conversation.
func (p *player) call(ctx context.Context, c *session.Call, ofSubagent bool) error {
	size := compact.TextTokens(c.Result)
	switch c.Does {
	case session.Shell:
		p.report.Commands++
	case session.Read, session.Edit, session.Write, session.Search:
		if c.Refused {
			break
		}
		shown, o, err := p.send(ctx, c)
		if err != nil {
			return err
		}
		p.report.Outcomes = append(p.report.Outcomes, o)
		if shown != "" {
			size = compact.TextTokens(shown)
		}
		if !ofSubagent {
			p.measure(c, o)
		}
	}
	if !ofSubagent {
		p.tokens += size
	}
	return nil
}

// measure notes where a file was read, and how far back that is when it is edited.
func (p *player) measure(c *session.Call, o Outcome) {
	for _, recorded := range c.Paths {
		name, ok := p.places.in(recorded)
		if !ok {
			continue
		}
		switch {
		case c.Does == session.Read && !c.Failed && o.Verdict != Refused && o.Verdict != NoArguments:
			p.reads[name] = p.tokens
		case c.Does == session.Edit && !c.Failed:
			if at, ok := p.reads[name]; ok {
				p.report.Distances = append(p.report.Distances, p.tokens-at)
			}
		}
	}
}

// send sends a call to the tools and compares what they did with the record.
func (p *player) send(ctx context.Context, c *session.Call) (shown string, o Outcome, err error) {
	dir := p.root.Name()
	input, ok := arguments(p.agent, c, func(path string) string {
		return p.places.here(path, dir, p.agent == "Claude Code")
	})
	if !ok {
		p.follow(c)
		return "", Outcome{Call: c, Verdict: NoArguments}, nil
	}
	before := p.content(c)
	if chunks := chunksOf(c.Args["diff"]); len(chunks) == 1 && strings.Count(before, chunks[0].old) > 1 {
		p.follow(c) // the call had more lines than the diff shows
		return "", Outcome{Call: c, Verdict: NoArguments}, nil
	}
	if !p.places.hasRoot && slices.ContainsFunc(append(c.Paths, c.Args["path"]), isAbs) {
		return "", Outcome{Call: c, Verdict: Unplaced}, nil
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", o, err
	}
	result, err := p.run(ctx, llm.Call{ID: "1", Name: cmp.Or(said[c.Tool], c.Tool), Input: data})
	if err != nil {
		return "", o, err
	}
	o = Outcome{Call: c, Verdict: p.judge(c, before, result)}
	if c.Args["isRegexp"] == "false" && !result.IsError {
		input["query"] = regexp.QuoteMeta(c.Args["query"])
		delete(input, "isRegexp")
		if data, err = json.Marshal(input); err != nil {
			return "", o, err
		}
		literal, err := p.run(ctx, llm.Call{ID: "1", Name: c.Tool, Input: data})
		if err != nil {
			return "", o, err
		}
		if o.Verdict = Same; literal.Text() != result.Text() {
			o.Verdict = Other
		}
	}
	if result.IsError {
		o.Said = strings.ReplaceAll(result.Text(), dir, "LANE")
	}
	if o.Verdict != Same && o.Verdict != AsBefore && (c.Does == session.Edit || c.Does == session.Write) {
		p.follow(c)
	}
	return result.Text(), o, nil
}

// run lets a model say the call, and returns the result.
func (p *player) run(ctx context.Context, c llm.Call) (llm.Result, error) {
	talk := loop.NewMemory(llm.Request{})
	talk.Say(llm.Text{Text: "go"})
	a := loop.Agent{Model: &speaker{call: c}, Conversation: talk, Tools: p.tools}
	if _, err := a.Run(ctx); err != nil {
		return llm.Result{}, err
	}
	for _, m := range talk.Messages() {
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok {
				return r, nil
			}
		}
	}
	return llm.Result{}, errors.New("a call has no result")
}

// speaker is a model that makes one call and then stops.
type speaker struct {
	call  llm.Call
	asked bool
}

// Reply makes the call, or ends.
func (s *speaker) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	if s.asked {
		return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: "done"}}},
			Stop: llm.StopEnd}, nil
	}
	s.asked = true
	return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{s.call}}, Stop: llm.StopTools}, nil
}

// content returns the content of the file of a call, or "".
func (p *player) content(c *session.Call) string {
	if len(c.Paths) == 0 {
		return ""
	}
	return p.file(c.Paths[0])
}

// file returns the content of a file that the session named, or "".
func (p *player) file(recorded string) string {
	name, ok := p.places.in(recorded)
	if !ok {
		return ""
	}
	data, err := p.root.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(data)
}

// follow brings the files to where the session had them after a call that was not done as it was there. A file of which
// the export does not say enough is stale from then on.
func (p *player) follow(c *session.Call) {
	if c.Failed || c.Does != session.Edit && c.Does != session.Write {
		return
	}
	for _, recorded := range c.Paths {
		name, ok := p.places.in(recorded)
		if !ok {
			continue
		}
		content, known := c.Args["content"], c.Does == session.Write && c.Args["content"] != ""
		if chunks := chunksOf(c.Args["diff"]); !known && len(chunks) > 0 && !p.stale[name] {
			content, known = apply(p.file(recorded), chunks)
		}
		p.stale[name] = !known || put(p.root, path.Clean(name), content) != nil
	}
}
