package redact

import (
	"bytes"
	"io"
	"sync"
)

// Writer hides secrets in a stream. A secret may come in several pieces: what may be the beginning of one is held back
// until the next piece shows whether it is one. It is safe for concurrent use.
type Writer struct {
	secrets *Secrets
	to      io.Writer

	mu     sync.Mutex
	stream stream
}

// Writer returns a writer to w. Without secrets it holds nothing back.
func (s *Secrets) Writer(w io.Writer) *Writer { return &Writer{secrets: s, to: w} }

// Unwrap returns the writer below, which may be a terminal.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Write writes p and what was held back, in one write.
func (w *Writer) Write(p []byte) (int, error) {
	if w.secrets == nil {
		return w.to.Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.put(w.stream.add(w.secrets, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what is held back: nothing follows it.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put(w.stream.flush(w.secrets))
}

func (w *Writer) put(shown []byte) error {
	if len(shown) == 0 {
		return nil
	}
	_, err := w.to.Write(shown)
	return err
}

// stream hides secrets in a text that comes in pieces, which may cut a secret in two. What may be the beginning of one
// is held back until the next piece shows whether it is one. A nil *Secrets holds nothing back.
//
// Invariant: what a stream has given out never has minPiece bytes of a long secret in a row. A piece that was given out
// before it was known as one is shorter than that, and what belongs to it afterwards is hidden.
type stream struct {
	before []byte // the last bytes that were given out, before anything was hidden in them
	held   []byte // the end of the text, which may be the beginning of a secret
}

// add returns what can be shown of the text once p has come.
func (t *stream) add(s *Secrets, p []byte) []byte {
	if s == nil {
		return p
	}
	data := p
	if len(t.held) > 0 {
		data = append(t.held, p...)
	}
	end := s.safeEnd(data)
	t.held = bytes.Clone(data[end:])
	return t.give(s, data[:end])
}

// flush returns what was held back: nothing follows it.
func (t *stream) flush(s *Secrets) []byte {
	shown := t.give(s, t.held)
	*t = stream{}
	return shown
}

// give returns data with the secrets hidden that are in it or reach into it from what was given out before.
func (t *stream) give(s *Secrets, data []byte) []byte {
	n := len(t.before)
	if n == 0 {
		t.before = tail(data)
		return s.Bytes(data)
	}
	all := append(t.before, data...)
	found := s.find(all)
	for len(found) > 0 && found[0].to <= n {
		found = found[1:]
	}
	if len(found) > 0 {
		found[0].from = max(found[0].from, n)
	}
	t.before = tail(all)
	return hide(all, n, found)
}

// tail returns a copy of the end of data in which a piece of a secret can begin that the next bytes complete.
func tail(data []byte) []byte { return bytes.Clone(data[max(0, len(data)-minPiece+1):]) }
