package muster

import (
	"context"
	"iter"
)

// The state contracts. Three rules hold for every engine:
//   - one step is one document, or one batch on one stream: no operation spans two documents;
//   - a lease tells who lives, it never guards an effect: an effect is guarded by a
//     revision, a position or a ref that the effect itself changes (compare-and-set);
//   - a watch is a hint (coalesced, may be spurious, never lost): the state is read again.
//
// store/storetest is the suite that every engine passes.

// Rev names the exact content of one document. It is opaque: compare with == only.
// store/file: hash of the bytes, because foreign programs write too and know no counter;
// store/mem: a counter; a KV store: its revision.
type Rev string

// None is the Rev of a document that does not exist.
const None Rev = ""

// Doc is one document. Rev None means that it was deleted.
type Doc struct {
	Key  string
	Rev  Rev
	Data []byte
}

// Mark is a place in the changes of one Table value. Zero is before the first. Never stored.
type Mark uint64

// Table is documents by key.
type Table interface {
	// Get returns the document. Errors: ErrNotFound, ErrCorrupt.
	Get(ctx context.Context, key string) (Doc, error)
	// Put writes the document if it is still at rev at; None: if it does not exist.
	// On nil it is durable. It keeps nothing of data. Errors: ErrStale.
	Put(ctx context.Context, key string, data []byte, at Rev) (Rev, error)
	// Delete removes it if it is still at rev at. Errors: ErrStale.
	Delete(ctx context.Context, key string, at Rev) error
	// Changes yields each document that changed after since, once, in its newest form
	// (Rev None: deleted), with the Mark to go on from. From zero it is the listing.
	// It is at least as new as what Get has returned, and Put has written, on this Table.
	// ErrCorrupt concerns that document alone and the sequence goes on; any other error ends it.
	Changes(ctx context.Context, since Mark) iter.Seq2[Change, error]
	// Watch receives after changes, own ones too, until ctx ends; then it is closed.
	Watch(ctx context.Context) <-chan struct{}
}

// Change is a Doc and the Mark after it.
type Change struct {
	Doc
	Mark Mark
}

// Pos is a place in a stream: what comes after it is unread. Zero is the beginning of what
// is left of the stream.
// It grows along the stream; it may be stored (cursors, Last-Event-ID).
type Pos uint64

// Anywhere as the place to append means: at the end, wherever that is.
const Anywhere = ^Pos(0)

// Record is one record and the place after it.
type Record struct {
	Pos  Pos
	Data []byte
}

// Log is append-only records by stream.
type Log interface {
	// Append adds recs in order if the stream still ends at at, and returns its new end.
	// On nil all are durable; a crash may leave the first few. Errors: ErrStale.
	Append(ctx context.Context, stream string, at Pos, recs ...[]byte) (Pos, error)
	// Read yields the records after the place, up to the end as it is now.
	// ErrCorrupt concerns that record alone and the sequence goes on. Errors: ErrTrimmed, not for zero.
	Read(ctx context.Context, stream string, after Pos) iter.Seq2[Record, error]
	// Tail returns the place that has the last n records after it; n = 0: the end.
	Tail(ctx context.Context, stream string, n int) (Pos, error)
	// Trim forgets what lies before the place; whole segments only, so some of it may stay.
	Trim(ctx context.Context, stream string, before Pos) error
	// Watch receives after appends to the stream, own ones too, until ctx ends; then it is closed.
	Watch(ctx context.Context, stream string) <-chan struct{}
}

// Inbox is pending mail by member. A box has many senders and one reader.
type Inbox interface {
	// Put adds m; durable on nil. The same ID may be stored twice: the reader, whose
	// transcript knows what was delivered, is the one that drops repeats.
	Put(ctx context.Context, box Name, m Message) error
	// Peek returns at most max pending mails after the place, oldest first, and the place after them.
	Peek(ctx context.Context, box Name, after Pos, max int) ([]Message, Pos, error)
	// Drop removes what lies before the place.
	Drop(ctx context.Context, box Name, before Pos) error
	// Watch receives after mail has come, until ctx ends; then it is closed.
	Watch(ctx context.Context, box Name) <-chan struct{}
}

// HostLeases begins the names of the leases of processes that host members. While one is held, a team is at work.
const HostLeases = "host-"

// Leases says which processes live.
type Leases interface {
	// Acquire takes the lease or returns ErrHeld at once.
	Acquire(ctx context.Context, name string) (Lease, error)
	// Held reports whether anyone has it now. Asking never makes an Acquire fail.
	Held(ctx context.Context, name string) (bool, error)
}

// Lease is a held lease.
type Lease interface {
	// Lost is closed when it is no longer ours. With the file engine that is only after Release.
	Lost() <-chan struct{}
	Release() error
}

// The tables of a Store, and their keys.
const (
	TableTasks    = "tasks"    // "1", "2", ...; and "meta": the next id, and dependencies that are being added
	TableMembers  = "members"  // a member's name
	TableRequests = "requests" // a request's id
	TableHosts    = "hosts"    // a lease's name: the process that holds it, and how many have held it before
	TableTeam     = "team"     // "run", "config"
)

// The streams of a Log. A transcript's stream is StreamTranscripts + name.
const (
	StreamEvents      = "events"       // the journal
	StreamClaims      = "claim_events" // a copy for its readers
	StreamLanes       = "lane_events"  // a copy for its readers
	StreamSpend       = "spend"        // what the calls of models cost
	StreamTranscripts = "transcripts/"
)

// Store is one engine. Lanes are of one machine: their index is a local file.
type Store interface {
	Table(name string) Table
	Log() Log
	Inbox() Inbox
	Leases() Leases
	Close() error
}
