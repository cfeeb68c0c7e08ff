package web

import (
	"net/http"
	"strings"

	"muster"
	"muster/internal/face"
	"muster/internal/view"
)

// shownEvents is with how many of the last events the timeline of a page begins.
const shownEvents = 500

// state is how the team stands, as the page draws it. The stream of events that begins at From has what has happened
// before the state was read, and what happens after.
type state struct {
	HasTeam bool    `json:"has_team"` // a run has begun here at some time
	Now     float64 `json:"now"`      // Unix seconds; the page counts on from there
	view.Overview
	Members []member    `json:"members"`
	Tasks   []card      `json:"tasks"`
	Needs   []view.Need `json:"needs"`
	Spent   string      `json:"spent"` // of the budget, in words
	Root    string      `json:"root"`
	From    muster.Pos  `json:"from"`
	Can     can         `json:"can"` // what can be done with the team now
	// IsReplay says that the page shows the past alone: it opens the replay at once, follows nothing, and offers
	// nothing that would be refused.
	IsReplay bool `json:"is_replay,omitempty"`
	// IsPhone says that the page is on a paired phone, and offers only what a phone may do.
	IsPhone bool `json:"is_phone,omitempty"`
	// SharedAt is when muster share made a file of the page, in Unix seconds; 0: the page has a server.
	SharedAt float64 `json:"shared_at,omitempty"`
	// Unreadable are tasks whose records cannot be read.
	Unreadable int `json:"unreadable"`
	// Words are what the page calls states.
	Words view.Words `json:"words"`
}

// member is a member as the page shows it.
type member struct {
	Name   muster.Name         `json:"name"`
	Of     muster.Name         `json:"works_for,omitempty"` // of a helper: the member for which it works
	Label  string              `json:"label"`               // its name in the list
	Role   string              `json:"role"`
	Status muster.MemberStatus `json:"status"`
	Look   view.Look           `json:"look"` // also the class of its row
	// Does begins with the look, unless it works.
	Does  string        `json:"does"`
	Since float64       `json:"since"`
	Turns int           `json:"turns"`
	Cost  string        `json:"cost"`
	Model string        `json:"model"`
	Task  muster.TaskID `json:"task"`
}

// card is a task as the board shows it. The rest of the task is read when somebody looks at it: a thousand tasks with
// all that they say are too much for each change of one.
type card struct {
	ID        muster.TaskID   `json:"id"`
	Subject   string          `json:"subject"`
	Label     string          `json:"label"`
	Owner     muster.Name     `json:"owner,omitempty"`
	DependsOn []muster.TaskID `json:"depends_on"`
	BlockedBy []muster.TaskID `json:"blockedBy"`
	Attempts  int             `json:"attempts,omitempty"`
	Returned  string          `json:"returned,omitempty"`
	Commit    string          `json:"commit,omitempty"`
	UpdatedAt float64         `json:"updated_at,omitempty"`
	Cost      string          `json:"cost,omitempty"`
}

func (s *Server) state(r *http.Request) (any, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	ctx := r.Context()
	// Of a replay the page asks for what was. The present is not looked at: the caches of a team that works in the same
	// repository have nothing to do with it.
	if s.Replay {
		// The run says whether there is something to look back at.
		o := face.Empty()
		run, err := s.team.LastRun(ctx)
		o.Run, o.Team, o.Now = run, s.team.Name(ctx), s.Now()
		v := document(o)
		v.Root, v.IsReplay = s.team.Root(), true
		return v, err
	}
	// The position is read first, so that what happens while the state is read is told again by the stream.
	from, err := s.team.Journal().Tail(ctx, shownEvents)
	if err != nil {
		return nil, err
	}
	o, err := face.Overview(ctx, s.team, s.Now())
	if err != nil {
		return nil, err
	}
	v := document(o)
	v.Root, v.From, v.Can = s.team.Root(), from, control{s}.can(o)
	return v, nil
}

// document returns an overview as the page draws it, of now or of an earlier time.
func document(o view.Overview) state {
	// Lists are never nil, so that the page need not tell an empty list from none.
	v := state{Overview: o, HasTeam: o.Run.StartedAt > 0 || len(o.Members) > 0 || len(o.Tasks) > 0,
		Now: muster.UnixTime(o.Now), Members: make([]member, 0, len(o.Members)), Tasks: make([]card, 0, len(o.Tasks)),
		Needs: append([]view.Need{}, o.Needs()...),
		Spent: view.NewSpending(o.Run, o.Team, o.Spending, nil).Text(), Words: view.AllWords()}
	// What a member does comes from the events where they know more than its record, as in muster status.
	subject := o.Subjects()
	for _, m := range o.Members {
		stands := o.Standing(m, subject)
		v.Members = append(v.Members, member{Name: m.Name, Of: m.WorksFor, Label: strings.TrimSpace(m.Label()),
			Role: m.Role, Status: m.Status, Look: stands.Look, Does: stands.Text(), Since: stands.Since, Turns: m.Turns,
			Cost: o.CostOf(m).Cost(), Model: m.Model, Task: m.Task})
	}
	// Descriptions, plans and results are left out: see card.
	for _, t := range o.Tasks {
		c := card{ID: t.ID, Subject: t.Subject, Label: view.BoardLabel(t), Owner: t.Owner, DependsOn: t.DependsOn,
			BlockedBy: t.BlockedBy, Attempts: t.Attempts, Returned: t.Returned, UpdatedAt: t.UpdatedAt,
			Cost: o.Spending.Tasks[t.ID].Cost()}
		if t.Landed != nil {
			c.Commit = t.Landed.Commit
		}
		v.Tasks = append(v.Tasks, c)
	}
	return v
}
