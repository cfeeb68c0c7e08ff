package muster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// MessageType says what a mail is.
type MessageType string

// The types of mail.
const (
	MailMessage        MessageType = "message"
	MailBroadcast      MessageType = "broadcast"
	MailResult         MessageType = "result"            // a member's closing words; wakes nobody
	MailIdle           MessageType = "idle_notification" // status news; wakes nobody
	MailLanded         MessageType = "task_landed"       // status news; wakes nobody
	MailReturned       MessageType = "task_returned"
	MailShutdown       MessageType = "shutdown_request"
	MailShutdownAnswer MessageType = "shutdown_response"
	MailPlan           MessageType = "plan_approval_request"
	MailPlanAnswer     MessageType = "plan_approval_response"
	MailError          MessageType = "error"
	MailCompact        MessageType = "compact" // the user has the conversation compressed; content: what to keep
	MailClear          MessageType = "clear"   // the user has the conversation begin anew
)

// News reports whether a mail of this type is status news: it is delivered with whatever comes next and wakes no model.
func (t MessageType) News() bool { return t == MailResult || t == MailIdle || t == MailLanded }

// Message is one mail: a line of .team/inbox/NAME.jsonl. The sender mints ID before its first try, so that a repeated
// try is the same mail. The runtime sets From, so no model can write in the name of another member.
type Message struct {
	ID        MessageID   `json:"id"`
	Type      MessageType `json:"type"`
	From      Name        `json:"from"`
	To        Name        `json:"to"`
	Content   string      `json:"content"`
	At        float64     `json:"timestamp"`
	RequestID RequestID   `json:"request_id,omitempty"`
	Approve   *bool       `json:"approve,omitempty"`
	Feedback  string      `json:"feedback,omitempty"`
	Plan      string      `json:"plan,omitempty"`
	TaskID    TaskID      `json:"task_id,omitempty"`
	// Other is a JSON object of what another program wrote beside these fields, within bounds: see otherFields. "" is
	// nothing.
	Other string `json:"-"`
}

// messageFields has no methods, so that package json fills and writes the fields by itself.
type messageFields Message

// MarshalJSON writes m with the fields it did not know.
func (m Message) MarshalJSON() ([]byte, error) {
	var other Extra
	if json.Unmarshal([]byte(m.Other), &other) != nil {
		other = nil // it is "", or no object
	}
	return marshalKeep(messageFields(m), other)
}

// UnmarshalJSON reads a mail, also as other programs write it: sender for from, ts for timestamp, approved for approve,
// plan_request and plan_approval for plan_approval_request, no id, no to, no type. An object without content, sender
// and type is no mail: the error is Corrupt.
func (m *Message) UnmarshalJSON(data []byte) error {
	var f struct {
		messageFields
		Sender   Name    `json:"sender"`
		TS       float64 `json:"ts"`
		Approved *bool   `json:"approved"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	f.From, f.At, f.Approve = cmp.Or(f.From, f.Sender), cmp.Or(f.At, f.TS), cmp.Or(f.Approve, f.Approved)
	switch f.Type {
	case "":
		if f.Content == "" && f.From == "" {
			return Errorf(Corrupt, "this is not a mail: it has neither type, sender nor content")
		}
		f.Type = MailMessage
	case "plan_request", "plan_approval":
		f.Type = MailPlan
	}
	*m = Message(f.messageFields)
	m.Other = otherFields(data)
	return nil
}

// What is kept of the fields of a mail that we do not know.
const (
	maxMailFields = 16   // how many
	maxMailField  = 2000 // bytes of a name and its value
)

// otherFields returns an object of the fields of a mail that Message does not know, at most maxMailFields of them, and
// "" for none. In the place of a value that is too long it says how long that is.
func otherFields(data []byte) string {
	var all Extra
	if json.Unmarshal(data, &all) != nil {
		return ""
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
		return slices.Contains(mailFields(), strings.ToLower(name)) || len(name) > maxMailField
	})
	if len(all) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(all))
	for i, name := range names {
		if value := all[name]; i >= maxMailFields {
			delete(all, name)
		} else if len(name)+len(value) > maxMailField {
			all[name] = fmt.Appendf(nil, `"(%d bytes, left out)"`, len(value))
		}
	}
	kept, err := MarshalLine(map[string]json.RawMessage(all))
	if err != nil {
		return ""
	}
	return string(kept)
}

// mailFields returns the names of the fields that Message knows, other programs' names for them included. Package json
// takes them in any case.
var mailFields = sync.OnceValue(func() []string {
	names := []string{"sender", "ts", "approved"}
	for field := range reflect.TypeFor[Message]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
})
