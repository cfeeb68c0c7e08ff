// Package transcript keeps one agent's conversation as an append-only log, and gives it back after a crash at the exact
// turn. One process writes a transcript at a time: each append names the place where the writer believes the log
// ends, so one that woke too late is refused.
package transcript

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/llm"
)

// Shown is how many delivered mails LastDelivered can give.
const Shown = 20

// Transcript is one agent's log, and what it says of the current conversation. Safe for concurrent use.
type Transcript struct {
	log  muster.Log
	name muster.Name

	mu      sync.Mutex
	pos     muster.Pos // where the log ends, as far as this writer knows
	start   muster.Pos // the place before the current conversation
	talk    conversation
	loaded  bool // talk is in memory
	damaged int
	mark    string
	had     map[muster.MessageID]struct{} // every mail delivered in this life: some 50 bytes each
	last    []delivery                    // the newest, enough for Shown mails
}

// delivery is where an entry with mail lies, and while the conversation is in memory, the mail.
type delivery struct {
	before, at muster.Pos
	count      int
	mail       []muster.Message
}

// Open reads the transcript of the member; one that does not exist yet is empty.
func Open(ctx context.Context, l muster.Log, name muster.Name) (*Transcript, error) {
	t := &Transcript{log: l, name: name, loaded: true, had: map[muster.MessageID]struct{}{}}
	// The end first: were the last record a damaged one, reading alone would not say where it ends, and were the end
	// asked for after reading, what another process wrote between would seem to have been read.
	end, err := l.Tail(ctx, Stream(name), 0)
	if err != nil {
		return nil, err
	}
	for e, err := range Read(ctx, l, name, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
			t.damaged++
			t.pos = max(t.pos, e.Pos)
		case err != nil:
			return nil, err
		default:
			t.apply(e)
		}
	}
	t.pos = max(t.pos, end)
	return t, nil
}

// apply takes in one entry, read or just written.
func (t *Transcript) apply(e Entry) {
	for _, id := range e.Mail {
		if id != "" {
			t.had[id] = struct{}{}
		}
	}
	if mail := e.letters(); len(mail) > 0 {
		t.deliver(delivery{before: t.pos, at: e.Pos, count: len(mail), mail: mail})
	}
	switch e.Kind {
	case KindFresh:
		t.start = t.pos
	case KindMark:
		t.mark = e.Text
	}
	if t.loaded {
		t.talk.add(e)
	}
	t.pos = e.Pos
}

// deliver notes the newest delivery, and forgets those that are too old to be shown.
func (t *Transcript) deliver(d delivery) {
	if !t.loaded {
		d.mail = nil
	}
	t.last = append(t.last, d)
	n := 0
	for i := len(t.last) - 1; i > 0; i-- {
		if n += t.last[i].count; n >= Shown {
			t.last = slices.Clone(t.last[i:])
			return
		}
	}
}

// append writes an entry and takes it in as a reader would: what is sent now and what is sent after a restart are the
// same bytes. The lock is held by the caller.
func (t *Transcript) append(ctx context.Context, e Entry) error {
	e.At = muster.Stamp(time.Now())
	line, err := muster.Line(e)
	if err != nil {
		return muster.Errorf(muster.Invalid, "this cannot be written to the transcript of %s: %w", t.name, err)
	}
	if e, err = decode(muster.Record{Data: line}); err != nil {
		return err
	}
	pos, err := t.log.Append(ctx, Stream(t.name), t.pos, line)
	if errors.Is(err, muster.ErrStale) {
		return t.fenced()
	}
	if err != nil {
		return err
	}
	e.Pos = pos
	t.apply(e)
	return nil
}

func (t *Transcript) fenced() error {
	return muster.Errorf(muster.Fenced, "another process writes the conversation of %s", t.name)
}

// User adds what comes from outside, and the ids of the mails that the text brings: they are delivered when User returns
// nil. Other ids do no harm: the caller may note with one that it has said something. Errors: Fenced.
func (t *Transcript) User(ctx context.Context, parts []llm.Part, mail []muster.MessageID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(ctx, Entry{Kind: KindUser, Message: &llm.Message{Role: llm.User, Parts: parts}, Mail: mail})
}

