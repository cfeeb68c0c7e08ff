package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"muster"
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
)

// Entry is one record of a transcript. Its JSON is a format on disk.
type Entry struct {
	Pos     muster.Pos         `json:"-"` // the place after it
	Kind    Kind               `json:"kind"`
	At      float64            `json:"ts"`
	Message *llm.Message       `json:"message,omitempty"`
	Mail    []muster.MessageID `json:"mail,omitempty"` // ids; their text is in the message
	Stop    llm.Stop           `json:"stop,omitempty"`
	Usage   *llm.Usage         `json:"usage,omitempty"`
	Model   string             `json:"model,omitempty"`
	Text    string             `json:"text,omitempty"`
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
	case KindFresh, KindMark, KindHost:
		ok = true
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

// LastDelivered returns the last n mails that the member's transcript has, oldest first, as they were rendered. It
// reads the whole log: mail is shown again so seldom that no process keeps its text.
func LastDelivered(ctx context.Context, l muster.Log, name muster.Name, n int) (mail []muster.Message, err error) {
	for e, err := range Read(ctx, l, name, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		mail = append(mail, e.renderedMail()...)
		mail = mail[max(0, len(mail)-min(n, MaxShown)):]
	}
	return mail, nil
}

// renderedMail returns the mails that the entry brought, parsed from its text: the JSON list between the marks.
// Escaped text stays escaped.
func (e Entry) renderedMail() (mail []muster.Message) {
	if e.Kind != KindUser || len(e.Mail) == 0 {
		return nil
	}
	for _, p := range e.Message.Parts {
		t, _ := p.(llm.Text)
		_, list, _ := strings.Cut(t.Text, "<inbox>")
		list, _, ok := strings.Cut(list, "</inbox>")
		var some []muster.Message
		if ok && json.Unmarshal([]byte(list), &some) == nil {
			mail = append(mail, some...)
		}
	}
	return mail
}
