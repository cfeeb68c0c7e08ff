package web

import (
	"net/http"
	"strings"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// control is what the page does with the team as a whole. Processes are started by the functions of the server: this
// package knows none.
type control struct{ *Server }

// can is what can be done with the team as it stands, so that the page offers nothing else. It is a hint alone: what
// has changed meanwhile is found out when somebody does it.
type can struct {
	Start  bool `json:"start"` // with a goal; a team that stopped goes on with it too
	Resume bool `json:"resume"`
	Stop   bool `json:"stop"`
	Merge  bool `json:"merge"` // if there is something to take
}

func (c control) can(o view.Overview) can {
	_, isStopped := o.Run.Left(o.Tasks)
	isIdle := c.Launch != nil && !o.Alive
	return can{Start: isIdle, Resume: isIdle && isStopped, Stop: o.Alive, Merge: c.Merge != nil}
}

// told is what the page shows when something was done.
type told struct {
	Text string `json:"text"`
}

// errNotHere is the error of a server that was given no function to do it with.
func errNotHere() error {
	return muster.Errorf(muster.Invalid, "this page cannot do that").WithHint("use the command line: muster --help")
}

func (c control) start(r *http.Request) (any, error) {
	var in struct {
		Goal string `json:"goal"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	goal := strings.TrimSpace(in.Goal)
	if goal == "" { // it would go on with a team that stopped
		return nil, muster.Errorf(muster.Invalid, "the goal is empty")
	}
	return c.launch(r, goal)
}

func (c control) resume(r *http.Request) (any, error) {
	if err := decode(r, new(struct{})); err != nil {
		return nil, err
	}
	return c.launch(r, "")
}

// launch brings the team to work. Of two pages that do so at once the team takes one, and the other is told so.
func (c control) launch(r *http.Request, goal string) (any, error) {
	if c.Launch == nil {
		return nil, errNotHere()
	}
	// There is nothing to say: the page shows the team at work, perhaps before this answer comes.
	return told{}, c.Launch(r.Context(), goal)
}

// stop stops the team, and answers when no process runs it any more.
func (c control) stop(r *http.Request) (any, error) {
	if err := decode(r, new(struct{})); err != nil {
		return nil, err
	}
	// The members end at once and not after their work, as at Ctrl-C. Their records stay, for resume.
	if _, err := team.Halt(r.Context(), c.team); err != nil {
		return nil, err
	}
	return told{"the team has stopped; its state is kept"}, nil
}

// merge takes the work to the user's branch. What would lose something of theirs is refused there.
func (c control) merge(r *http.Request) (any, error) {
	if err := decode(r, new(struct{})); err != nil {
		return nil, err
	}
	if c.Merge == nil {
		return nil, errNotHere()
	}
	text, err := c.Merge(r.Context())
	return told{text}, err
}

// work says what merge would take. The page asks when tasks have landed and not with each state: git is slow.
func (c control) work(r *http.Request) (any, error) {
	return team.TargetOf(c.team).Untaken(r.Context())
}
