// Package transcript keeps one agent's conversation as an append-only log, and restores it after a crash at the exact
// turn.
//
// Transcript is what a member writes and sends to its model; Entry is one record of the log, and Read yields the
// records for others. Every method that adds an entry returns only when it is durable. One process writes a transcript
// at a time: each append names the position at which the writer believes the log ends, so a process that wakes late is
// refused with Fenced. What is sent to the model after a restart is byte for byte what was sent before.
//
// Damaged entries are left out, and the conversation is repaired so that a model accepts it. When to call the model is
// decided in package loop.
package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/compact"
	"muster/llm"
)

// Transcript is one agent's log and the current conversation in it. It is safe for concurrent use.
type Transcript struct {
	log  muster.Log
	name muster.Name

	mu sync.Mutex
	// pos is where the log ends as far as this writer knows. Each append must find it there.
	pos          muster.Pos
	conversation conversation
	// state is what the writer keeps with the conversation.
	state    json.RawMessage
	lastMark string
	// delivered holds the id of every mail delivered in this process's life, at about 50 bytes each.
	delivered map[muster.MessageID]bool
}

// Open reads the transcript of a member. One that does not exist yet is empty.
func Open(ctx context.Context, l muster.Log, name muster.Name) (*Transcript, error) {
	t := &Transcript{log: l, name: name, delivered: map[muster.MessageID]bool{}}
	// The end first: were the last record a damaged one, reading alone would not say where it ends, and were the end
	// asked for after reading, what another process wrote between would seem to have been read.
	end, err := l.Tail(ctx, Stream(name), 0)
	if err != nil {
		return nil, err
	}
	for e, err := range Read(ctx, l, name, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
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

// apply adds one entry, read or just written, to the state in memory.
func (t *Transcript) apply(e Entry) {
	for _, id := range e.Mail {
		if id != "" {
			t.delivered[id] = true
		}
	}
	switch e.Kind {
	case KindFresh, KindCompressed:
		t.state = e.State
	case KindMark:
		t.lastMark = e.Text
	}
	t.conversation.add(e)
	t.pos = e.Pos
}

// append writes an entry and then applies it exactly as a reader would, so that what is sent now and what is sent
// after a restart are the same bytes. The caller holds the lock.
func (t *Transcript) append(ctx context.Context, e Entry) error {
	e.At = muster.UnixTime(time.Now())
	line, err := muster.MarshalLine(e)
	if err != nil {
		return muster.Errorf(muster.Invalid, "this cannot be written to the transcript of %s: %w", t.name, err)
	}
	if e, err = decode(muster.Record{Data: line}); err != nil {
		return err
	}
	pos, err := t.log.Append(ctx, Stream(t.name), t.pos, line)
	if errors.Is(err, muster.ErrStale) {
		return t.errFenced()
	}
	if err != nil {
		return err
	}
	e.Pos = pos
	t.apply(e)
	return nil
}

// enter is append for a caller that does not hold the lock.
func (t *Transcript) enter(ctx context.Context, e Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(ctx, e)
}

// errFenced says that another process has written to the log.
func (t *Transcript) errFenced() error {
	return muster.Errorf(muster.Fenced, "another process writes the conversation of %s", t.name)
}

// User adds text from outside, and the ids of the mails in it, which count as delivered when User returns nil. The ids
// may include others, by which the caller notes that it has said something. Errors: Fenced.
func (t *Transcript) User(ctx context.Context, parts []llm.Part, mail []muster.MessageID) error {
	return t.enter(ctx, Entry{Kind: KindUser, Message: &llm.Message{Role: llm.User, Parts: parts}, Mail: mail})
}

// Reply adds a finished reply of the model. Errors: Fenced; Invalid while calls of the last reply are unanswered.
func (t *Transcript) Reply(ctx context.Context, r llm.Reply) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.conversation.Unanswered(); len(open) > 0 {
		return muster.Errorf(muster.Invalid, "the last reply of %s has %d unanswered calls: answer them first",
			t.name, len(open))
	}
	m := r.Message
	m.Role = llm.Assistant
	return t.append(ctx, Entry{Kind: KindReply, Message: &m, Stop: r.Stop, Usage: &r.Usage, Model: r.Model})
}

// Result adds the answer to one call. Only the first answer to a call counts; further ones change nothing. Errors:
// Fenced; Invalid if the last reply has no such call.
func (t *Transcript) Result(ctx context.Context, r llm.Result) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.ContainsFunc(t.conversation.Unanswered(), func(c llm.Call) bool { return c.ID == r.ID }) {
		if t.conversation.Answered(r.ID) {
			return nil
		}
		return muster.Errorf(muster.Invalid, "no call %q of %s waits for a result", r.ID, t.name)
	}
	return t.append(ctx, Entry{Kind: KindResult, Message: &llm.Message{Role: llm.User, Parts: []llm.Part{r}}})
}

// Fresh starts a new conversation with what User would add. Both are one entry, so that no crash leaves a conversation
// without its first words. Delivered mail stays delivered. Errors: Fenced.
func (t *Transcript) Fresh(ctx context.Context, parts []llm.Part, mail []muster.MessageID) error {
	return t.enter(ctx, Entry{Kind: KindFresh, Message: &llm.Message{Role: llm.User, Parts: parts}, Mail: mail})
}

// Deliver adds mail and the text of it, which count as delivered when Deliver returns nil. Errors: Fenced.
func (t *Transcript) Deliver(ctx context.Context, text string, mail []muster.Message) error {
	ids := make([]muster.MessageID, len(mail))
	for i, m := range mail {
		ids[i] = m.ID
	}
	return t.enter(ctx, Entry{Kind: KindUser, Mail: ids, Delivered: mail,
		Message: &llm.Message{Role: llm.User, Parts: llm.Parts{llm.Text{Text: text}}}})
}

