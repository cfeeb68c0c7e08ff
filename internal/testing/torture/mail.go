package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/transcript"
	"muster/llm"
)

// boxes is how many inboxes there are, each with one reader.
const boxes = 4

// mail lets thirty-two processes send mail and four read it, and kills all of them. An acknowledged mail must be in
// its reader's transcript once, and the mails of each sender in their order. Sometimes half a line is left in an
// inbox, as by a writer that was killed during its write.
func mail(ctx context.Context, a *env) error {
	senders, each := 32, a.amount(1000, 40)
	if a.share < 0.01 {
		senders = 8
	}
	var jobs []Job
	for i := range boxes {
		jobs = append(jobs, Job{Kind: "read", Name: fmt.Sprintf("reader-%d", i+1), Count: senders / boxes * each})
	}
	for i := range senders {
		jobs = append(jobs, Job{Kind: "send", Name: fmt.Sprintf("s%d", i+1), To: fmt.Sprintf("reader-%d", i%boxes+1),
			Count: each})
	}
	torn, tears := 0, a.amount(100, 24)
	err := a.run(ctx, jobs, chaos{kills: a.amount(200, 12), passes: senders * each * 9, total: senders * each,
		step: func(e entry) bool { return e.words[0] == "sent" },
		tick: func(ctx context.Context, progress float64) {
			if torn < int(progress*float64(tears)) {
				torn++
				a.tear(ctx, torn%boxes+1, torn/boxes%2 == 0)
			}
		}})
	if err != nil {
		return err
	}
	a.row.Operations = senders * each
	return a.checkMail(ctx, senders, each)
}

// tear leaves half a line at the end of an inbox or a transcript, as who died in the middle of a write under the lock.
func (a *env) tear(ctx context.Context, box int, inbox bool) {
	name := fmt.Sprintf("reader-%d", box)
	lock, path := filepath.Join("inbox", name), filepath.Join(".team", "inbox", name+".jsonl")
	if !inbox {
		lock, path = filepath.Join("log", "transcripts-"+name), filepath.Join(".transcripts", name, "log.jsonl")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err := durable.New(durable.OS{}).Lock(ctx, filepath.Join(a.root(), ".team", "locks", lock+".lock"))
	if err != nil {
		return
	}
	defer unlock()
	f, err := os.OpenFile(filepath.Join(a.root(), path), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // there is none yet, or it has just become a segment
	}
	defer f.Close()
	_, _ = f.WriteString(`{"id":"torn","kind":"user","type":"message","from":"nobody","content":"half a`)
}

// sender sends its mails one after the other. After a kill it goes on after the last one that was acknowledged: the one
// that was under way is sent again, with the same id.
func sender(ctx context.Context, r *services) error {
	last := 0
	data, err := os.ReadFile(filepath.Join(filepath.Dir(r.Dir), "ledgers", r.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "sent "); ok {
			last, _ = strconv.Atoi(n)
		}
	}
	for n := last + 1; n <= r.Count; n++ {
		r.hold(time.Second)
		id := muster.MessageID(fmt.Sprintf("%s-%d", r.Name, n))
		if _, err := r.post.Send(ctx, muster.Message{ID: id, From: muster.Name(r.Name), To: muster.Name(r.To),
			Content: "mail " + number(n)}); err != nil {
			return err
		}
		r.note("sent", number(n))
		if n == last+1 {
			r.ready()
		}
	}
	return nil
}

// reader takes its mail into its transcript and drops it then, as a member does, until it has all.
func reader(ctx context.Context, r *services) error {
	name := muster.Name(r.Name)
	t, err := transcript.Open(ctx, r.store.Log(), name)
	if err != nil {
		return err
	}
	had := 0
	for e, err := range transcript.Read(ctx, r.store.Log(), name, 0) {
		if err != nil {
			return err
		}
		had += len(e.Mail)
	}
	changed := r.post.Watch(ctx, name)
	var at, last muster.Pos
	for first := true; had < r.Count; first = false {
		msgs, end, waiting, err := r.post.Peek(ctx, name, at, 0)
		if err != nil {
			return err
		}
		n, err := deliver(ctx, t, msgs, waiting)
		if err != nil {
			return err
		}
		had += n
		failpoint.Hit("teammate.delivered")
		if len(msgs) > 0 {
			if err := r.post.Drop(ctx, name, end); err != nil {
				return err
			}
			at, last = end, end
		}
		failpoint.Hit("teammate.dropped")
		if first {
			r.ready()
		}
		if len(msgs) == 0 {
			at = 0 // what came late into an older file is before the place
			if again, _, _, err := r.post.Peek(ctx, name, 0, 0); err != nil || len(again) > 0 {
				if err != nil {
					return err
				}
				continue
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-changed:
			}
		}
	}
	// What is delivered goes two seconds later, when nobody can still be writing to it.
	time.Sleep(2200 * time.Millisecond)
	return r.post.Drop(ctx, name, max(last, 1))
}

// deliver takes the mails that the transcript does not have yet into it, and returns how many these are.
func deliver(ctx context.Context, t *transcript.Transcript, msgs []muster.Message, waiting int) (int, error) {
	var fresh []muster.Message
	var ids []muster.MessageID
	for _, m := range msgs {
		if !t.Delivered(m.ID) {
			fresh, ids = append(fresh, m), append(ids, m.ID)
		}
	}
	if len(fresh) == 0 {
		return 0, nil
	}
	return len(ids), t.User(ctx, []llm.Part{llm.Text{Text: mailbox.Render(fresh, waiting)}}, ids)
}

// checkMail compares what the senders were promised with the transcripts.
func (a *env) checkMail(ctx context.Context, senders, each int) error {
	if a.row.Stuck > 0 || len(a.row.Violations) > 0 {
		// Who waits for mail that never comes is stuck because it is lost: that is what is said.
		a.row.Stuck, a.row.Violations = 0, nil
		defer func() {
			if !a.row.Bad() {
				a.fail(&a.row.Stuck, "the workers did not end")
			}
		}()
	}
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	seen, last := map[muster.MessageID]int{}, map[string]int{}
	for i := range boxes {
		for e, err := range transcript.Read(ctx, r.store.Log(), muster.Name(fmt.Sprintf("reader-%d", i+1)), 0) {
			if err != nil {
				a.fail(&a.row.Lost, "the transcript of reader-%d: %v", i+1, err)
				continue
			}
			for _, id := range e.Mail {
				seen[id]++
				from, n, _ := strings.Cut(string(id), "-")
				k, _ := strconv.Atoi(n)
				if k < last[from] {
					a.fail(nil, "mail %s was delivered after mail %d of the same sender", id, last[from])
				}
				last[from] = k
			}
		}
	}
	for _, e := range a.ledgers.all {
		if id := muster.MessageID(e.who + "-" + e.words[len(e.words)-1]); e.words[0] == "sent" && seen[id] == 0 {
			a.fail(&a.row.Lost, "mail %s was acknowledged and is nowhere", id)
		}
	}
	for id, n := range seen {
		if n > 1 {
			a.fail(&a.row.Doubled, "mail %s was delivered %d times", id, n)
		}
	}
	if len(seen) != senders*each && !a.row.Bad() {
		a.fail(&a.row.Lost, "%d mails of %d were delivered", len(seen), senders*each)
	}
	return nil
}
