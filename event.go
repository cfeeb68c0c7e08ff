package muster

import (
	"encoding/json"
	"errors"
)

// Event is one thing that happened, as a line of the journal: {"event","ts","member","task_id", and flat fields}.
// The kinds and their fields are listed in the package journal.
type Event struct {
	Kind   string
	At     float64
	Member Name   // who did it, or whom it concerns; "" when nobody
	Task   TaskID // 0 when none
	Fields map[string]any
}

// eventFields are the fields of the flat line that every event may have.
type eventFields struct {
	Kind   string  `json:"event"`
	At     float64 `json:"ts"`
	Member Name    `json:"member,omitempty"`
	Task   TaskID  `json:"task_id,omitempty"`
}

// MarshalJSON writes the flat line: what happened, when, who, which task, then the other fields by name.
func (e Event) MarshalJSON() ([]byte, error) {
	extra := Extra{}
	for k, v := range e.Fields {
		data, err := MarshalLine(v)
		if err != nil {
			return nil, err
		}
		extra[k] = data
	}
	for _, k := range eventNames {
		delete(extra, k)
	}
	return marshalKeep(eventFields{e.Kind, e.At, e.Member, e.Task}, extra)
}

// eventNames are the names of eventFields.
var eventNames = []string{"event", "ts", "member", "task_id"}

// UnmarshalJSON reads the flat line.
func (e *Event) UnmarshalJSON(data []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	kind, ok1 := takeField[string](fields, "event")
	at, ok2 := takeField[float64](fields, "ts")
	member, ok3 := takeField[string](fields, "member")
	task, ok4 := takeField[float64](fields, "task_id")
	if !ok1 || !ok2 || !ok3 || !ok4 || task != float64(TaskID(task)) {
		return errors.New("a field that every event may have is of another type")
	}
	*e = Event{Kind: kind, At: at, Member: Name(member), Task: TaskID(task), Fields: fields}
	return nil
}

// takeField moves a field out of fields. ok is false where it is of another type than T.
func takeField[T any](fields map[string]any, name string) (v T, ok bool) {
	raw := fields[name]
	delete(fields, name)
	if raw == nil {
		return v, true
	}
	v, ok = raw.(T)
	return v, ok
}

// Text is the field k as text, "" when it is not there.
func (e Event) Text(k string) string { s, _ := e.Fields[k].(string); return s }

// Number is the field k as a number, 0 when it is not there.
func (e Event) Number(k string) float64 {
	switch n := e.Fields[k].(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}
