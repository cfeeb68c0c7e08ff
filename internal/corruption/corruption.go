// Package corruption reports records that cannot be read. Teller reports each once, whoever finds it and in however
// many processes, as an event and as a mail to the lead. Keep keeps the content of a record that is about to be
// replaced. Finding corrupt documents is the work of package state, whose collections report to a Teller.
//
// A report is identified by the table, the key and the revision of the record, which are the same in every process.
// Nothing else is kept of it: the journal says what was reported, and each process only remembers what it has found
// there. A report is no condition for anything: who finds a corrupt record goes on with all others.
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
	"muster/internal/clock"
	"muster/internal/state"
	"muster/journal"
)

// Table is the name of the table that has what was replaced, as documents of type Kept.
const Table = "damaged"

// Lanes is the name that events use for the lanes' index, which is in no table.
const Lanes = "lanes"

// searchedEvents is how many of the last events are searched for one that reports the same record.
const searchedEvents = 10_000

// Record is one record that cannot be read, at one revision. A record that is damaged again, in another way, has
// another revision and is reported again.
type Record struct {
	Table, Key string
	Rev        muster.Rev
	Task       muster.TaskID // 0 if it concerns no task
	Text       string        // what cannot be read, and why
	Done       string        // what was done about it; "" if it was left as it is
}

// ID identifies the record and its revision. It is the same in every process.
func (r Record) ID() string {
	sum := sha256.Sum256([]byte(r.Table + "\x00" + r.Key + "\x00" + string(r.Rev)))
	return hex.EncodeToString(sum[:8])
}

// event returns the event that reports the record.
func (r Record) event() muster.Event {
	text := r.Text
	if r.Done != "" {
		text += "; " + r.Done
	}
	return muster.Event{Kind: journal.StateCorrupt, Task: r.Task, At: muster.UnixTime(time.Now()),
		Fields: map[string]any{"text": text, "table": r.Table, "key": r.Key, "rev": string(r.Rev)}}
}

// isReportedBy reports whether an event is about the record.
func (r Record) isReportedBy(e muster.Event) bool {
	return e.Kind == journal.StateCorrupt && e.Text("table") == r.Table && e.Text("key") == r.Key &&
		e.Text("rev") == string(r.Rev)
}

// mail returns the mail that reports the record to the lead. Its id is that of the record, so whoever reads the inbox
// drops what a second process has sent.
func (r Record) mail() muster.Message {
	text := r.Text + "; " + r.Done
	if r.Done == "" {
		text = r.Text + ". It is left as it is, and everything else goes on; " +
			"the user can see with muster doctor what is lost without it."
	}
	return muster.Message{ID: muster.MessageID("damage-" + r.ID()), Type: muster.MailError, From: muster.System,
		To: muster.Lead, Content: text, At: muster.UnixTime(time.Now()), TaskID: r.Task}
}

// Teller reports records that cannot be read. It is safe for concurrent use.
type Teller struct {
	log     muster.Log
	inbox   muster.Inbox // nil: only the events report
	journal *journal.Journal

	mu       sync.Mutex
	reported map[string]bool // by ID, by this process or by another
}

// New returns a Teller that reports to the journal and to the lead's inbox, or to the journal alone when inbox is nil.
func New(log muster.Log, inbox muster.Inbox, j *journal.Journal) *Teller {
	return &Teller{log: log, inbox: inbox, journal: j, reported: map[string]bool{}}
}

// Tell reports each record that nobody has reported yet. It goes on for a moment when ctx has ended. Its only error is
// Unavailable: the engine cannot be reached. What could not be reported is reported by the next call.
func (t *Teller) Tell(ctx context.Context, all ...Record) (errDown error) {
	if len(all) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	for _, r := range all {
		if t.reported[r.ID()] {
			continue
		}
		err := t.tell(ctx, r)
		// A report that failed is tried again by the next call, with the same id.
		t.reported[r.ID()] = err == nil
		if errDown == nil && errors.Is(err, muster.ErrUnavailable) {
			errDown = err
		}
	}
	return errDown
}

// Report reports the documents that a collection cannot read. It implements state.Reporter.
func (t *Teller) Report(ctx context.Context, all ...state.Unreadable) error {
	records := make([]Record, 0, len(all))
	for _, u := range all {
		r := Record{Table: u.Table, Key: u.Key, Rev: u.Rev, Text: muster.PlainText(u.Err)}
		if id, err := strconv.Atoi(u.Key); err == nil && u.Table == muster.TableTasks {
			r.Task = muster.TaskID(id)
		}
		records = append(records, r)
	}
	return t.Tell(ctx, records...)
}

// tell reports one record. The mail goes first, because it may be sent twice: its id makes the second one harmless
// after a crash. The event is appended only if nothing came after what was searched, so one of many processes writes
// it.
func (t *Teller) tell(ctx context.Context, r Record) error {
	after, err := t.journal.Tail(ctx, searchedEvents)
	if err != nil {
		return err
	}
	for isMailed := false; ; isMailed = true {
		end, err := t.journal.Tail(ctx, 0) // before the search: an event that comes during it makes the append stale
		if err != nil {
			return err
		}
		for e, err := range t.journal.Read(ctx, after) {
			if err != nil && !errors.Is(err, muster.ErrCorrupt) {
				return err
			}
			after = max(after, e.Pos)
			if err == nil && r.isReportedBy(e.Event) {
				return nil
			}
		}
		// Once in a call: a stale append only means that other events came in between.
		if !isMailed && t.inbox != nil {
			if err := t.inbox.Put(ctx, muster.Lead, r.mail()); err != nil {
				return err
			}
		}
		line, err := muster.MarshalLine(r.event())
		if err != nil {
			return err
		}
		// Stale: something came since the search, perhaps the same report by another process. It is searched next.
		if _, err = t.log.Append(ctx, muster.StreamEvents, end, line); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// Kept is a document that was replaced, for people who look for what was lost. Nothing reads it back.
type Kept struct {
	Table string  `json:"table"`
	Key   string  `json:"key"`
	At    float64 `json:"at"`
	Why   string  `json:"why"`
	Text  string  `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"` // instead of Text, if it is not UTF-8
}

// Keep writes what is about to be replaced into kept, the table Table, and returns its key there. The key has a
// digest of the content, so that the same content is kept once, however often a crash makes it be kept.
func Keep(ctx context.Context, kept muster.Table, table string, doc muster.Doc, why error) (key string, err error) {
	k := Kept{Table: table, Key: doc.Key, At: muster.UnixTime(time.Now()), Why: why.Error(), Text: string(doc.Data)}
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
