package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"muster"
	"muster/team"
)

// decision is the answer to a request: that which stands, and whether it is the one of this page.
type decision struct {
	Request muster.Request `json:"request"`
	IsFirst bool           `json:"first"`
}

// decode reads what the page has sent. A body that is too long is an error like one that is no JSON: see maxBody.
func decode(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields() // a field that is misspelt must not be taken as absent
	if err := d.Decode(v); err != nil {
		return muster.Errorf(muster.Invalid, "the request cannot be read: %w", err)
	}
	return nil
}

// answerSent is an answer to a request as a page sends it.
type answerSent struct {
	ID      muster.RequestID    `json:"id"`
	Approve *bool               `json:"approve"`
	Scope   muster.RequestScope `json:"scope"` // "", run or always
	Text    string              `json:"text"`
}

// decide answers a request as the user. The first answer of all faces stands, and the page is told which that is.
func (s *Server) decide(r *http.Request) (any, error) {
	var in answerSent
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return s.decideSent(r.Context(), in)
}

func (s *Server) decideSent(ctx context.Context, in answerSent) (any, error) {
	if in.Approve == nil { // an answer that is left out is no "no"
		return nil, muster.Errorf(muster.Invalid, "the request says neither yes nor no")
	}
	if !slices.Contains([]muster.RequestScope{muster.ScopeOnce, muster.ScopeRun, muster.ScopeAlways}, in.Scope) {
		return nil, muster.Errorf(muster.Invalid, "a scope is run or always, not %q", string(in.Scope))
	}
	// Being second is no error: the other face has decided, and the page shows what.
	q, isFirst, err := s.team.Requests().AnswerFor(ctx, in.ID, *in.Approve, in.Scope, in.Text)
	return decision{q, isFirst}, err
}

// mailSent is a mail as a page sends it.
type mailSent struct {
	To   muster.Name `json:"to"`
	Text string      `json:"text"`
}

func (s *Server) mail(r *http.Request) (any, error) {
	var in mailSent
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return s.sendMail(r.Context(), in)
}

func (s *Server) sendMail(ctx context.Context, in mailSent) (any, error) {
	if strings.TrimSpace(in.Text) == "" {
		return nil, muster.Errorf(muster.Invalid, "the mail is empty, so nothing was sent")
	}
	// It is durable when this returns, so the page may clear what was typed.
	return s.team.Mail().Send(ctx, in.To, in.Text)
}

func (s *Server) comment(r *http.Request) (any, error) {
	var in struct {
		Task muster.TaskID `json:"task"`
		File string        `json:"file"`
		Line int           `json:"line"`
		Text string        `json:"text"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	// Whether the file has the line is found out there, by the work as it is now and not as the page has it.
	return s.team.Tasks().Comment(r.Context(), in.Task, in.File, in.Line, in.Text)
}

func (s *Server) retry(r *http.Request) (any, error) {
	var in struct {
		Task muster.TaskID `json:"task"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	// Two faces may do this at once: a task that is on the board already stays as it is.
	return s.team.Tasks().Change(r.Context(), in.Task, team.TaskChange{Retry: true})
}

// take takes the user's mail as read. Mail that the page has not shown stays with all others: the page asks again.
func (s *Server) take(r *http.Request) (any, error) {
	var in struct {
		Shown []muster.MessageID `json:"shown"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	// Take removes the mail only if the function succeeds.
	err := s.team.Mail().Take(r.Context(), func(all []muster.Message) error {
		for _, m := range all {
			if !slices.Contains(in.Shown, m.ID) {
				return muster.Errorf(muster.Invalid, "more mail has come: nothing was taken as read")
			}
		}
		return nil
	})
	return map[string]int{"taken": len(in.Shown)}, err
}
