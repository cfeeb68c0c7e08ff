// Package recording keeps what happened in a run, so that it can be watched and played again.
//
// A recording is a file of JSON lines (Line). It begins with a Header. A Call is a request to a model with what came of
// it; a request repeats what was said before, so a call has only what is new in it. A Step says who was next to do
// something that others in the team can see. Events and landings are for people who watch. A run that came to its end
// has an End, and then the signature of the user who has recorded it.
//
// A Recorder writes the file while a run goes on, and a Player plays a file again: both are a Tape, which package team
// puts around its models and between the steps of its members. Turns puts the steps into one order, which is what makes
// a run repeatable: the replies of the models, and the order of the steps, are all that decides the path of a run. What
// has other names in every run (ids, commits, times, directories) is matched by a matcher.
//
// Whatever a file holds, Read allocates no more than a few times the size of the file, and runs nothing. What of a
// recording may be run is decided by package cli, which asks the user.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/durable"
	"muster/llm"
)

// version is the version of the format. A file with another one is refused.
const version = 1

// The limits of a recording that is read.
const (
	maxFile = 512 << 20
	maxLine = 64 << 20
)

// Line is one line of a recording. One of its fields is set.
type Line struct {
	Header    *Header       `json:"muster_recording,omitempty"`
	Prefix    *Prefix       `json:"prefix,omitempty"`
	Call      *Call         `json:"call,omitempty"`
	Step      *Step         `json:"step,omitempty"`
	Event     *muster.Event `json:"event,omitempty"`
	Landing   *Landing      `json:"landing,omitempty"`
	End       *End          `json:"end,omitempty"`
	Signature string        `json:"signature,omitempty"`
}

// Header says what was run.
type Header struct {
	Version int             `json:"version"`
	Program string          `json:"program"` // the version of muster
	Root    string          `json:"root"`    // of the repository
	Run     muster.Run      `json:"run"`
	Tasks   []muster.Task   `json:"tasks,omitempty"`   // that were on the board before
	Options json.RawMessage `json:"options,omitempty"` // the settings that requests depend on
}

// Prefix is what the requests of a member begin with.
type Prefix struct {
	ID     string     `json:"id"`
	System []string   `json:"system"`
	Tools  []llm.Spec `json:"tools"`
}

// Call is a request to a model, and what came of it: a reply or an error.
type Call struct {
	Member   muster.Name   `json:"member"`
	Turn     int           `json:"turn"`              // of the conversation, from 1
	Of       string        `json:"of,omitempty"`      // "sub" for a subagent of the member
	Purpose  string        `json:"purpose,omitempty"` // of the request: what is no turn of the member's own
	Prefix   string        `json:"prefix"`            // the id of one
	Kept     int           `json:"kept"`              // messages of the call before of the same conversation
	Messages []llm.Message `json:"messages"`          // those that follow
	Reply    *llm.Reply    `json:"reply,omitempty"`
	Error    *Failure      `json:"error,omitempty"`
	At       float64       `json:"at"`      // Unix seconds of its end
	Seconds  float64       `json:"seconds"` // how long it took
}

// Failure is an error of a model.
type Failure struct {
	Kind llm.Kind `json:"kind"`
	Text string   `json:"text"`
}

// Landing is a commit that has landed, with its files.
type Landing struct {
	Task    muster.TaskID `json:"task"`
	Subject string        `json:"subject"`
	Commit  string        `json:"commit"`
	Files   []string      `json:"files"`
}

// End is how a run ended.
type End struct {
	Code int    `json:"code"`
	Text string `json:"text"`
}

// Recording is a recording as it was read.
type Recording struct {
	Header
	Prefixes map[string]*Prefix
	Calls    []*Call
	Steps    []Step
	Events   []muster.Event
	Landings []Landing
	End      *End // nil: the run was cut off
	// IsOwn says that the user's own program has written the file.
	IsOwn bool
}

// Read reads a recording. verify reports whether a signature is the user's own one of a text. A last line that is not
// whole is left out: the process was killed while it wrote. Errors: NotFound, Invalid.
func Read(path string, verify func(text []byte, signature string) bool) (*Recording, error) {
	data, err := durable.ReadRegular(path, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, muster.Errorf(muster.NotFound, "there is no recording %s", path).
			WithHint("make one: muster run --record FILE \"GOAL\"")
	}
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "the recording %s cannot be read: %w", path, err)
	}
	rec, line, err := parse(data, verify)
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "%s:%d: this is no recording that can be read: %w", path, line, err).
			WithHint("make one: muster run --record FILE \"GOAL\"")
	}
	return rec, nil
}

// errNoHeader is the error for a file that does not begin as a recording does.
var errNoHeader = errors.New("it does not begin with what was recorded")

// parse reads the lines of a recording. line is the one with the error.
func parse(data []byte, verify func([]byte, string) bool) (rec *Recording, line int, err error) {
	rec = &Recording{Prefixes: map[string]*Prefix{}}
	for rest := data; ; {
		line++
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			break
		}
		text := rest[:end]
		if len(text) > maxLine {
			return nil, line, errors.New("the line is too long")
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, line, err
		}
		if l.Signature != "" {
			rec.IsOwn = len(rest) == end && verify(data[:len(data)-end], l.Signature)
		} else if err := rec.add(l); err != nil {
			return nil, line, err
		}
		rest = rest[end:]
	}
	if rec.Version == 0 {
		return nil, 1, errNoHeader
	}
	return rec, 0, nil
}

// add adds a line to a recording.
func (r *Recording) add(l Line) error {
	if (l.Header == nil) == (r.Version == 0) {
		return errNoHeader
	}
	switch {
	case l.Header != nil:
		r.Header = *l.Header
		if r.Version != version {
			return errors.New("it is of another version of muster")
		}
		// It is replaced in all that is run, so it must be nothing that other words have in them.
		if r.Root != "" && (!filepath.IsAbs(r.Root) || len(r.Root) < 3) {
			return errors.New("the directory of its repository makes no sense")
		}
	case l.Prefix != nil:
		r.Prefixes[l.Prefix.ID] = l.Prefix
	case l.Call != nil:
		c := l.Call
		if c.Turn < 1 || c.Kept < 0 || r.Prefixes[c.Prefix] == nil || (c.Reply == nil) == (c.Error == nil) {
			return errors.New("the call makes no sense")
		}
		r.Calls = append(r.Calls, c)
	case l.Step != nil:
		r.Steps = append(r.Steps, *l.Step)
	case l.Event != nil:
		r.Events = append(r.Events, *l.Event)
	case l.Landing != nil:
		r.Landings = append(r.Landings, *l.Landing)
	case l.End != nil:
		r.End = l.End
	}
	return nil
}

// Commands returns what a replay of the recording would do besides asking models: its set-up and check, and all calls
// of tools, each once and whole. A file that is written may be run by a command later, so nothing is left out.
func (r *Recording) Commands() (all []string) {
	seen := map[string]bool{}
	add := func(who, what string) {
		if line := who + ": " + what; what != "" && !seen[line] {
			seen[line] = true
			all = append(all, line)
		}
	}
	add("set-up", r.Run.Setup)
	if len(r.Run.Checks) == 0 {
		add("check", r.Run.Check)
	}
	for _, c := range r.Run.Checks {
		add("check "+c.Name, c.Command)
	}
	for _, c := range r.Calls {
		if c.Reply == nil {
			continue
		}
		for _, call := range c.Reply.Message.Calls() {
			add(string(c.Member)+" "+call.Name, string(call.Input))
		}
	}
	return all
}
