package team_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"muster"
	"muster/internal/board"
)

// user is who acts from outside, in processes of their own: the user, and programs that know the files but not us.
func (s *sim) user(ctx context.Context) {
	for n := 0; ; n++ {
		d := s.dice("user", n)
		next := time.NewTimer(time.Duration(1+d.IntN(90)) * time.Second)
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
		if s.still.Load() {
			continue
		}
		s.act(ctx, n, d)
	}
}

func (s *sim) act(ctx context.Context, n int, d *rand.Rand) {
	tasks, err := s.o.board.List(ctx)
	if err != nil || len(tasks) == 0 {
		return
	}
	t := tasks[d.IntN(len(tasks))]
	to := append([]muster.Name{muster.Lead}, s.names()...)[d.IntN(len(s.plan.members)+1)]
	said := func(what string, err error) { s.say("user: %s: %v", what, err) }
	switch d.IntN(14) {
	case 0, 1, 2:
		m, err := s.o.post.Send(ctx, muster.Message{From: muster.User, To: to, Content: fmt.Sprintf("the user says %d", n)})
		if err == nil {
			s.ack(to, m)
		}
		said("mail to "+string(to), err)
	case 3:
		_, err := s.o.board.Create(ctx, board.Draft{Subject: fmt.Sprintf("extra-%d", n), CreatedBy: muster.User})
		said("a task", err)
	case 4, 5:
		_, err := s.o.board.Update(ctx, t.ID, board.Patch{Retry: true, By: muster.User})
		said(fmt.Sprintf("retry %d", t.ID), err)
	case 6, 7:
		if s.changes(t) || t.Status != muster.InProgress {
			return // what may be landing is revoked through git
		}
		_, err := s.o.board.Revoke(ctx, t.ID, t.Fence, muster.User, "the user says so")
		said(fmt.Sprintf("release %d", t.ID), err)
	case 8:
		_, err := s.o.requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.User, To: to, Reason: "enough", Force: d.IntN(3) == 0})
		said("stop "+string(to), err)
	case 9:
		_, err := s.o.board.Claim(ctx, t.ID, board.Claim{Owner: "outsider", Role: t.ClaimRole})
		said(fmt.Sprintf("claim %d from outside", t.ID), err)
	case 10:
		if t.Owner == "outsider" {
			_, err := s.o.board.CompleteByHand(ctx, t.ID, "outsider", "by hand")
			said(fmt.Sprintf("finish %d from outside", t.ID), err)
		}
	case 11:
		m := muster.Message{From: "visitor", To: to, Type: muster.MailMessage, Content: fmt.Sprintf("a visitor says %d", n)}
		said("a line in the box of "+string(to), s.base.Inbox().Put(ctx, to, m))
	case 12: // a host whose clock is a day off
		day := float64(24*3600) * float64(1-2*d.IntN(2))
		if d.IntN(2) == 0 {
			s.edit(ctx, muster.TableMembers, string(to), func(doc args) bool { return shift(doc, day, "since", "joined_at") })
			return
		}
		s.edit(ctx, muster.TableTasks, fmt.Sprint(t.ID), func(doc args) bool { return shift(doc, day, "claimed_at", "updated_at") })
	case 13:
		if pending, err := s.o.requests.Pending(ctx); err == nil && len(pending) > 0 && pending[0].To == muster.Lead {
			_, _, err := s.o.requests.Decide(ctx, pending[0].ID, muster.User, d.IntN(3) > 0, "the user has looked")
			said("decides "+string(pending[0].ID), err)
		}
	}
}

func (s *sim) changes(t muster.Task) bool {
	for _, k := range s.plan.tasks {
		if k.change && k.subject == t.Subject {
			return true
		}
	}
	return false
}

func (s *sim) names() (names []muster.Name) {
	for _, m := range s.plan.members {
		names = append(names, m.name)
	}
	return names
}

func (s *sim) edit(ctx context.Context, table, key string, f func(doc args) bool) {
	s.say("another program edits %s %s: %v", table, key, edit(ctx, s.base, table, key, f))
}

// tidyUp ends what people and programs outside have begun, so that the team can end, and reports whether there was something.
func (s *sim) tidyUp() (some bool) {
	ctx := s.Context()
	tasks, err := s.o.board.List(ctx)
	if err != nil {
		s.broken("list: %v", err)
	}
	for _, t := range tasks {
		if t.Owner == "outsider" && t.Open() {
			_, err := s.o.board.Revoke(ctx, t.ID, t.Fence, muster.User, "over")
			s.say("outsider gives %d back: %v", t.ID, err)
			some = true
		}
	}
	return some
}
