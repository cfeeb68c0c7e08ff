package mailbox

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/text"
)

func TestRender(t *testing.T) {
	no := false
	got := Render([]muster.Message{
		{ID: "1", Type: muster.MailMessage, From: "bob", To: "alice", Content: "a < b & c\nnext", At: 1714567890.25},
		{ID: "2", Type: muster.MailPlanAnswer, From: "lead", To: "alice", Content: "Refused.", At: 1714567891,
			Approve: &no, RequestID: "7f2c91aa", TaskID: 9, Feedback: "Too long.", Plan: "Step 1."},
	}, 2)
	want := `<inbox>
[
  {
    "from": "bob",
    "type": "message",
    "timestamp": 1714567890,
    "content": "a < b & c\nnext"
  },
  {
    "from": "lead",
    "type": "plan_approval_response",
    "timestamp": 1714567891,
    "task_id": 9,
    "request_id": "7f2c91aa",
    "approve": false,
    "feedback": "Too long.",
    "plan": "Step 1.",
    "content": "Refused."
  }
]
</inbox>
2 more mails wait and come next.`
	if got != want {
		t.Fatalf("got\n%s", got)
	}
	if got := Render(nil, 1); got != "<inbox>\n[]\n</inbox>\n1 more mail waits and comes next." {
		t.Errorf("without mail: %s", got)
	}
}

// Fields of other programs are shown where they are JSON, and spoil nothing where they are not.
func TestRenderShowsOtherFields(t *testing.T) {
	for other, want := range map[string]bool{`{"pane":1}`: true, `{"pane":`: false} {
		text := Render([]muster.Message{{From: "bob", Content: "x", Other: other}}, 0)
		list := strings.TrimSuffix(strings.TrimPrefix(text, "<inbox>\n"), "\n</inbox>")
		if !json.Valid([]byte(list)) || strings.Contains(text, "pane") != want {
			t.Errorf("with %s: %s", other, text)
		}
	}
}

// hostile draws text that is made of tags and their parts.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom([]string{"<", "</", "/", ">", " ", "\n", "\"", "\\", "INBOX", "inbox", "&lt;", "]", "{",
		"\\u003c", "\u200b"}), rapid.String())
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") })
}

func TestMailStaysBetweenItsTags(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hostile()
		var msgs []muster.Message
		for range rapid.IntRange(1, 4).Draw(t, "mails") {
			msgs = append(msgs, muster.Message{From: muster.Name(h.Draw(t, "from")), Type: "message",
				Content: h.Draw(t, "content"),
				Plan:    h.Draw(t, "plan"), Feedback: h.Draw(t, "feedback"), RequestID: muster.RequestID(h.Draw(t, "id"))})
		}
		mail := Render(msgs, 0)
		inner, ok := strings.CutPrefix(mail, "<inbox>\n")
		inner, ok2 := strings.CutSuffix(inner, "\n</inbox>")
		if !ok || !ok2 || text.EscapeTags(inner) != inner {
			t.Fatalf("a tag inside:\n%s", mail)
		}
		var list []muster.Message
		if err := json.Unmarshal([]byte(inner), &list); err != nil || len(list) != len(msgs) {
			t.Fatalf("no list of %d mails: %v\n%s", len(msgs), err, mail)
		}
		for i, m := range list {
			if plain := func(s string) string {
				return strings.ReplaceAll(s, "&lt;",
					"<")
			}; plain(m.Content) != plain(strings.ToValidUTF8(msgs[i].Content, "\ufffd")) {
				t.Fatalf("%q became %q", msgs[i].Content, m.Content)
			}
		}
	})
}
