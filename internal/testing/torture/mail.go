package torture

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/transcript"
)

// mail lets thirty-two processes send mail and four read it, and kills all of them. An acknowledged mail must be in
// its reader's transcript once, and the mails of each sender in their order. After each kill half a line is left, as by
// a writer that was killed during its write.
func mail(ctx context.Context, a *env) error {
	senders, readers := a.jobs("send", "s", min(a.amount(320, 8), 32)), a.jobs("read", "reader-", 4)
	for i := range senders {
		reader := &readers[i%len(readers)]
		senders[i].To = reader.Worker
		reader.Senders = append(reader.Senders, senders[i].Worker)
	}
	w := &workers{env: a, killed: a.tear}
	err := w.run(ctx, append(senders, readers...), a.randomArms(a.amount(400, 16)))
	if err == nil || a.row.stuck > 0 { // a reader waits for what was lost
		a.checkMail(ctx, readers)
	}
	return err
}

// tear leaves half a line where a killed sender or reader may have been writing: in an inbox or in a transcript.
func (a *env) tear(ctx context.Context, j job) {
	lock, path := fmt.Sprintf("inbox/%s.lock", j.To), fmt.Sprintf(".team/inbox/%s.jsonl", j.To)
	if j.To == "" {
		lock = fmt.Sprintf("log/transcripts-%s.lock", j.Worker)
		path = fmt.Sprintf(".transcripts/%s/log.jsonl", j.Worker)
	}
	unlock, err := durable.New(durable.OS{}).Lock(ctx, filepath.Join(a.Root(), ".team", "locks", lock))
	if err != nil {
		return
	}
	defer unlock()
	f, err := os.OpenFile(filepath.Join(a.Root(), path), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // there is none yet, or it has just become a segment
	}
	defer f.Close()
	_, _ = f.WriteString(`{"id":"torn","kind":"user","type":"message","from":"nobody","content":"half a`)
}

// lastMail is the id of the last mail of a sender, without the sender's name.
const lastMail = "-last"

// sender sends mails until it is told to finish. After a kill it goes on after the last mail that was acknowledged: the
// one that was under way is sent again, with the same id.
func sender(ctx context.Context, r *worker) error {
	for n := r.Done + 1; ; n++ {
		id := fmt.Sprintf("%s-%d", r.Worker, n)
		isLast := r.isFinishing()
		if isLast {
			id = string(r.Worker) + lastMail
		}
		_, err := r.Mail(ctx).Send(ctx, muster.Message{ID: muster.MessageID(id), From: r.Worker, To: r.To,
			Content: "mail " + id})
		if err != nil {
			return err
		}
		r.report("sent", id)
		if isLast {
			return nil
		}
	}
}

// reader takes its mail into its transcript and drops it then, as a member does, until it has the last mail of each
// sender.
func reader(ctx context.Context, r *worker) error {
	t, err := transcript.Open(ctx, r.Store().Log(), r.Worker)
	if err != nil {
		return err
	}
	changed := r.Mail(ctx).Watch(ctx, r.Worker)
	var at, last muster.Pos
	isMissing := func(s muster.Name) bool { return !t.Delivered(muster.MessageID(s) + lastMail) }
	for slices.ContainsFunc(r.Senders, isMissing) {
		msgs, end, waiting, err := r.Mail(ctx).Peek(ctx, r.Worker, at, 0)
		if err != nil {
			return err
		}
		switch {
		case len(msgs) > 0:
			fresh := slices.DeleteFunc(msgs, func(m muster.Message) bool { return t.Delivered(m.ID) })
			if len(fresh) > 0 {
				if err := t.Deliver(ctx, mailbox.Render(fresh, waiting), fresh); err != nil {
					return err
				}
			}
			failpoint.Hit("teammate.delivered")
			if err := r.Mail(ctx).Drop(ctx, r.Worker, end); err != nil {
				return err
			}
			failpoint.Hit("teammate.dropped")
			at, last = end, end
		case at > 0:
			at = 0 // mail that came late into an older file is before the position
		default:
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-changed:
			}
		}
	}
	// Delivered mail is removed two seconds later, when no other process can still be writing to its file.
	time.Sleep(2200 * time.Millisecond)
	return r.Mail(ctx).Drop(ctx, r.Worker, max(last, 1))
}

// delivered returns the mails in the transcript of name, in their order.
func (a *env) delivered(ctx context.Context, name muster.Name) (mails []string) {
	for e, err := range transcript.Read(ctx, a.Store().Log(), name, 0) {
		if err != nil {
			a.fail(&a.row.lost, "the transcript of %s: %v", name, err)
			continue
		}
		if e.Kind == transcript.KindCompressed { // it repeats what was said before
			continue
		}
		for _, id := range e.Mail {
			mails = append(mails, string(id))
		}
	}
	return mails
}

// checkMail compares what the senders were promised with the transcripts.
func (a *env) checkMail(ctx context.Context, readers []job) {
	seen, last := map[string]bool{}, map[string]int{}
	for _, r := range readers {
		for _, id := range a.delivered(ctx, r.Worker) {
			if seen[id] {
				a.fail(&a.row.doubled, "mail %s was delivered twice", id)
			}
			seen[id] = true
			from, number, _ := strings.Cut(id, "-")
			n, err := strconv.Atoi(number)
			if err != nil {
				n = math.MaxInt // the last one
			}
			if n < last[from] {
				a.fail(nil, "mail %s was delivered after mail %d of the same sender", id, last[from])
			}
			last[from] = n
		}
	}
	a.row.operations = len(seen)
	for _, p := range a.promises {
		if id := strings.TrimPrefix(p, "sent "); !seen[id] {
			a.fail(&a.row.lost, "mail %s was acknowledged and is nowhere", id)
		}
	}
}
