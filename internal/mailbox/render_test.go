package mailbox

import (
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
	want := `<mail from="bob">
a < b & c
next
</mail>
<mail from="lead" task_id="9" type="plan_approval_response" request_id="7f2c91aa" approve="false">
Refused.
Plan: Step 1.
Feedback: Too long.
</mail>
2 more mails wait and come next.`
	if got != want {
		t.Fatalf("got\n%s", got)
	}
	if got := Render(nil, 1); got != "1 more mail waits and comes next." {
		t.Errorf("without mail: %s", got)
	}
}

// Fields of other programs are shown where they are JSON, and spoil nothing where they are not.
func TestRenderShowsOtherFields(t *testing.T) {
	for other, want := range map[string]string{
		`{"pane":1}`: "<mail from=\"bob\">\nx\nOther fields: {\"pane\":1}\n</mail>",
		`{"pane":`:   "<mail from=\"bob\">\nx\n</mail>",
	} {
		if got := Render([]muster.Message{{From: "bob", Type: muster.MailMessage, Content: "x", Other: other}}, 0); got != want {
			t.Errorf("with %s: %s", other, got)
		}
	}
}

// hostile draws text that is made of tags and their parts.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom([]string{"<", "</", "/", ">", " ", "\n", "\"", "\\", "MAIL", "mail", "&lt;", "]", "{",
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
		var list []string
		for i, part := range strings.Split("\n"+mail, "\n<mail from=\"") {
			if i == 0 {
				continue
			}
			inner, ok := strings.CutSuffix(part, "\n</mail>")
			tag, body, ok2 := strings.Cut(inner, ">\n")
			if !ok || !ok2 || text.EscapeTags(inner) != inner || strings.Count(tag, `"`)%2 == 0 || strings.Contains(tag, "\n") {
				t.Fatalf("a tag inside:\n%s", mail)
			}
			list = append(list, body)
		}
		if len(list) != len(msgs) {
			t.Fatalf("not %d mails:\n%s", len(msgs), mail)
		}
		plain := func(s string) string { return strings.ReplaceAll(s, "&lt;", "<") }
		for i, body := range list {
			if !strings.HasPrefix(plain(body), plain(strings.ToValidUTF8(msgs[i].Content, "\ufffd"))) {
				t.Fatalf("%q became %q", msgs[i].Content, body)
			}
		}
	})
}
