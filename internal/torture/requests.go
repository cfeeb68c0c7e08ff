package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"muster"
	"muster/internal/protocol"
)

// requests: six processes decide the same requests, each with an answer of its own, and are killed. Every request has
// one answer, which is what each of them was told, and it is mailed to who asked.
func requests(ctx context.Context, a *arena) error {
	r, err := a.rooms()
	if err != nil {
		return err
	}
	defer r.store.Close()
	q := protocol.New(r.store, r.post, r.journal)
	n, processes := a.amount(300, 20), 6
	for i := range n {
		if _, err := q.Ask(ctx, muster.Request{ID: requestID(i), Kind: muster.AskPlan, From: "asker", To: muster.Lead, TaskID: 1, Plan: fmt.Sprintf("plan %d", i)}); err != nil {
			return err
		}
	}
	var jobs []Job
	for i := range processes {
		jobs = append(jobs, Job{Kind: "decide", Name: fmt.Sprintf("d%d", i+1), Seed: a.dice.Uint64(), Count: n})
	}
	err = a.run(ctx, jobs, chaos{kills: a.amount(60, 6), passes: n * 20, total: n * processes,
		step: func(e entry) bool { return e.words[0] == "told" }})
	if err != nil || a.row.Bad() {
		return err
	}
	a.row.Operations = n
	if err := q.Settle(ctx); err != nil {
		return err
	}
	return a.checkRequests(ctx, r, q, n)
}

func requestID(i int) muster.RequestID { return muster.RequestID(fmt.Sprintf("%08x", i+1)) }

// decider decides all requests in an order of its own, again from the start after a kill: what is decided stays.
func decider(ctx context.Context, r *rooms) error {
	q := protocol.New(r.store, r.post, r.journal)
	dice := rand.New(rand.NewPCG(r.Seed, uint64(r.Life)))
	for k, i := range dice.Perm(r.Count) {
		got, now, err := q.Decide(ctx, requestID(i), muster.Lead, dice.IntN(2) == 0, r.Name)
		if err != nil {
			return err
		}
		r.note("told", number(i), string(got.Status), got.Response, fmt.Sprint(now))
		if k == 0 {
			r.ready()
		}
	}
	return nil
}

func (a *arena) checkRequests(ctx context.Context, r *rooms, q *protocol.Requests, n int) error {
	deciders := map[string]map[string]bool{}
	told := map[string]map[string]bool{}
	for _, e := range a.ledgers.all {
		if e.words[0] != "told" {
			continue
		}
		i, answer := e.words[1], e.words[2]+" by "+e.words[3]
		if told[i] == nil {
			told[i], deciders[i] = map[string]bool{}, map[string]bool{}
		}
		told[i][answer] = true
		if e.words[4] == "true" {
			deciders[i][e.who] = true
		}
	}
	mails, _, _, err := r.post.Peek(ctx, "asker", 0, 1<<30)
	if err != nil {
		return err
	}
	answers := map[muster.RequestID]int{}
	for _, m := range mails {
		answers[m.RequestID]++
	}
	for i := range n {
		req, err := q.Get(ctx, requestID(i))
		if err != nil {
			return err
		}
		key := number(i)
		switch {
		case !protocol.Final(req):
			a.fail(&a.row.Stuck, "request %s is %s", req.ID, req.Status)
		case len(deciders[key]) > 1:
			a.fail(&a.row.Doubled, "request %s was decided by %d processes", req.ID, len(deciders[key]))
		case len(told[key]) > 1 || !told[key][string(req.Status)+" by "+req.Response]:
			var all []string
			for answer := range told[key] {
				all = append(all, answer)
			}
			a.fail(&a.row.Doubled, "request %s is %s by %s, and people were told: %s", req.ID, req.Status, req.Response, strings.Join(all, "; "))
		case answers[req.ID] == 0:
			a.fail(&a.row.Lost, "the answer to request %s was mailed to nobody", req.ID)
		case answers[req.ID] > 1:
			a.fail(&a.row.Doubled, "request %s was answered by %d mails", req.ID, answers[req.ID])
		}
	}
	return nil
}
