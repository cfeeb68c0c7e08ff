package redact

import (
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

// put writes what can be shown.
func (w *Writer) put(shown []byte) error {
	if len(shown) == 0 {
		return nil
	}
	_, err := w.to.Write(shown)
	return err
}
