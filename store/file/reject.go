package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"unicode/utf8"

	"muster"
)

// rejectedUnit is a unit that is no mail, and its place.
type rejectedUnit struct {
	at place
	unit
}

// quarantined is a line of NAME.rejected.jsonl: what stood where, and why it is no mail.
type quarantined struct {
	Place string `json:"place"`
	Why   string `json:"why"`
	Line  string `json:"line,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // instead of Line, when it is no text
}

// quarantine copies units that are no mail to NAME.rejected.jsonl, each once, and reports those that it copied. It is
// a service to people and never delays mail: what fails is tried again at the next Peek.
func (b *box) quarantine(ctx context.Context, bad []rejectedUnit) {
	var unknown []rejectedUnit
	b.mu.Lock()
	for _, r := range bad {
		if !b.rejected[r.at] {
			unknown = append(unknown, r)
		}
	}
	b.mu.Unlock()
	if len(unknown) == 0 {
		return
	}
	// Without the lock of the box, because writing takes that of the inbox's file. Two Peeks may come here with the
	// same unit; the file then shows the second one that it is there.
	written, err := b.writeQuarantine(ctx, unknown)
	if err != nil {
		return
	}
	b.mu.Lock()
	for _, r := range unknown {
		b.rejected[r.at] = true
	}
	b.mu.Unlock()
	if b.s.OnReject != nil {
		for _, r := range written {
			b.s.OnReject(b.name, r.raw, r.why)
		}
	}
}

// writeQuarantine appends the units that no process has appended yet, and returns them. It reads the whole file each
// time, which is small: units that are no mail are rare.
func (b *box) writeQuarantine(ctx context.Context, bad []rejectedUnit) ([]rejectedUnit, error) {
	unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	path := filepath.Join(b.s.dir.Inbox(), string(b.name)+".rejected.jsonl")
	there := map[string]bool{}
	data, err := b.s.readAll(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for u := range bytes.Lines(data) {
		var a quarantined
		if json.Unmarshal(u, &a) == nil {
			there[a.Place] = true
		}
	}
	var fresh []rejectedUnit
	var out []byte
	for _, r := range bad {
		if there[r.at.String()] {
			continue
		}
		a := quarantined{Place: r.at.String(), Why: r.why, Line: string(r.raw)}
		if !utf8.Valid(r.raw) {
			a.Line, a.Bytes = "", r.raw
		}
		line, err := muster.MarshalLine(a)
		if err != nil {
			return nil, err
		}
		out, fresh = append(out, addChecksum(line)...), append(fresh, r)
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	t, err := b.s.files.OpenTail(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	if err := t.SetAside(); err != nil {
		return nil, err
	}
	_, err = t.Append(out)
	return fresh, err
}
