package muster

import (
	"cmp"
	"encoding/json"
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
}

// UnmarshalJSON reads a mail, also as other programs write it: sender for from, ts for timestamp, approved for approve,
// plan_request and plan_approval for plan_approval_request, no id, no to, no type. An object without content, sender
// and type is no mail: the error is Corrupt.
func (m *Message) UnmarshalJSON(data []byte) error {
	type fields Message
	var f struct {
		fields
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
	*m = Message(f.fields)
	return nil
}
