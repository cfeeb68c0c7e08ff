package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/requests"
)

// decideRequests: six processes decide the same requests, each with an answer of its own, and are killed. Every
// request has one answer, which is what each of them was told, and it is mailed to who asked. The journal is full,
// and some are killed while they put it aside.
func decideRequests(ctx context.Context, a *env) error {
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	q := requests.New(r.store, r.post, r.journal)
	n, processes := a.amount(300, 20), 6
	for i := range n {
		if _, err := q.Ask(ctx, muster.Request{ID: requestID(i), Kind: muster.AskPlan, From: "asker", To: muster.Lead,
			TaskID: 1, Plan: fmt.Sprintf("plan %d", i)}); err != nil {
			return err
		}
	}
	var jobs []Job
	for i := range processes {
		jobs = append(jobs, Job{Kind: "decide", Name: fmt.Sprintf("d%d", i+1), Seed: a.rng.Uint64(), Count: n})
	}
	if err := a.fill(ctx); err != nil {
		return err
	}
	err = a.run(ctx, jobs, chaos{kills: a.amount(60, 6), passes: n * 20, total: n * processes,
		step: func(e entry) bool { return e.words[0] == "told" },
		arm: func(h *worker) string {
			of := []string{"kill:events.move.begin", "kill:events.move.moved", "kill:events.move.end", ""}
			return of[(int(h.job.Seed%4)+h.lives)%4]
		}})
	if err != nil || a.row.Bad() {
		return err
	}
	a.row.Operations = n
	if err := q.Settle(ctx); err != nil {
		return err
	}
	if err := a.checkRequests(ctx, r, q, n); err != nil {
		return err
	}
	return a.checkJournal(1)
}

// A filling is as many lines of the size that a journal's file is put aside after it.
const (
	fillings = 65
	filling  = 1 << 20
	filler   = `{"event":"run.note","ts":1,"text":"`
)

// fill appends to the journal, as another program would that knows the lock, until its file is full.
func (a *env) fill(ctx context.Context) error {
	path := filepath.Join(a.root(), ".team", "events.jsonl")
	unlock, err := durable.New(durable.OS{}).Lock(ctx, filepath.Join(a.root(), ".team", "locks", "log", "events.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	line := []byte(filler + strings.Repeat("x", filling) + "\"}\n")
	for i := 0; i < fillings && err == nil; i++ {
		_, err = f.Write(line)
	}
	return errors.Join(err, f.Close())
}

// checkJournal wants every line of the fillings, once, in files whose numbers are the places of their ends. It
// reads the files themselves: to read so much as records takes long.
func (a *env) checkJournal(filled int) error {
	dir := filepath.Join(a.root(), ".team")
	aside, err := filepath.Glob(filepath.Join(dir, "events.*.jsonl"))
	if err != nil {
		return err
	}
	if len(aside) == 0 {
		a.fail(nil, "the journal was full %d times, and was never put aside", filled)
	}
	number := func(path string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "events."), ".jsonl"))
		return n
	}
	slices.SortFunc(aside, func(x, y string) int { return number(x) - number(y) })
	had, end := 0, 0
	for _, path := range append(aside, filepath.Join(dir, "events.jsonl")) {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for line := range bytes.Lines(data) {
			if bytes.HasPrefix(line, []byte(filler)) {
				had++
			}
		}
		if end += len(data); filepath.Base(path) != "events.jsonl" && number(path) != end {
			a.fail(&a.row.Lost, "%s ends at %d", filepath.Base(path), end)
		}
	}
	switch want := filled * fillings; {
	case had < want:
		a.fail(&a.row.Lost, "%d of %d large lines of the journal are there", had, want)
	case had > want:
		a.fail(&a.row.Doubled, "%d lines of %d are in the journal", had, want)
	}
	return nil
}

func requestID(i int) muster.RequestID { return muster.RequestID(fmt.Sprintf("%08x", i+1)) }

// decider decides all requests in an order of its own, again from the start after a kill: what is decided stays.
func decider(ctx context.Context, r *services) error {
	q := requests.New(r.store, r.post, r.journal)
	rng := rand.New(rand.NewPCG(r.Seed, uint64(r.Life)))
	for k, i := range rng.Perm(r.Count) {
		r.hold(time.Second)
		got, now, err := q.Decide(ctx, requestID(i), muster.Lead, rng.IntN(2) == 0, r.Name)
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

func (a *env) checkRequests(ctx context.Context, r *services, q *requests.Requests, n int) error {
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
		case !requests.Final(req):
			a.fail(&a.row.Stuck, "request %s is %s", req.ID, req.Status)
		case len(deciders[key]) > 1:
			a.fail(&a.row.Doubled, "request %s was decided by %d processes", req.ID, len(deciders[key]))
		case len(told[key]) > 1 || !told[key][string(req.Status)+" by "+req.Response]:
			var all []string
			for answer := range told[key] {
				all = append(all, answer)
			}
			a.fail(&a.row.Doubled, "request %s is %s by %s, and people were told: %s", req.ID, req.Status,
				req.Response, strings.Join(all, "; "))
		case answers[req.ID] == 0:
			a.fail(&a.row.Lost, "the answer to request %s was mailed to nobody", req.ID)
		case answers[req.ID] > 1:
			a.fail(&a.row.Doubled, "request %s was answered by %d mails", req.ID, answers[req.ID])
		}
	}
	return nil
}
