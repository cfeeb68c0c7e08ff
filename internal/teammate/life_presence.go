package teammate

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/roster"
	"muster/llm"
)

// presence is the member's record in the roster as this process writes it. Safe for concurrent use.
type presence struct {
	record muster.Member // as it was when this life began
	roster *roster.Roster
	tasks  holder
	diary  *diary
	turns  atomic.Int64 // in the member's life, for people
	parked atomic.Bool  // the record says that the member waits for its model

	known guarded[knownRecord]
}

type knownRecord struct {
	latest muster.Member
	asked  []muster.Name // whom the member asked something that is not answered yet, sorted
}

func newPresence(record muster.Member, r *roster.Roster, d *diary) *presence {
	p := &presence{record: record, roster: r, tasks: d.tasks, diary: d}
	p.turns.Store(int64(record.Turns))
	p.known.value = knownRecord{latest: record, asked: askedOf(record)}
	return p
}

func (p *presence) Me() muster.Member { return p.known.get().latest }

// setStatus writes what the member does. It is Fenced when another process hosts the member by now: the record is that
// process's, and writing it would hide what the member does there.
func (p *presence) setStatus(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error {
	t, _ := p.tasks.CurrentTask()
	k := p.known.get()
	if r := k.latest; r.Status == s && r.IdleReason == why && r.Doing == doing && r.Task == t.ID &&
		slices.Equal(askedOf(r), k.asked) {
		return nil
	}
	mine, err := p.update(ctx, p.isHost, func(r *muster.Member) {
		r.Status, r.IdleReason, r.Doing, r.Task, r.Turns = s, why, doing, t.ID, int(p.turns.Load())
		setAsked(r, k.asked)
	})
	if err == nil && !mine {
		err = p.errOtherHost()
	}
	return err
}

// update changes the record if it is still the member's to change, and reports whether it is. isMine is asked inside
// the update, which is atomic, so that no new host is overwritten. The roster may call both functions several times.
func (p *presence) update(
	ctx context.Context, isMine func(muster.Member) bool, change func(*muster.Member),
) (mine bool, err error) {
	r, err := p.roster.Update(ctx, p.record.Name, func(r *muster.Member) {
		if mine = isMine(*r); mine {
			change(r)
		}
	})
	if err == nil && mine {
		p.known.change(func(k *knownRecord) { k.latest = r })
	}
	return mine, err
}

func (p *presence) isHost(r muster.Member) bool { return r.Host == p.record.Host }

func (p *presence) checkHost(ctx context.Context) error {
	r, err := p.roster.Get(ctx, p.record.Name)
	if err == nil && (r.Host != p.record.Host || r.Epoch != p.record.Epoch) {
		err = p.errOtherHost()
	}
	return err
}

func (p *presence) errOtherHost() error {
	return muster.Errorf(muster.Fenced, "%s runs in another process now", p.record.Name)
}

// show shows what the member does while it works. A failure is only logged.
func (p *presence) show(ctx context.Context, doing string) {
	p.diary.dropped(ctx, "the member's status", p.setStatus(ctx, muster.Working, "", doing))
}

func (p *presence) showActivity(ctx context.Context, what string) (done func()) {
	p.show(ctx, what)
	return func() { p.show(context.WithoutCancel(ctx), "") }
}

func (p *presence) now() (muster.TaskID, int) {
	t, _ := p.tasks.CurrentTask()
	return t.ID, int(p.turns.Load())
}

// onModelWait shows that the member waits for its model. Its error is not logged: it may quote the request.
func (p *presence) onModelWait(until time.Time, why error) {
	ctx, cancel := clock.Detach(context.Background())
	defer cancel()
	p.parked.Store(true)
	e := &llm.Error{}
	errors.As(why, &e)
	p.diary.log.Info("model retry", "kind", string(llm.KindOf(why)), "status", e.Status,
		"wait", time.Until(until).Round(time.Millisecond).String())
	p.show(ctx, "parked until "+clock.FormatEnd(until, time.Now()))
}

func (p *presence) onModelReply(ctx context.Context) {
	if p.parked.Swap(false) {
		p.show(ctx, "")
	}
}

// question is a question mark that ends a sentence, not one inside a URL.
var question = regexp.MustCompile(`[?？]["')\]]*(\s|$)`)

// Asked notes a question: while it is not answered, the member is not timed out.
func (p *presence) Asked(to muster.Name, content string) {
	if question.MatchString(content) {
		p.known.change(func(k *knownRecord) { k.asked = sortedNames(append(slices.Clip(k.asked), to)) })
	}
}

// noteAnswers ends the wait for the senders of mails. Status news is no answer.
func (p *presence) noteAnswers(mail []muster.Message) {
	p.known.change(func(k *knownRecord) {
		k.asked = slices.DeleteFunc(slices.Clone(k.asked), func(name muster.Name) bool {
			return slices.ContainsFunc(mail, func(m muster.Message) bool { return m.From == name && !m.Type.News() })
		})
	})
}

func (p *presence) openQuestions() []muster.Name { return p.known.get().asked }

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

// hasLeft reports whether a record is that of this life after its shutdown: the member was not spawned again.
func (p *presence) hasLeft(r muster.Member) bool {
	return r.Status == muster.Shutdown && r.Epoch == p.record.Epoch
}

func (p *presence) isReplaced(ctx context.Context) (bool, error) {
	r, err := p.roster.Get(ctx, p.record.Name)
	return !p.hasLeft(r), err
}

func (p *presence) rejoin(ctx context.Context) error {
	_, err := p.update(ctx, p.hasLeft, func(r *muster.Member) {
		r.Status, r.IdleReason, r.Host = muster.Working, "", p.record.Host
	})
	return err
}
