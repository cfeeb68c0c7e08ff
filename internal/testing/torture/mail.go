package torture

import (
	"context"
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
// its reader's transcript once, and the mails of each sender in their order. Meanwhile, half a line is left in inboxes
// and transcripts, as by a writer that was killed during its write.
func mail(ctx context.Context, a *env) error {
	senders := min(a.amount(320, 8), 32)
	var jobs []Job
	for i := range senders {
		jobs = append(jobs, Job{Kind: "send", Name: fmt.Sprintf("s%d", i+1), Seed: a.rng.Uint64(), To: box(i % boxes)})
	}
	for i := range boxes {
		jobs = append(jobs, Job{Kind: "read", Name: box(i), Seed: a.rng.Uint64(),
			Senders: (senders + boxes - 1 - i) / boxes})
	}
	tearing, stop := context.WithCancel(ctx)
	defer stop()
	torn := make(chan struct{})
	go func() {
		defer close(torn)
		for i := 0; tearing.Err() == nil; i++ {
			a.tear(tearing, box(i%boxes), i/boxes%2 == 0)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	w := &workers{env: a}
	err := w.run(ctx, jobs, a.atRandom(a.amount(200, 16)))
	stop()
	<-torn
	if err != nil || a.row.Bad() && a.row.Stuck == 0 {
		return err
	}
	return a.checkMail(ctx)
}

// box returns the name of the i-th reader.
func box(i int) string { return fmt.Sprintf("reader-%d", i+1) }

// tear leaves half a line at the end of an inbox or a transcript.
func (a *env) tear(ctx context.Context, name string, inbox bool) {
	lock, path := filepath.Join("inbox", name), filepath.Join(".team", "inbox", name+".jsonl")
	if !inbox {
		lock, path = filepath.Join("log", "transcripts-"+name), filepath.Join(".transcripts", name, "log.jsonl")
	}
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

// lastMail is the suffix of the id of the last mail of a sender.
const lastMail = ".last"

// sender sends mails until it is told to finish. After a kill it goes on after the last mail that was acknowledged: the
// one that was under way is sent again, with the same id.
func sender(ctx context.Context, r *services) error {
	for n := r.Done + 1; ; n++ {
		id := fmt.Sprintf("%s-%d", r.Name, n)
		isLast := r.isFinishing()
		if isLast {
			id += lastMail
		}
		if _, err := r.post.Send(ctx, muster.Message{ID: muster.MessageID(id), From: muster.Name(r.Name),
			To: muster.Name(r.To), Content: "mail " + id}); err != nil {
			return err
		}
		r.report("sent", id)
		if isLast {
			return nil
		}
		if n == r.Done+1 {
			r.report(isReady)
		}
	}
}

// reader takes its mail into its transcript and drops it then, as a member does, until it has all last mails.
func reader(ctx context.Context, r *services) error {
	name := muster.Name(r.Name)
	t, err := transcript.Open(ctx, r.store.Log(), name)
	if err != nil {
		return err
	}
	lasts := 0
	for e, err := range transcript.Read(ctx, r.store.Log(), name, 0) {
		if err != nil {
			return err
		}
		lasts += countLasts(e.Mail)
	}
	r.report(isReady)
	changed := r.post.Watch(ctx, name)
	var at, last muster.Pos
	for lasts < r.Senders {
		msgs, end, waiting, err := r.post.Peek(ctx, name, at, 0)
		if err != nil {
			return err
		}
		more, err := deliver(ctx, t, msgs, waiting)
		if err != nil {
			return err
		}
		lasts += more
		failpoint.Hit("teammate.delivered")
		if len(msgs) > 0 {
			if err := r.post.Drop(ctx, name, end); err != nil {
				return err
			}
			failpoint.Hit("teammate.dropped")
			at, last = end, end
			continue
		}
		at = 0 // mail that came late into an older file is before the position
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
	// Delivered mail is removed two seconds later, when no other process can still be writing to its file.
	time.Sleep(2200 * time.Millisecond)
	return r.post.Drop(ctx, name, max(last, 1))
}

// deliver takes the mails that the transcript does not have yet into it, and returns how many are the last of a sender.
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
	return countLasts(ids), t.User(ctx, []llm.Part{llm.Text{Text: mailbox.Render(fresh, waiting)}}, ids)
}

// countLasts returns how many of the mails are the last of their sender.
func countLasts(ids []muster.MessageID) (n int) {
	for _, id := range ids {
		if strings.HasSuffix(string(id), lastMail) {
			n++
		}
	}
	return n
}

// checkMail compares what the senders were promised with the transcripts.
func (a *env) checkMail(ctx context.Context) error {
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	seen, last := map[string]int{}, map[string]int{}
	for i := range boxes {
		for e, err := range transcript.Read(ctx, r.store.Log(), muster.Name(box(i)), 0) {
			if err != nil {
				a.fail(&a.row.Lost, "the transcript of %s: %v", box(i), err)
				continue
			}
			for _, mail := range e.Mail {
				id := string(mail)
				if seen[id]++; seen[id] == 2 {
					a.fail(&a.row.Doubled, "mail %s was delivered twice", id)
				}
				from, number, _ := strings.Cut(strings.TrimSuffix(id, lastMail), "-")
				n, _ := strconv.Atoi(number)
				if n < last[from] {
					a.fail(nil, "mail %s was delivered after mail %d of the same sender", id, last[from])
				}
				last[from] = n
			}
		}
	}
	a.row.Operations = len(seen)
	for _, p := range a.promises {
		if id := p.words[1]; seen[id] == 0 {
			a.fail(&a.row.Lost, "mail %s was acknowledged and is nowhere", id)
		}
	}
	return nil
}
