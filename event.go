package muster

import "encoding/json"

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
	var f eventFields
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*e = Event{Kind: f.Kind, At: f.At, Member: f.Member, Task: f.Task}
	if err := json.Unmarshal(data, &e.Fields); err != nil {
		return err
	}
	for _, k := range eventNames {
		delete(e.Fields, k)
	}
	return nil
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
