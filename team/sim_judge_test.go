package team_test

import (
	"context"
	"fmt"
	"os/exec"
	"reflect"
	"strings"

	"muster"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// simWatched is what was seen on the way.
type simWatched struct {
	claims    map[string]bool
	completed map[muster.TaskID]bool
	fences    map[muster.TaskID]int
}

func (s *sim) watch(ctx context.Context) {
	w := &s.watched
	w.claims, w.completed, w.fences = map[string]bool{}, map[muster.TaskID]bool{}, map[muster.TaskID]int{}
	for e, err := range s.o.journal.Follow(ctx, 0) {
		if err != nil {
			if ctx.Err() == nil {
				s.broken("the journal: %v", err)
			}
			return
		}
		s.event(e.Event)
		s.moment(ctx)
	}
}

func (s *sim) event(e muster.Event) {
	switch e.Kind {
	case journal.TaskClaimed:
		claim := fmt.Sprintf("%d at %v", e.Task, e.Number("fence"))
		if s.watched.claims[claim] {
			s.broken("task %s was claimed twice", claim)
		}
		s.watched.claims[claim] = true
	case journal.TaskCompleted:
		if s.watched.completed[e.Task] {
			s.broken("task %d was completed twice", e.Task)
		}
		s.watched.completed[e.Task] = true
	case journal.ToolStarted, journal.ToolEnded, journal.TurnStarted, journal.TurnEnded:
		return
	}
	if *simLog || e.Kind != journal.MailSent && e.Kind != journal.MailDelivered {
		s.say("event %s %s #%d %v", e.Kind, e.Member, e.Task, e.Fields)
	}
}

func (s *sim) moment(ctx context.Context) {
	tasks, err := s.o.board.List(ctx)
	if err != nil {
		return
	}
	for _, t := range tasks {
		if t.Fence < s.watched.fences[t.ID] {
			s.broken("the fence of task %d went back from %d to %d", t.ID, s.watched.fences[t.ID], t.Fence)
		}
		s.watched.fences[t.ID] = t.Fence
		if s.watched.completed[t.ID] && t.Status != muster.Completed {
			s.broken("task %d was completed and is %s", t.ID, t.Status)
		}
	}
}

// simFresh is how often a conversation was started afresh, as far as its transcript was read.
type simFresh struct {
	at muster.Pos
	n  int
}

// valid checks a request: a history that every provider takes, and one that goes on where the last one was.
func (s *sim) valid(who muster.Name, r llm.Request) {
	// It may end with the model's own words, which a reply that was paused goes on from, but not with its calls.
	if n := len(r.Messages); n == 0 || r.Messages[0].Role != llm.User || len(r.Messages[n-1].Calls()) > 0 {
		s.broken("%s: a request of %d messages does not begin with the user's, or ends with calls", who, n)
		return
	}
	if *simLog {
		for _, p := range r.Messages[len(r.Messages)-1].Parts {
			s.say("%s reads: %.160v", who, p)
		}
	}
	var open []string
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role || len(m.Parts) == 0 {
			s.broken("%s: message %d of a request does not take turns, or is empty", who, i)
		}
		for j, p := range m.Parts {
			if res, ok := p.(llm.Result); ok {
				if j >= len(open) || open[j] != res.ID {
					s.broken("%s: result %q is none of %v", who, res.ID, open)
				}
			} else if j < len(open) {
				s.broken("%s: call %q has no result", who, open[j])
			}
		}
		if len(m.Parts) < len(open) {
			s.broken("%s: of the calls %v not all have results", who, open)
		}
		open = nil
		for _, c := range m.Calls() {
			open = append(open, c.ID)
		}
	}
	s.mu.Lock()
	seen := s.fresh[who]
	s.mu.Unlock()
	for e, err := range transcript.Read(s.Context(), s.base.Log(), who, seen.at) {
		if err == nil {
			switch seen.at = e.Pos; e.Kind {
			case transcript.KindFresh, transcript.KindCompressed, transcript.KindCleared:
				seen.n++
			}
		}
	}
	key := fmt.Sprint(who, " ", seen.n)
	s.mu.Lock()
	s.fresh[who] = seen
	last := s.requests[key]
	if !isSummary(r) { // the question is no part of the conversation
		s.requests[key] = r.Messages
	}
	s.mu.Unlock()
	if !extends(r.Messages, last) && !isSummary(r) {
		s.broken("%s: a request of %d messages does not go on from the last one of %d", who, len(r.Messages), len(last))
	}
}

func isSummary(r llm.Request) bool {
	return strings.Contains(r.Messages[len(r.Messages)-1].Parts.Text(), "Answer with the summary alone")
}

