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

	mu   sync.Mutex
	held []byte // the end of what was written, which may be the beginning of a secret
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
	data := p
	if len(w.held) > 0 {
		data = append(w.held, p...)
	}
	end := w.secrets.safeEnd(data)
	var err error
	if end > 0 {
		_, err = w.to.Write(w.secrets.Bytes(data[:end]))
	}
	w.held = append([]byte(nil), data[end:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what is held back: nothing follows it.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.to.Write(w.secrets.Bytes(w.held))
	w.held = nil
	return err
}