// Clear makes older parts of the conversation short. Errors: Fenced.
func (t *Transcript) Clear(ctx context.Context, changes []compact.Change) error {
	return t.enter(ctx, Entry{Kind: KindCleared, Changes: changes})
}

// Compress puts messages in the place of the conversation, and notes ids as User does. State returns what the writer
// keeps with them. Messages, ids and state are one entry, so that a crash leaves all or nothing of them. Errors:
// Fenced; Invalid while calls are unanswered, because their results would have nowhere to go.
func (t *Transcript) Compress(ctx context.Context, messages []llm.Message, mail []muster.MessageID,
	state json.RawMessage, why string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.conversation.Unanswered(); len(open) > 0 {
		return muster.Errorf(muster.Invalid, "the last reply of %s has %d unanswered calls: answer them first",
			t.name, len(open))
	}
	return t.append(ctx, Entry{Kind: KindCompressed, Messages: messages, Mail: mail, State: state, Text: why})
}

// State returns what the writer has kept with the conversation when it was compressed last, nil for nothing.
func (t *Transcript) State() json.RawMessage {
	return locked(t, func() json.RawMessage { return t.state })
}

// Noted returns the ids that were noted in the current conversation by User, Fresh and Compress, in order.
func (t *Transcript) Noted() []muster.MessageID {
	return locked(t, func() []muster.MessageID { return slices.Clip(t.conversation.noted) })
}

// Counted returns how many tokens the provider has counted of the newest messages that a model has answered, its reply
// included, and how many messages these are. It is 0 if none is known.
func (t *Transcript) Counted() (tokens, messages int) {
	c := locked(t, func() conversation { return t.conversation })
	return c.tokens, c.counted
}

// Mark adds a note that is never sent to a model. Errors: Fenced.
func (t *Transcript) Mark(ctx context.Context, text string) error {
	return t.enter(ctx, Entry{Kind: KindMark, Text: text})
}

// TakeOver makes this process the writer: the next append of any other process is refused. Errors: Fenced if somebody
// has written since Open; the caller then opens the transcript again.
func (t *Transcript) TakeOver(ctx context.Context, host muster.HostID) error {
	return t.enter(ctx, Entry{Kind: KindHost, Text: string(host)})
}

// LastMark returns the text of the newest mark, or "" if there is none.
func (t *Transcript) LastMark() string { return locked(t, func() string { return t.lastMark }) }

// Messages returns what is sent to a model: the current conversation, which only ever grows. While calls are
// unanswered, it ends with the reply that made them.
func (t *Transcript) Messages() []llm.Message { return locked(t, t.conversation.Messages) }

// RepliedAt returns when the model replied last, in Unix seconds; 0 is unknown.
func (t *Transcript) RepliedAt() float64 {
	return locked(t, func() float64 { return t.conversation.repliedAt })
}

// Unanswered returns the calls of the last reply that have no result yet, in order.
func (t *Transcript) Unanswered() []llm.Call { return locked(t, t.conversation.Unanswered) }

// Delivered reports whether the mail is in the transcript.
func (t *Transcript) Delivered(id muster.MessageID) bool {
	return locked(t, func() bool { return t.delivered[id] })
}

// Pos returns where the log ends, as far as this writer knows.
func (t *Transcript) Pos() muster.Pos { return locked(t, func() muster.Pos { return t.pos }) }

// locked returns what read returns while it holds the lock of t.
func locked[T any](t *Transcript, read func() T) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return read()
}

// What stands where an entry could not be read.
const (
	lostStartText  = "(The beginning of this conversation cannot be read any more.)"
	lostResultText = "The record of this result cannot be read any more; the outcome is unknown: check first."
)

// conversation builds what is sent to a model, entry by entry. The history is always one that a model accepts,
// whatever entries were lost.
type conversation struct {
	llm.History
	tokens, counted int // see Counted
	noted           []muster.MessageID
	repliedAt       float64
}

// add appends what an entry says.
func (c *conversation) add(e Entry) {
	switch e.Kind {
	case KindFresh:
		*c = conversation{}
		if e.Message != nil { // an older muster wrote the words after it
			c.Say(e.Message.Parts...)
		}
	case KindUser:
		c.Say(e.Message.Parts...)
	case KindReply:
		c.reply(e)
	case KindResult:
		r, _ := e.result()
		c.Answer(r)
	case KindCompressed:
		*c = conversation{History: *llm.NewHistory(e.Messages)}
	case KindCleared:
		if len(c.Unanswered()) == 0 { // else an entry was lost, and what the changes are of is not known
			c.History, c.tokens, c.counted = *llm.NewHistory(compact.Apply(c.Messages(), e.Changes)), 0, 0
		}
	}
	c.noted = append(c.noted, e.Mail...)
}

// reply appends a reply of the model. Where entries before it were lost, it first closes the gap: open calls are
// answered, and a history never begins with a reply. Calls of a reply that was cut off are dropped, because the last
// one may be incomplete and none of them was run.
func (c *conversation) reply(e Entry) {
	c.repliedAt = e.At
	for _, call := range c.Unanswered() { // an entry between was lost
		r := llm.ErrorResult(lostResultText)
		r.ID = call.ID
		c.Answer(r)
	}
	if c.Len() == 0 {
		c.Say(llm.Text{Text: lostStartText})
	}
	parts := e.Message.Parts
	if e.Stop == llm.StopMax { // its last call may be cut, and none of them is run
		parts = slices.DeleteFunc(slices.Clone(parts), func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	}
	c.Reply(parts...)
	if u := e.Usage; u != nil && u.Prompt() > 0 {
		c.tokens, c.counted = u.Prompt()+u.Output, c.Len()
	}
}
