package redact

import (
	"context"

	"muster"
)

// Store returns a store that writes no secret: not in documents, not in streams, and not in mail. What is read comes as
// it is stored. Without secrets it returns st.
func (s *Secrets) Store(st muster.Store) muster.Store {
	if s == nil || st == nil {
		return st
	}
	switch st := st.(type) {
	case store, rootedStore:
		return st
	case rooted:
		return rootedStore{store{st, s}, st}
	}
	return store{st, s}
}

// rooted is a store on files, which says where it lies.
type rooted interface {
	muster.Store
	Root() string
}

// rootedStore is a store on files that writes no secret.
type rootedStore struct {
	store
	files rooted
}

// Root returns the directory of the store.
func (s rootedStore) Root() string { return s.files.Root() }

// store is a store that writes no secret.
type store struct {
	muster.Store
	secrets *Secrets
}

// Table returns a table.
func (s store) Table(name string) muster.Table { return table{s.Store.Table(name), s.secrets} }

// Log returns the streams.
func (s store) Log() muster.Log {
	l := s.Store.Log()
	if q, ok := l.(appendsSoon); ok {
		return quickLog{log{l, s.secrets}, q}
	}
	return log{l, s.secrets}
}

// Inbox returns the mail.
func (s store) Inbox() muster.Inbox { return inbox{s.Store.Inbox(), s.secrets} }

// table is a table that stores no secret.
type table struct {
	muster.Table
	secrets *Secrets
}

// Put stores a document.
func (t table) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	return t.Table.Put(ctx, key, t.secrets.record(data), at)
}

// log is a log that stores no secret.
type log struct {
	muster.Log
	secrets *Secrets
}

// Append appends records.
func (l log) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	return l.Log.Append(ctx, stream, at, l.hide(recs)...)
}

func (l log) hide(recs [][]byte) [][]byte {
	out := make([][]byte, len(recs))
	for i, r := range recs {
		out[i] = l.secrets.record(r)
	}
	return out
}

// appendsSoon is a log that can append without waiting for the disk.
type appendsSoon interface {
	AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error)
}

// quickLog is a log that can append without waiting for the disk.
type quickLog struct {
	log
	quick appendsSoon
}

// AppendSoon appends records without waiting for the disk.
func (l quickLog) AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error) {
	return l.quick.AppendSoon(ctx, stream, l.hide(recs)...)
}

// inbox is mail without secrets.
type inbox struct {
	muster.Inbox
	secrets *Secrets
}

// Put stores a mail.
func (i inbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	m.Content, m.Feedback, m.Plan = i.secrets.String(m.Content), i.secrets.String(m.Feedback), i.secrets.String(m.Plan)
	return i.Inbox.Put(ctx, box, m)
}
