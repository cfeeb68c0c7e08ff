// Package corruption reports records that cannot be read. Teller reports each once, whoever finds it and in however
// many processes, as an event and as a mail to the lead. Keep keeps the content of a record that is about to be
// replaced. Finding corrupt documents is the work of package state, whose collections report to a Teller.
package corruption

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/state"
	"muster/journal"
)

// Table has what was replaced: documents as Kept.
const Table = "damaged"

// Lanes is what events call the lanes' index, which is in no table.
const Lanes = "lanes"

// HalfWritten is how long to wait before a document that cannot be read is read again.
const HalfWritten = state.HalfWritten

const (
	// look is how many of the last events are searched for one that says the same.
	look = 10_000
	// grace is how long what must be told may go on without the caller's context.
	grace = 5 * time.Second
)

// Record is one record that cannot be read, at one revision.
type Record struct {
	Table, Key string
	Rev        muster.Rev
	Task       muster.TaskID // 0: it concerns no task
	Text       string        // what cannot be read, and why
	Done       string        // what was done about it; "": nothing, it lies as it is
}

// ID names the damage: the same in every process.
func (r Record) ID() string {
	sum := sha256.Sum256([]byte(r.Table + "\x00" + r.Key + "\x00" + string(r.Rev)))
	return hex.EncodeToString(sum[:8])
}

// notice is what the lead reads.
func (r Record) notice() string {
	if r.Done != "" {
		return r.Text + "; " + r.Done
	}
	return r.Text + ". It is left as it is, and everything else goes on; the user can see with muster doctor what is lost without it."
}

// Teller says what is damaged. It is safe for concurrent use.
type Teller struct {
	log     muster.Log
	inbox   muster.Inbox // nil: nobody is written to
	journal *journal.Journal

	mu   sync.Mutex
	said map[string]bool // by ID: told, by us or by others
}

// New is a teller into the journal and the lead's inbox; without an inbox only the event is written.
func New(log muster.Log, inbox muster.Inbox, j *journal.Journal) *Teller {
	return &Teller{log: log, inbox: inbox, journal: j, said: map[string]bool{}}
}

// Tell says each record that nobody has said yet. It goes on when ctx has ended. Only an engine that cannot be reached
// is an error; what could not be said is said by the next call.
func (t *Teller) Tell(ctx context.Context, all ...Record) error {
	if len(all) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	var down error
	for _, r := range all {
		if t.said[r.ID()] {
			continue
		}
		err := t.tell(ctx, r)
		t.said[r.ID()] = err == nil
		if down == nil && errors.Is(err, muster.ErrUnavailable) {
			down = err
		}
	}
	return down
}

// Report tells of the documents that a collection cannot read. It implements state.Reporter.
func (t *Teller) Report(ctx context.Context, all ...state.Unreadable) error {
	records := make([]Record, 0, len(all))
	for _, u := range all {
		r := Record{Table: u.Table, Key: u.Key, Rev: u.Rev, Text: u.Err.Error()}
		if id, err := strconv.Atoi(u.Key); err == nil && u.Table == muster.TableTasks {
			r.Task = muster.TaskID(id)
		}
		records = append(records, r)
	}
	return t.Tell(ctx, records...)
}

// tell mails first: the mail's id is the damage's, so that what a second one sends after a crash is read once. The
// event is written only if nothing came after what was read, so that of many processes one says it.
func (t *Teller) tell(ctx context.Context, r Record) error {
	e := muster.Event{Kind: journal.StateCorrupt, Task: r.Task, Fields: map[string]any{
		"text": r.Text, "table": r.Table, "key": r.Key, "rev": string(r.Rev)}}
	if r.Done != "" {
		e.Fields["text"] = r.Text + "; " + r.Done
	}
	after, err := t.journal.Tail(ctx, look)
	if err != nil {
		return err
	}
	for mailed := false; ; mailed = true {
		end, err := t.journal.Tail(ctx, 0) // before the reading
		if err != nil {
			return err
		}
		said := false
		if after, said, err = t.listen(ctx, r, after); err != nil || said {
			return err
		}
		if !mailed {
			if err := t.mail(ctx, r); err != nil {
				return err
			}
		}
		e.At = muster.Stamp(time.Now())
		line, err := muster.Line(e)
		if err != nil {
			return err
		}
		if _, err = t.log.Append(ctx, muster.StreamEvents, end, line); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// listen reads the events after a place, and returns from where to read on and whether one of them says it.
func (t *Teller) listen(ctx context.Context, r Record, after muster.Pos) (muster.Pos, bool, error) {
	for e, err := range t.journal.Read(ctx, after) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return after, false, err
		}
		after = max(after, e.Pos)
		if err == nil && e.Kind == journal.StateCorrupt && e.Text("table") == r.Table && e.Text("key") == r.Key && e.Text("rev") == string(r.Rev) {
			return after, true, nil
		}
	}
	return after, false, nil
}

// mail writes to the lead.
func (t *Teller) mail(ctx context.Context, r Record) error {
	if t.inbox == nil {
		return nil
	}
	return t.inbox.Put(ctx, muster.Lead, muster.Message{ID: muster.MessageID("damage-" + r.ID()), Type: muster.MailError, From: muster.System,
		To: muster.Lead, Content: r.notice(), At: muster.Stamp(time.Now()), TaskID: r.Task})
}

// Kept is a document that was replaced.
type Kept struct {
	Table string  `json:"table"`
	Key   string  `json:"key"`
	At    float64 `json:"at"`
	Why   string  `json:"why"`
	Text  string  `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"` // instead of Text, when it is no text
}

// Keep writes what is about to be replaced into the table Table, and returns its key there. Kept twice it is there
// once.
func Keep(ctx context.Context, kept muster.Table, table string, doc muster.Doc, why error) (key string, err error) {
	k := Kept{Table: table, Key: doc.Key, At: muster.Stamp(time.Now()), Why: why.Error(), Text: string(doc.Data)}
	if !utf8.Valid(doc.Data) {
		k.Text, k.Bytes = "", doc.Data
	}
	data, err := muster.Encode(k)
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "the damaged %s cannot be kept: %w", doc.Key, err)
	}
	sum := sha256.Sum256(doc.Data)
	key = fmt.Sprintf("%s-%s-%s", table, doc.Key, hex.EncodeToString(sum[:4]))
	if _, err = kept.Put(ctx, key, data, muster.None); errors.Is(err, muster.ErrStale) {
		err = nil
	}
	return key, err
}
