package board

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/journal"
)

// The limits of a task's text.
const (
	maxSubject     = 200      // characters
	maxDescription = 64 << 10 // bytes
)

// roleRule is what a role looks like, in any script.
var roleRule = lazyregexp.New(`^\pL[\pL\pM\pN_-]{0,31}$`)

// Draft is what the creator of a task decides. The board adds the id and the times.
type Draft struct {
	Subject     string // one line
	Description string
	BlockedBy   []muster.TaskID
	Role        string // only members of this role may claim it; "" is everyone
	Priority    int    // higher goes first
	RequirePlan bool
	Review      bool     // see muster.Task
	Files       []string // see muster.Task
	CreatedBy   muster.Name
	// Key is what the creator knows the task by; see muster.Task.
	Key string
	// Undoes are the landed tasks that the task takes back. It is made as its creator's, so that nobody else can claim
	// it before.
	Undoes []muster.TaskID
}

// Create puts a task on the board, under an id that no task ever had. An unknown blocker is Invalid; one
// that is complete is part of the graph and blocks nothing. A new task closes no cycle, since nothing waits
// for it yet, so its edges need not be announced as those of Update are.
func (b *Board) Create(ctx context.Context, d Draft) (muster.Task, error) {
	if err := Check(d); err != nil {
		return muster.Task{}, err
	}
	at := now()
	t := muster.Task{
		Subject: d.Subject, Description: d.Description, Status: muster.Pending, ClaimRole: d.Role, Priority: d.Priority,
		RequirePlan: d.RequirePlan, Review: d.Review, CreatedBy: d.CreatedBy, CreatedAt: at, UpdatedAt: at,
		DependsOn: set(d.BlockedBy...), Key: d.Key, Files: d.Files, Undoes: d.Undoes,
	}
	if len(d.Undoes) > 0 {
		if err := claim(&t, Claim{Owner: d.CreatedBy, Source: muster.SourceUndo}, at); err != nil {
			return muster.Task{}, err
		}
	}
	if err := b.tasks.Refresh(ctx); err != nil {
		return muster.Task{}, err
	}
	for _, id := range t.DependsOn {
		on, _, err := b.read(ctx, id)
		if errors.Is(err, muster.ErrNotFound) {
			return muster.Task{}, errUnknownBlocker(0, id)
		}
		if err != nil {
			return muster.Task{}, err
		}
		if on.Status != muster.Completed {
			t.BlockedBy = append(t.BlockedBy, id)
		}
	}
	t, err := b.insert(ctx, t)
	if err != nil {
		return muster.Task{}, err
	}
	created := map[string]any{"subject": t.Subject}
	if len(t.DependsOn) > 0 { // the past of the board is drawn by them
		created["depends_on"] = t.DependsOn
	}
	creation := event(journal.TaskCreated, t, t.CreatedBy, created)
	var down error
	if t.Owner == "" {
		down = b.emit(ctx, creation)
	} else {
		line := claimLine{Event: journal.TaskClaimed, Owner: t.Owner, Source: t.ClaimSource}
		down = b.emitClaim(ctx, t, line, creation, claimEvent(t, Claim{Source: t.ClaimSource}))
	}
	return b.edges.dropDeleted(ctx, t, t.DependsOn), down
}

// Check refuses a draft whose texts no task can have. The error says which text, and what to do about it.
func Check(d Draft) error {
	return cmp.Or(checkText(d.Subject, d.Description, d.Role), checkFiles(d.Files))
}

// insert writes t under the next free id, and tries the following ones while other processes take them
// first.
//
// No id is ever used twice. A task of the id may have been created and deleted between the read of meta and
// the write of t. Whoever deletes a task raises NextID before the deletion, so meta is read once more after
// the write: if NextID is larger than the id by then, t is removed again and gets a new id.
func (b *Board) insert(ctx context.Context, t muster.Task) (muster.Task, error) {
	for {
		m, err := b.meta.read(ctx)
		if err != nil {
			return t, err
		}
		b.tasks.View(func() { t.ID = b.graph.unusedID(m.NextID) })
		// The write fails if there is a document of the id, so of two processes that found the same id one
		// has it.
		rev, err := b.tasks.Create(ctx, key(t.ID), t)
		if err == nil {
			m, err := b.meta.read(ctx)
			if err != nil || m.NextID <= t.ID || b.tasks.Delete(ctx, key(t.ID), rev) != nil {
				return t, nil
			}
		} else if !errors.Is(err, muster.ErrStale) {
			return t, err
		}
		err = b.tasks.ViewFresh(ctx, func() {
			b.graph.highest = max(b.graph.highest, t.ID) // taken, though the changes may not show it yet
		})
		if err != nil {
			return t, err
		}
	}
}

// UnusedID returns the id of the task that is created next, unless somebody creates one before. It writes nothing.
func UnusedID(ctx context.Context, b *Board) (id muster.TaskID, err error) {
	m, _, err := b.meta.parse(ctx)
	if err == nil {
		err = b.tasks.ViewFresh(ctx, func() { id = b.graph.unusedID(m.NextID) })
	}
	return id, err
}

// isForbiddenControl reports whether a description may not have the character: all control characters but
// line ends and tabs, because they could change what a terminal shows.
func isForbiddenControl(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r)
}

// checkText refuses texts that a task cannot have. The error says which text, and what to do about it.
func checkText(subject, description, role string) error {
	for what, s := range map[string]string{"subject": subject, "description": description} {
		if line := text.BadLine([]byte(s)); line > 0 {
			return muster.Errorf(muster.Invalid, "the %s is not UTF-8 in line %d", what, line)
		}
	}
	switch n := utf8.RuneCountInString(subject); {
	case strings.TrimSpace(subject) == "":
		return muster.Errorf(muster.Invalid, "a task needs a subject")
	case strings.ContainsAny(subject, "\n\r\u2028\u2029"):
		return muster.Errorf(muster.Invalid, "the subject has more than one line: put the rest into the description")
	case n > maxSubject:
		return muster.Errorf(muster.Invalid,
			"the subject has %d characters, %d at most: put the rest into the description", n, maxSubject)
	case len(description) > maxDescription:
		return muster.Errorf(muster.Invalid, "the description has %d bytes, %d at most: put the rest into a file",
			len(description), maxDescription)
	case strings.ContainsFunc(subject, unicode.IsControl):
		return muster.Errorf(muster.Invalid, "the subject has a control character")
	case strings.ContainsFunc(description, isForbiddenControl):
		return muster.Errorf(muster.Invalid, "the description has a control character")
	case role != "" && !roleRule().MatchString(role):
		return muster.Errorf(muster.Invalid,
			"%q cannot be a role: "+
				"a role is a letter followed by at most 31 letters, digits, hyphens or underscores", role)
	}
	return nil
}
