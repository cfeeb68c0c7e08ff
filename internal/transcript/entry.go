package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"muster"
	"muster/internal/compact"
	"muster/llm"
)

// Kind says what an entry is.
type Kind string

// The kinds of entries.
const (
	KindUser   Kind = "user"   // what entered from outside: Message, and the Mail that it brought
	KindReply  Kind = "reply"  // the model's: Message, Stop, Usage, Model
	KindResult Kind = "result" // the answer to one call: Message holds the one llm.Result
	KindFresh  Kind = "fresh"  // a new conversation starts here, with Message and Mail as of KindUser
	KindMark   Kind = "mark"   // a note of the runtime, never sent to a model: Text
	KindHost   Kind = "host"   // another process writes from here on: Text says which

	// KindCleared makes older parts of the conversation short: Changes.
	KindCleared Kind = "cleared"
	// KindCompressed puts Messages in the place of the whole conversation, with Mail and State as they are then; Text
	// says why. What was before stays in the log.
	KindCompressed Kind = "compressed"
)

// Entry is one record of a transcript. Its JSON is a format on disk.
type Entry struct {
	Pos     muster.Pos         `json:"-"` // the place after it
	Kind    Kind               `json:"kind"`
	At      float64            `json:"ts"`
	Message *llm.Message       `json:"message,omitempty"`
	Mail    []muster.MessageID `json:"mail,omitempty"` // the ids of mails, and of what else was said
	Stop    llm.Stop           `json:"stop,omitempty"`
	Usage   *llm.Usage         `json:"usage,omitempty"`
	Model   string             `json:"model,omitempty"`
	Text    string             `json:"text,omitempty"`

	Delivered []muster.Message `json:"delivered,omitempty"` // the mails; older transcripts have their ids only
	Messages  []llm.Message    `json:"messages,omitempty"`
	Changes   []compact.Change `json:"changes,omitempty"`
	State     json.RawMessage  `json:"state,omitempty"` // what the writer keeps with the conversation
}

// Stream returns the name of the log stream that holds the member's transcript.
func Stream(name muster.Name) string { return muster.StreamTranscripts + string(name) }

// Read yields the entries after a position, also while another process writes. An entry that cannot be read is yielded
// as an error with code Corrupt, with the position after it where known, and the sequence goes on. Any other error
// ends it.
func Read(ctx context.Context, l muster.Log, name muster.Name, after muster.Pos) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for rec, err := range l.Read(ctx, Stream(name), after) {
			e := Entry{Pos: rec.Pos}
			if err == nil {
				e, err = decode(rec)
			}
			if !yield(e, err) || err != nil && !errors.Is(err, muster.ErrCorrupt) {
				return
			}
		}
	}
}

// decode parses a record and checks that it holds what its kind requires.
func decode(rec muster.Record) (Entry, error) {
	e := Entry{Pos: rec.Pos}
	if err := json.Unmarshal(rec.Data, &e); err != nil {
		return Entry{Pos: rec.Pos}, muster.Errorf(muster.Corrupt, "an entry of the transcript cannot be read: %w", err)
	}
	var ok bool
	switch e.Kind {
	case KindUser, KindReply:
		ok = e.Message != nil
	case KindResult:
		_, ok = e.result()
	case KindFresh, KindMark, KindHost, KindCleared:
		ok = true
	case KindCompressed:
		ok = len(e.Messages) > 0
	}
	if !ok {
		return Entry{Pos: rec.Pos}, muster.Errorf(muster.Corrupt,
			"an entry of the transcript cannot be read: kind %q without what belongs to it", e.Kind)
	}
	return e, nil
}

// result returns the answer in an entry of KindResult.
func (e Entry) result() (llm.Result, bool) {
	if e.Message == nil || len(e.Message.Parts) != 1 {
		return llm.Result{}, false
	}
	r, ok := e.Message.Parts[0].(llm.Result)
	return r, ok
}

// MaxShown is the largest number of mails that LastDelivered returns.
const MaxShown = 20

// LastDelivered returns the last n mails that the member's transcript has, oldest first. It reads the whole log: mail
// is shown again so seldom that no process keeps its text. What an older muster delivered has no record there.
func LastDelivered(ctx context.Context, l muster.Log, name muster.Name, n int) (mail []muster.Message, err error) {
	mail, err = LastDeliveredSince(ctx, l, name, "")
	return mail[max(0, len(mail)-n):], err
}

// LastDeliveredSince returns the last mails that came after the last entry with a mark, at most MaxShown. Without such
// an entry all count.
func LastDeliveredSince(
	ctx context.Context, l muster.Log, name muster.Name, mark muster.MessageID,
) (mail []muster.Message, err error) {
	for e, err := range Read(ctx, l, name, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		if mark != "" && slices.Contains(e.Mail, mark) {
			mail = nil
		}
		mail = append(mail, e.Delivered...)
		mail = mail[max(0, len(mail)-MaxShown):]
	}
	return mail, nil
}
