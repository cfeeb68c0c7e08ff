package view

import (
	"strings"

	"muster"
	"muster/internal/text"
)

// States have one word each, which is the same in every face. The word of a member is its Look; the words here are
// those of tasks, requests and mails. Files and --json have the values of the constants, which no face shows.

// needsYou is the word for all that waits for the user.
const needsYou = string(LookNeedsYou)

// taskWords are the words of tasks, by BoardLabel. A label that is not here is its own word.
var taskWords = map[string]string{
	string(muster.InProgress):     string(LookWorking),
	string(muster.NeedsAttention): needsYou,
}

// TaskWord returns where a task stands, in a word.
func TaskWord(t muster.Task) string { return LabelWord(BoardLabel(t)) }

// LabelWord returns the word of a BoardLabel.
func LabelWord(label string) string { return wordOf(taskWords, label) }

// TaskWords are all words that TaskWord returns for tasks that muster has written, in the order of a task's life.
func TaskWords() []string {
	return []string{"ready", "waiting", string(LookWorking), string(LookLanding), "landed", "done", needsYou}
}

// Words are the words of states by their values, for a face that is drawn elsewhere.
type Words struct {
	Tasks    map[string]string               `json:"tasks"` // by BoardLabel
	Requests map[muster.RequestStatus]string `json:"requests"`
	Mails    map[muster.MessageType]string   `json:"mails"`
}

// AllWords returns the words that differ from their values.
func AllWords() Words { return Words{taskWords, requestWords, mailWords} }

var requestWords = map[muster.RequestStatus]string{muster.RequestPending: string(LookWaiting)}

// RequestWord returns where a request stands, in a word.
func RequestWord(s muster.RequestStatus) string {
	return wordOf(requestWords, s)
}

// mailWords say what a mail is that is more than its text.
var mailWords = map[muster.MessageType]string{
	muster.MailMessage:        "",
	muster.MailBroadcast:      "to all",
	muster.MailIdle:           "news",
	muster.MailLanded:         "news",
	muster.MailReturned:       "came back",
	muster.MailShutdown:       "asks for a shutdown",
	muster.MailShutdownAnswer: "answer about a shutdown",
	muster.MailPlan:           "asks about a plan",
	muster.MailPlanAnswer:     "answer about a plan",
	muster.MailError:          "trouble",
}

// MailWord says what a mail is that is more than its text, and "" for a message.
func MailWord(t muster.MessageType) string { return wordOf(mailWords, t) }

// wordOf returns the word of a value. One that another program, or a newer version, has written is shown as it is, with
// spaces in place of underscores.
func wordOf[S ~string](words map[S]string, value S) string {
	if word, ok := words[value]; ok {
		return word
	}
	return strings.ReplaceAll(text.OneLine(string(value)), "_", " ")
}
