package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"muster"
	"muster/internal/difflines"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/team"
)

// How much of a conversation and of a difference one answer has. A page asks for more, or the command line has all.
const (
	mostSaid = 200
	mostText = 20_000  // bytes of one thing said
	mostDiff = 500_000 // bytes
	mostEdit = 400     // lines of the difference that one call makes
	mostLine = 500     // bytes of such a line
	preview  = 8       // lines of it that are seen at once
)

// conversation is a part of what a member has said.
type conversation struct {
	Said    []said     `json:"said"`
	Skipped int        `json:"skipped"` // things said before, which are left out
	Next    muster.Pos `json:"next"`    // where to go on
	More    bool       `json:"more"`    // there is more already
	// Steps are the member's own list as it was before Said; nil: it had none.
	Steps []team.Step `json:"steps"`
}

// said is one thing said. A call of a file tool has what it changes.
type said struct {
	team.Said
	Edit *edit `json:"edit,omitempty"`
}

// edit is the difference that a call makes: first what is seen at once, and then all of it.
type edit struct {
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Lines   []line `json:"lines"`
	Preview []line `json:"preview"`
	More    int    `json:"more,omitempty"` // lines that are left out of all
}

// newSaid cuts what is too long for a page.
func newSaid(s team.Said) said {
	s.Text = text.CutBytes(s.Text, mostText)
	made := said{Said: s}
	e, ok := code.EditOf(llm.Call{Name: s.Tool, Input: s.Input})
	if s.Kind != team.SaidCall || !ok {
		return made
	}
	first := e.Preview(preview)
	more := max(0, len(e.Lines)-mostEdit)
	x := edit{e.Added, e.Removed, newLines(e.Lines[:len(e.Lines)-more]), newLines(first), more}
	for _, lines := range [][]line{x.Preview, x.Lines} {
		for i := range lines {
			lines[i].Text = text.CutBytes(lines[i].Text, mostLine)
		}
	}
	made.Edit = &x
	return made
}

// member reads a member's conversation: the last of it, or what follows a position.
func (s *Server) member(r *http.Request) (any, error) {
	name := muster.Name(r.PathValue("name"))
	// A conversation can be read for every name. One that nobody has must not look like a member that says nothing.
	if err := s.team.Members().HasConversation(r.Context(), name); err != nil {
		return nil, err
	}
	after, err := position(r)
	if err != nil {
		return nil, err
	}
	c := conversation{Said: []said{}, Next: after}
	for s, err := range s.team.Members().Conversation(r.Context(), name, after) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		// What follows a position ends after a whole entry, because the next part begins behind an entry.
		if after > 0 && len(c.Said) >= mostSaid && s.Pos != c.Next {
			c.More = true
			break
		}
		c.Next = s.Pos // after an entry that cannot be read too, which is left out
		if err == nil {
			c.Said = append(c.Said, newSaid(s))
		}
		if after == 0 && len(c.Said) >= 2*mostSaid { // the older half goes, so that memory does not grow
			c.skip(mostSaid)
		}
	}
	if more := len(c.Said) - mostSaid; after == 0 && more > 0 {
		c.skip(more)
	}
	return c, nil
}

// skip leaves out the first n things said, but for what they say of the list of steps: a member may set it once and
// work by it for hours, and what is left of its conversation has it no more.
func (c *conversation) skip(n int) {
	for _, s := range c.Said[:n] {
		if s.Steps != nil {
			c.Steps = s.Steps
		}
	}
	c.Said, c.Skipped = append(c.Said[:0], c.Said[n:]...), c.Skipped+n
}

// details is all that the page shows of one task. It is read anew for each look, with the work in the lane as it is at
// that moment, uncommitted files too.
type details struct {
	Task     muster.Task      `json:"task"`
	Requests []muster.Request `json:"requests"` // about the task, the answered ones too
	Diff     *diff            `json:"diff"`     // nil: there is none, as NoDiff says
	NoDiff   string           `json:"no_diff,omitempty"`
	IsCut    bool             `json:"is_cut"` // the difference is longer
}

// diff is the difference of a task.
type diff struct {
	Files    []team.FileChange `json:"files"`
	Comments []team.Comment    `json:"comments,omitempty"`
	Lines    []line            `json:"lines"`
}

func (s *Server) task(r *http.Request) (any, error) {
	ctx := r.Context()
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 1 {
		return nil, muster.Errorf(muster.Invalid, "%q is no number of a task", r.PathValue("id"))
	}
	d := details{Requests: []muster.Request{}}
	if d.Task, err = s.team.Tasks().Get(ctx, muster.TaskID(id)); err != nil {
		return nil, err
	}
	if d.Task, err = s.team.Tasks().WithBlocks(ctx, d.Task); err != nil {
		return nil, err
	}
	all, err := s.team.Requests().List(ctx)
	if err != nil {
		return nil, err
	}
	// The answered ones tell what was approved, and by whom.
	for _, q := range all {
		if q.TaskID == d.Task.ID {
			d.Requests = append(d.Requests, q)
		}
	}
	return s.withDiff(ctx, d)
}

// withDiff adds what a task has changed. That this cannot be told is no reason to show nothing of the task.
func (s *Server) withDiff(ctx context.Context, d details) (details, error) {
	found, err := s.team.Tasks().ReviewedDiff(ctx, d.Task.ID)
	if err != nil {
		d.NoDiff = muster.PlainText(err)
		return d, ctx.Err()
	}
	if len(found.Text) > mostDiff {
		// Whole lines are left, so that each of them can be commented on.
		found.Text, d.IsCut = found.Text[:strings.LastIndexByte(found.Text[:mostDiff], '\n')+1], true
	}
	lines := found.Lines()
	difflines.Mark(lines)
	d.Diff = &diff{found.Files, found.Comments, newLines(lines)}
	return d, nil
}

// readMails is how many mails that were read are shown of each inbox.
const readMails = 30

// inbox is the mail of the user or of the lead: what waits, and the last that was read.
type inbox struct {
	Name    muster.Name      `json:"name"`
	Waiting []muster.Message `json:"waiting"`
	Read    []muster.Message `json:"read"`
}

// mails reads the inbox of the user, which comes first, and that of the lead.
func (s *Server) mails(r *http.Request) (any, error) {
	all := []inbox{}
	for _, name := range []muster.Name{muster.User, muster.Lead} {
		waiting, err := s.team.Mail().Pending(r.Context(), name)
		if errors.Is(err, muster.ErrNotFound) {
			continue // a run of a playbook has no lead
		}
		// What was read is shown too: an answer without its question says little.
		read, errRead := s.team.Mail().Delivered(r.Context(), name, readMails)
		if err := cmp.Or(err, errRead); err != nil {
			return nil, err
		}
		all = append(all, inbox{name, append([]muster.Message{}, waiting...), append([]muster.Message{}, read...)})
	}
	return all, nil
}
