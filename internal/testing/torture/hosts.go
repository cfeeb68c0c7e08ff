package torture

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/roster"
	"muster/internal/transcript"
	"muster/llm"
)

// hosts: five processes host twenty members. Those of a killed process are taken over by the others; those of a stopped
// one are given to another, and what it writes when it wakes is refused. Each member has its turns once, in order, and
// each epoch of it one host.
func hosts(ctx context.Context, a *env) error {
	const members, processes = 20, 5
	turns := a.amount(60, 8)
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	all := roster.New(r.store, r.journal, "torture")
	for i := range members {
		if _, err := all.Add(ctx, muster.Member{Name: muster.Name(fmt.Sprintf("m%d", i+1)), Role: "coder",
			Status: muster.Working}); err != nil {
			return err
		}
	}
	var jobs []Job
	for i := range processes {
		jobs = append(jobs, Job{Kind: "host", Name: fmt.Sprintf("h%d", i+1), Seed: a.rng.Uint64(), Count: turns})
	}
	err = a.run(ctx, jobs, chaos{kills: a.amount(60, 6), stops: a.amount(30, 3), passes: members * turns * 6,
		total:   members * turns,
		step:    func(e entry) bool { return e.words[0] == "turn" },
		stopped: func(ctx context.Context, _ *worker, pid int) bool { return a.giveAway(ctx, all, pid) }})
	if err != nil || a.row.Bad() {
		return err
	}
	a.row.Operations = members * turns
	return a.checkHosts(ctx, r, members, turns)
}

// giveAway takes a stopped process's members and gives them to a living one.
func (a *env) giveAway(ctx context.Context, all *roster.Roster, pid int) (gave bool) {
	ctx, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
	defer cancel()
	living, err := all.Hosts(ctx)
	if err != nil {
		return false
	}
	var from, to muster.HostID
	for _, p := range living {
		if p.PID == pid {
			from = p.ID()
		} else {
			to = p.ID()
		}
	}
	list, err := all.List(ctx)
	if err != nil || from == "" || to == "" {
		return false
	}
	for _, m := range list {
		if m.Host == from && m.Status != muster.Shutdown {
			_, err := all.TakeOver(ctx, m.Name, from, to) // the lock may be the stopped one's: it is continued then
			gave = gave || err == nil
		}
	}
	time.Sleep(400 * time.Millisecond) // so long the new host has for a first word in each conversation
	return gave
}

// hosted is a member as its host has it.
type hosted struct {
	t     *transcript.Transcript
	epoch int
	had   int
}

