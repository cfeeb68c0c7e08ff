package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"muster"
)

// quarantined is a line of NAME.rejected.jsonl: what stood where, and why it is no mail.
type quarantined struct {
	Place string `json:"place"`
	Why   string `json:"why"`
	Line  string `json:"line,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // instead of Line, when it is no text
}

// quarantine copies units that are no mail to NAME.rejected.jsonl, each once, and reports those that it copied. It is
// a service to people and never delays mail: what fails is tried again at the next Peek.
func (b *box) quarantine(ctx context.Context, bad []unit) {
	b.mu.Lock()
	bad = slices.DeleteFunc(bad, func(u unit) bool { return b.rejected[u.place()] })
	b.mu.Unlock()
	if len(bad) == 0 {
		return
	}
	// Without the lock of the box, because writing takes that of the inbox's file. Two Peeks may come here with the
	// same unit; the file then shows the second one that it is there.
	written, err := b.writeQuarantine(ctx, bad)
	if err != nil {
		return
	}
	b.mu.Lock()
	for _, u := range bad {
		b.rejected[u.place()] = true
	}
	b.mu.Unlock()
	for _, u := range written {
		if b.s.OnReject != nil {
			b.s.OnReject(b.name, u.raw, u.why)
		}
	}
}

// writeQuarantine appends the units that no process has appended yet, and returns them. It reads the whole file each
// time, which is small: units that are no mail are rare.
func (b *box) writeQuarantine(ctx context.Context, bad []unit) (fresh []unit, err error) {
	unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	path := filepath.Join(b.s.dir.Inbox(), string(b.name)+".rejected.jsonl")
	data, _, err := b.s.files.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := map[string]bool{}
	for line := range bytes.Lines(data) {
		var a quarantined
		if json.Unmarshal(line, &a) == nil {
			there[a.Place] = true
		}
	}
	var out []byte
	for _, u := range bad {
		a := quarantined{Place: u.place().String(), Why: u.why, Line: string(u.raw)}
		if there[a.Place] {
			continue
		}
		if !utf8.Valid(u.raw) {
			a.Line, a.Bytes = "", u.raw
		}
		line, err := muster.MarshalLine(a)
		if err != nil {
			return nil, err
		}
		out, fresh = append(out, addChecksum(line)...), append(fresh, u)
	}
	if len(fresh) > 0 {
		_, err = b.s.files.Append(path, bytes.TrimSuffix(out, []byte("\n")))
	}
	return fresh, err
}
