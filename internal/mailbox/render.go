package mailbox

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"muster"
)

// markPattern matches the start of anything that a model could take for a mark of the runtime, opening or
// closing.
var markPattern = regexp.MustCompile(`(?i)<(` + invisible + `/?` + invisible +
	`(?:inbox|auto-claimed|reminder|background-results|skill|identity))`)

// invisible matches characters that are not seen, or hardly.
const invisible = `[\s\v\x{85}\pZ\p{Cf}]*`

// Escape makes s unable to open or close a mark of the runtime. All text that others wrote goes through it
// before it stands between marks. Escaping twice changes nothing more.
func Escape(s string) string { return markPattern.ReplaceAllString(s, "&lt;$1") }

// Render returns mail as it enters a conversation: a JSON list between marks, and how many mails still
// wait.
func Render(msgs []muster.Message, waiting int) string {
	list := ""
	if len(msgs) > 0 {
		mails := make([]string, len(msgs))
		for i, m := range msgs {
			mails[i] = "\n  " + renderMail(m)
		}
		list = strings.Join(mails, ",") + "\n"
	}
	more := ""
	switch {
	case waiting == 1:
		more = "\n1 more mail waits and comes next."
	case waiting > 1:
		more = fmt.Sprintf("\n%d more mails wait and come next.", waiting)
	}
	return "<inbox>\n[" + list + "]\n</inbox>" + more
}

// renderMail returns one mail of the list. The recipient is left out, because it is the reader.
func renderMail(m muster.Message) string {
	text, err := muster.Encode(struct {
		From      muster.Name        `json:"from"`
		Type      muster.MessageType `json:"type"`
		At        json.Number        `json:"timestamp"`
		TaskID    muster.TaskID      `json:"task_id,omitempty"`
		RequestID muster.RequestID   `json:"request_id,omitempty"`
		Approve   *bool              `json:"approve,omitempty"`
		Feedback  string             `json:"feedback,omitempty"`
		Plan      string             `json:"plan,omitempty"`
		Content   string             `json:"content"`
	}{m.From, m.Type, json.Number(fmt.Sprintf("%.0f", m.At)), m.TaskID, m.RequestID, m.Approve, m.Feedback, m.Plan,
		m.Content})
	if err != nil { // cannot be: there is nothing in it that has no JSON
		return "{}"
	}
	return Escape(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  "))
}

// Short returns text that fits into a mail: valid UTF-8 of at most about 4,000 bytes.
func Short(text string) string {
	const most = 4000
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}