// Reply adds a finished reply. Errors: Fenced; Invalid while calls of the reply before are unanswered.
func (t *Transcript) Reply(ctx context.Context, r llm.Reply) error {
	if err := t.Load(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.talk.Unanswered(); len(open) > 0 {
		return muster.Errorf(muster.Invalid, "the last reply of %s has %d unanswered calls: answer them first", t.name, len(open))
	}
	m := r.Message
	m.Role = llm.Assistant
	return t.append(ctx, Entry{Kind: KindReply, Message: &m, Stop: r.Stop, Usage: &r.Usage, Model: r.Model})
}

// Result adds the answer to one call. The first answer counts: another for the same call changes nothing.
// Errors: Fenced; Invalid when the last reply has no such call.
func (t *Transcript) Result(ctx context.Context, r llm.Result) error {
	if err := t.Load(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.ContainsFunc(t.talk.Unanswered(), func(c llm.Call) bool { return c.ID == r.ID }) {
		if t.talk.Answered(r.ID) {
			return nil
		}
		return muster.Errorf(muster.Invalid, "no call %q of %s waits for a result", r.ID, t.name)
	}
	return t.append(ctx, Entry{Kind: KindResult, Message: &llm.Message{Role: llm.User, Parts: []llm.Part{r}}})
}

// Fresh starts a new conversation with what User would add: in one step, so that no death in between leaves one without its
// first words. What was delivered stays delivered. Errors: Fenced.
func (t *Transcript) Fresh(ctx context.Context, parts []llm.Part, mail []muster.MessageID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(ctx, Entry{Kind: KindFresh, Message: &llm.Message{Role: llm.User, Parts: parts}, Mail: mail})
}

// Mark adds a note that is never sent to a model. Errors: Fenced.
func (t *Transcript) Mark(ctx context.Context, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(ctx, Entry{Kind: KindMark, Text: text})
}

// Take makes this process the one that writes: what another one, which wakes late, would append now is refused. Errors:
// Fenced, when somebody has written since Open; open it again then.
func (t *Transcript) Take(ctx context.Context, host muster.HostID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(ctx, Entry{Kind: KindHost, Text: string(host)})
}

// LastMark is the newest mark's text, "" when there is none.
func (t *Transcript) LastMark() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mark
}

// Messages is what a model is sent: the current conversation, which is only ever appended to. While calls are unanswered it
// ends with the reply that has them. It is empty while released.
func (t *Transcript) Messages() []llm.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.talk.Messages()
}

// Unanswered are the last reply's calls that have no result yet, in order.
func (t *Transcript) Unanswered() []llm.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.talk.Unanswered()
}

// Delivered reports whether the mail is in the transcript.
func (t *Transcript) Delivered(id muster.MessageID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.had[id]
	return ok
}

// LastDelivered are the last n delivered mails, at most Shown, oldest first, as they were rendered: with sender, type,
// time and content. None while released.
func (t *Transcript) LastDelivered(n int) []muster.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	var mail []muster.Message
	for _, d := range t.last {
		mail = append(mail, d.mail...)
	}
	return mail[max(0, len(mail)-max(0, min(n, Shown))):]
}

// Damaged is how many entries could not be read. The conversation goes on without them.
func (t *Transcript) Damaged() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damaged
}

// Pos is where the log ends, as far as this writer knows.
func (t *Transcript) Pos() muster.Pos {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pos
}

// Release frees the conversation. Its place in the log and what was delivered are kept, so User still works.
func (t *Transcript) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.talk, t.loaded = conversation{}, false
	for i := range t.last {
		t.last[i].mail = nil
	}
}

// Load brings a released conversation back; otherwise it does nothing. Errors: Fenced, when another process has
// written since.
func (t *Transcript) Load(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded {
		return nil
	}
	var talk conversation
	err := t.again(ctx, t.start, func(e Entry) bool {
		talk.add(e)
		return true
	})
	if err != nil {
		return err
	}
	for i, d := range t.last {
		err := t.again(ctx, d.before, func(e Entry) bool {
			if e.Pos == d.at {
				t.last[i].mail = e.letters()
			}
			return e.Pos < d.at
		})
		if err != nil {
			return err
		}
	}
	t.talk, t.loaded = talk, true
	return nil
}

// again reads what was read or written before, until f has enough.
func (t *Transcript) again(ctx context.Context, after muster.Pos, f func(Entry) bool) error {
	for e, err := range Read(ctx, t.log, t.name, after) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		if e.Pos > t.pos {
			return t.fenced()
		}
		if err == nil && !f(e) {
			return nil
		}
	}
	return nil
}