// extends reports whether a conversation goes on from what it was: the last message of it may have grown.
func extends(now, was []llm.Message) bool {
	if len(now) < len(was) {
		return false
	}
	for i, m := range was {
		n := now[i]
		if i == len(was)-1 && len(n.Parts) >= len(m.Parts) {
			n.Parts = n.Parts[:len(m.Parts)]
		}
		if !reflect.DeepEqual(n, m) {
			return false
		}
	}
	return true
}

func (s *sim) fits(sum team.Summary) {
	tasks, err := s.o.board.List(s.Context())
	if err != nil {
		s.broken("list: %v", err)
	}
	var left []string
	for _, t := range tasks {
		if t.Open() || t.Status == muster.NeedsAttention {
			left = append(left, fmt.Sprintf("%d %s", t.ID, t.Status))
		}
	}
	switch {
	case sum.Code == 0 && len(left) > 0 && !s.raced(tasks):
		s.broken("the run ended with 0 and left %v", left)
	case sum.Code != 0 && sum.Code != 3:
		s.broken("the run ended with %d and no error", sum.Code)
	case sum.Code == 3 && s.calm.Load() && len(left) == 0:
		s.broken("the run ended with 3 and nothing is left: %s", sum.Text)
	}
}

// raced reports whether what is left came from outside while the run ended.
func (s *sim) raced(tasks []muster.Task) bool {
	for _, t := range tasks {
		if (t.Open() || t.Status == muster.NeedsAttention) && muster.Time(s.endedAt()).After(muster.Time(t.CreatedAt)) {
			return false
		}
	}
	return true
}

func (s *sim) endedAt() float64 {
	run, _ := s.run()
	return run.EndedAt
}

func (s *sim) judge() {
	ctx := s.Context()
	s.mails(ctx)
	tasks, err := s.o.board.List(ctx)
	if err != nil {
		s.broken("list: %v", err)
	}
	landed := map[string]int{}
	for _, subject := range s.landed() {
		landed[subject]++
	}
	same := map[string]int{} // a task whose creation was not answered is made again
	for _, t := range tasks {
		same[t.Subject]++
	}
	for _, t := range tasks {
		want := 0
		if t.Landed != nil {
			want = 1
		}
		if n := landed[t.Subject]; n != want && same[t.Subject] == 1 {
			s.broken("task %d (%s, %s) landed %d times, its record says %d", t.ID, t.Subject, t.Status, n, want)
		}
		if t.Status == muster.Completed && len(t.Effects) > 0 {
			s.broken("task %d still owes %v", t.ID, t.Effects)
		}
	}
	for id := range s.watched.completed {
		if t, err := s.o.board.Get(ctx, id); err == nil && t.Status != muster.Completed {
			s.broken("task %d was completed and is %s", id, t.Status)
		}
	}
	members, err := s.o.roster.List(ctx)
	if err != nil {
		s.broken("members: %v", err)
	}
	for _, m := range members {
		alive, err := s.o.roster.Alive(ctx, m.Host)
		if run, _ := s.run(); run.EndedAt != 0 && !s.widowed.Load() && m.Status == muster.Working && (m.Host == "" || err == nil && !alive) { // else it goes on with resume
			s.broken("%s is working, and its host %q is not there", m.Name, m.Host)
		}
	}
}

func (s *sim) landed() []string {
	if s.meadow != nil {
		return s.meadow.subjects()
	}
	log, err := exec.Command("git", "-C", s.root, "log", "--format=%s", "muster/demo").Output()
	if err != nil {
		s.broken("git log: %v", err)
	}
	return strings.Split(string(log), "\n")
}

func (s *sim) mails(ctx context.Context) {
	for box, mails := range s.acked {
		read := map[muster.MessageID]int{}
		for e, err := range transcript.Read(ctx, s.base.Log(), box, 0) {
			if err != nil {
				s.broken("the transcript of %s: %v", box, err)
				break
			}
			for _, id := range e.Mail {
				read[id]++
			}
		}
		waiting, _, err := s.base.Inbox().Peek(ctx, box, 0, 1<<30)
		if err != nil {
			s.broken("the box of %s: %v", box, err)
		}
		lies := map[muster.MessageID]bool{}
		for _, m := range waiting {
			lies[m.ID] = true
		}
		for id, kind := range mails {
			void := kind == muster.MailShutdown || kind == muster.MailPlan || kind == muster.MailPlanAnswer // decided meanwhile
			if read[id] == 0 && !lies[id] && !void {
				s.broken("the %s %s to %s was acknowledged and is lost", kind, id, box)
			}
		}
		for id, n := range read {
			if n > 1 && mails[id] != "" {
				s.broken("the mail %s to %s was delivered %d times", id, box, n)
			}
		}
	}
}
