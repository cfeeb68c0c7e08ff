package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
)

// presence is the member's record in the roster as this process writes it: what others see of
// the member. Safe for concurrent use.
type presence struct {
	*self
	turns  atomic.Int64 // in the member's life, for people
	parked atomic.Bool  // the record says that the member waits for its model

	mu     sync.Mutex
	latest muster.Member        // the record as it was read or written last
	asked  map[muster.Name]bool // whom the member asked something that is not answered yet
}

// newPresence returns the presence of a member whose record was just read.
func newPresence(s *self) *presence {
	p := &presence{self: s, latest: s.record, asked: askedOf(s.record)}
	p.turns.Store(int64(s.record.Turns))
	return p
}

// Me returns the member's record as it was read last.
func (p *presence) Me() muster.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest
}

// setStatus writes what the member does. It is Fenced when another process hosts the member
// by now: the record is that process's, and writing it would hide what the member does there.
func (p *presence) setStatus(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error {
	t, _ := p.claims.CurrentTask()
	p.mu.Lock()
	asked := maps.Clone(p.asked)
	same := p.latest.Status == s && p.latest.IdleReason == why && p.latest.Doing == doing && p.latest.Task == t.ID &&
		maps.Equal(askedOf(p.latest), asked)
	p.mu.Unlock()
	if same {
		return nil
	}
	mine, err := p.update(ctx, p.isHost, func(r *muster.Member) {
		r.Status, r.IdleReason, r.Doing, r.Task, r.Turns = s, why, doing, t.ID, int(p.turns.Load())
		setAsked(r, asked)
	})
	if err == nil && !mine {
		err = p.errOtherHost()
	}
	return err
}

// update changes the record if it is still the member's to change, and reports whether it is.
// isMine is asked inside the update, which is atomic: a host that takes the member over between
// a read and a write of this process would be overwritten otherwise. The roster may call both
// functions several times.
func (p *presence) update(
	ctx context.Context, isMine func(muster.Member) bool, change func(*muster.Member),
) (mine bool, err error) {
	r, err := p.Roster.Update(ctx, p.name(), func(r *muster.Member) {
		if mine = isMine(*r); mine {
			change(r)
		}
	})
	if err == nil && mine {
		p.mu.Lock()
		p.latest = r
		p.mu.Unlock()
	}
	return mine, err
}

// isHost reports whether a record says that this process hosts the member.
func (p *presence) isHost(r muster.Member) bool { return r.Host == p.record.Host }

// errOtherHost says that this process may write nothing more for the member.
func (s *self) errOtherHost() error {
	return muster.Errorf(muster.Fenced, "%s is hosted by another process now", s.name())
}

// show shows what the member does while it works. The text is for people only: a failure to
// write it changes nothing, and is logged.
func (p *presence) show(ctx context.Context, doing string) {
	p.logDropped(ctx, "the member's status", p.setStatus(ctx, muster.Working, "", doing))
}

// showActivity shows what a parked member waits for, and returns how to end that.
func (p *presence) showActivity(ctx context.Context, what string) (done func()) {
	p.show(ctx, what)
	return func() { p.show(context.WithoutCancel(ctx), "") }
}

// onModelWait shows that the member is parked for its model. The model's decorators call it, and
// have no context for it. What the provider has answered is not logged: it may quote the
// request.
func (p *presence) onModelWait(until time.Time, why error) {
	ctx, cancel := lastWrites(context.Background())
	defer cancel()
	p.parked.Store(true)
	e := &llm.Error{}
	errors.As(why, &e)
	p.logger().Info("model retry", "kind", string(llm.KindOf(why)), "status", e.Status,
		"wait", time.Until(until).Round(time.Millisecond).String())
	p.show(ctx, "parked until "+until.Format("15:04:05"))
	p.event(ctx, journal.ModelRetry, map[string]any{"text": why.Error(), "until": muster.UnixTime(until)})
}

// onModelReply shows that the model answers again.
func (p *presence) onModelReply(ctx context.Context) {
	if p.parked.Swap(false) {
		p.show(ctx, "")
	}
}

// event writes what happened to the journal. The journal drives nothing: a failure to write
// it does not fail the turn.
func (p *presence) event(ctx context.Context, kind string, fields map[string]any) {
	t, _ := p.claims.CurrentTask()
	e := muster.Event{Kind: kind, Member: p.name(), Task: t.ID, Fields: fields}
	_ = p.Journal.Emit(context.WithoutCancel(ctx), e)
}

// question is a question mark that ends a sentence, not one inside a URL.
var question = regexp.MustCompile(`[?？]["')\]]*(\s|$)`)

// Asked notes a question: while it is not answered, the member is not timed out.
func (p *presence) Asked(to muster.Name, content string) {
	if question.MatchString(content) {
		p.mu.Lock()
		p.asked[to] = true
		p.mu.Unlock()
	}
}

// noteAnswers ends the wait for everybody who has sent one of the mails. Status news is no
// answer.
func (p *presence) noteAnswers(mail []muster.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, msg := range mail {
		if !msg.Type.News() {
			delete(p.asked, msg.From)
		}
	}
}

// openQuestions returns whom the member has asked something that is not answered yet.
func (p *presence) openQuestions() []muster.Name {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.asked))
}

// leave writes that the member has shut down, unless another process hosts it by now.
func (p *presence) leave(ctx context.Context) error {
	_, err := p.update(ctx, p.isHost, func(r *muster.Member) {
		r.Status, r.Doing, r.Task, r.Host, r.Turns = muster.Shutdown, "", 0, "", int(p.turns.Load())
		setAsked(r, nil)
		if r.IdleReason != muster.IdleTimeout {
			r.IdleReason = ""
		}
	})
	return err
}

// hasLeft reports whether a record is that of this life after its shutdown: nobody has
// spawned the member again.
func (p *presence) hasLeft(r muster.Member) bool {
	return r.Status == muster.Shutdown && r.Epoch == p.record.Epoch
}

// rejoin takes the shutdown back if nobody has spawned the member again in the meantime.
func (p *presence) rejoin(ctx context.Context) error {
	_, err := p.update(ctx, p.hasLeft, func(r *muster.Member) {
		r.Status, r.IdleReason, r.Host = muster.Working, "", p.record.Host
	})
	return err
}

// askedField is the field of a member's record that names whom it waits for, because it has
// asked them something. It outlives the process, and tells a sleeping lead who waits for
// whom.
const askedField = "asked"

// askedOf returns whom the member of a record waits for.
func askedOf(r muster.Member) map[muster.Name]bool {
	var names []muster.Name
	_ = json.Unmarshal(r.Extra[askedField], &names) // absent, or written by another program: nobody
	all := map[muster.Name]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all
}

// setAsked writes into a record whom the member waits for.
func setAsked(r *muster.Member, names map[muster.Name]bool) {
	if len(names) == 0 {
		delete(r.Extra, askedField)
		return
	}
	line, err := muster.MarshalLine(slices.Sorted(maps.Keys(names)))
	if err != nil {
		return // a list of names always encodes
	}
	if r.Extra == nil {
		r.Extra = muster.Extra{}
	}
	r.Extra[askedField] = line
}
