package mailbox

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"muster"
)

// mark is the start of anything that a model could take for one of the runtime's marks, opening or closing.
var mark = regexp.MustCompile(`(?i)<(` + blank + `/?` + blank + `(?:inbox|auto-claimed|reminder|background-results|skill|identity))`)

// blank is what does not show, or hardly.
const blank = `[\s\v\x{85}\pZ\p{Cf}]*`

// Escape makes s unable to open or close a mark. Everything that others wrote goes through it on its way between marks.
// Escaping twice changes nothing more.
func Escape(s string) string { return mark.ReplaceAllString(s, "&lt;$1") }

// Render is mail as it enters a conversation: the seeds' marks around a JSON list, and how many wait behind.
func Render(msgs []muster.Message, waiting int) string {
	var b strings.Builder
	b.WriteString("<inbox>\n[")
	for i, m := range msgs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		b.WriteString(letter(m))
	}
	if len(msgs) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("]\n</inbox>")
	switch {
	case waiting == 1:
		b.WriteString("\n1 more mail waits and comes next.")
	case waiting > 1:
		fmt.Fprintf(&b, "\n%d more mails wait and come next.", waiting)
	}
	return b.String()
}

// letter is one mail of the list, in the order in which one reads mail. The reader knows that it is the recipient.
func letter(m muster.Message) string {
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
	}{m.From, m.Type, json.Number(fmt.Sprintf("%.0f", m.At)), m.TaskID, m.RequestID, m.Approve, m.Feedback, m.Plan, m.Content})
	if err != nil { // cannot be: there is nothing in it that has no JSON
		return "{}"
	}
	return Escape(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  "))
}