// hoster is a process that hosts members: it takes over those whose host is dead, and gives each its turns.
func hoster(ctx context.Context, r *services) error {
	all := roster.New(r.store, r.journal, "torture")
	host, err := all.Join(ctx, "torture")
	if err != nil {
		return err
	}
	defer func() { _ = host.Release() }() // the end of the process releases it too
	here := map[muster.Name]*hosted{}
	for first := true; ; first = false {
		members, err := all.List(ctx)
		if err != nil {
			return err
		}
		open := 0
		for _, m := range members {
			if m.Status == muster.Shutdown {
				continue
			}
			open++
			if err := r.attend(ctx, all, host.ID(), m, here); err != nil {
				return err
			}
		}
		if first {
			r.ready()
		}
		if open == 0 {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// attend runs the next turn of a member, unless a process that is alive hosts the member.
func (r *services) attend(ctx context.Context, all *roster.Roster, me muster.HostID, m muster.Member,
	here map[muster.Name]*hosted) (err error) {
	if m.Host != me {
		delete(here, m.Name)
		if m.Host != "" {
			if alive, err := all.Alive(ctx, m.Host); err != nil || alive {
				return err
			}
		}
		m, err = all.TakeOver(ctx, m.Name, m.Host, me)
		if errors.Is(err, muster.ErrStale) {
			return nil // another process was faster
		}
		if err != nil {
			return err
		}
		r.note("took", string(m.Name), number(m.Epoch), string(me))
	}
	h := here[m.Name]
	if h == nil || h.epoch != m.Epoch {
		if h, err = r.enter(ctx, all, m); err != nil || h == nil {
			return err
		}
		here[m.Name] = h
	}
	if h.had >= r.Count {
		_, err := all.Update(ctx, m.Name, func(now *muster.Member) {
			if now.Host == me {
				now.Status, now.Host = muster.Shutdown, ""
			}
		})
		return err
	}
	r.hold(200 * time.Millisecond)
	err = h.t.User(ctx, []llm.Part{llm.Text{Text: fmt.Sprintf("turn %d %d", h.epoch, h.had+1)}}, nil)
	if errors.Is(err, muster.ErrFenced) {
		r.note("late", string(m.Name), number(h.epoch))
		delete(here, m.Name) // looked at again
		return nil
	}
	if err != nil {
		return err
	}
	h.had++
	r.note("turn", string(m.Name), number(h.had))
	return nil
}

// enter opens a member's conversation and says in it who hosts it from now on: what an earlier host still writes is
// refused after that. Nil: somebody wrote meanwhile, and it is tried again.
func (r *services) enter(ctx context.Context, all *roster.Roster, m muster.Member) (*hosted, error) {
	t, err := transcript.Open(ctx, r.store.Log(), m.Name)
	if err != nil {
		return nil, err
	}
	if err := t.Mark(ctx, "epoch "+number(m.Epoch)); err != nil {
		if errors.Is(err, muster.ErrFenced) {
			return nil, nil
		}
		return nil, err
	}
	if now, err := all.Get(ctx, m.Name); err != nil || now.Epoch != m.Epoch {
		return nil, err // another process took it over before we said so
	}
	h := &hosted{t: t, epoch: m.Epoch}
	for e, err := range transcript.Read(ctx, r.store.Log(), m.Name, 0) {
		if err != nil {
			return nil, err
		}
		if e.Kind == transcript.KindUser {
			h.had++
		}
	}
	return h, nil
}

func (a *env) checkHosts(ctx context.Context, r *services, members, turns int) error {
	took := map[string]string{}
	for _, e := range a.ledgers.all {
		switch e.words[0] {
		case "late":
			a.row.Refused++
		case "took":
			key := e.words[1] + " " + e.words[2]
			if was, ok := took[key]; ok && was != e.words[3] {
				a.fail(&a.row.Doubled, "epoch %s of %s has two hosts: %s and %s", e.words[2], e.words[1], was,
					e.words[3])
			}
			took[key] = e.words[3]
		}
	}
	for i := range members {
		name := muster.Name(fmt.Sprintf("m%d", i+1))
		epoch, had := 0, 0
		for e, err := range transcript.Read(ctx, r.store.Log(), name, 0) {
			if err != nil {
				a.fail(&a.row.Lost, "the transcript of %s: %v", name, err)
				continue
			}
			words := strings.Fields(e.Text)
			if e.Kind == transcript.KindUser {
				words = strings.Fields(e.Message.Parts[0].(llm.Text).Text)
			}
			at, _ := strconv.Atoi(words[1])
			switch {
			case e.Kind == transcript.KindMark && at > epoch:
				epoch = at
			case e.Kind == transcript.KindUser && at < epoch:
				a.fail(&a.row.Doubled, "a host of epoch %d wrote into the conversation of %s after epoch %d had begun",
					at, name, epoch)
			}
			if e.Kind == transcript.KindUser {
				if had++; words[2] != number(had) {
					a.fail(&a.row.Doubled, "turn %s of %s stands where turn %d should", words[2], name, had)
				}
			}
		}
		if had != turns {
			a.fail(&a.row.Lost, "%s has had %d turns of %d", name, had, turns)
		}
	}
	return nil
}
