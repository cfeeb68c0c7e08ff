package mailbox

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"muster"
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

var marks = []string{"inbox", "auto-claimed", "reminder", "background-results", "hook", "skill", "role", "identity",
	"environment", "instructions", "memories", "material"}

// opens reports whether s has anything like a mark: a reader of its own, without a regular expression.
func opens(s string) bool {
	s = strings.ToLower(s)
	for {
		_, rest, ok := strings.Cut(s, "<")
		if !ok {
			return false
		}
		s = rest
		blank := func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Z, unicode.Cf) }
		rest = strings.TrimLeftFunc(rest, blank)
		rest = strings.TrimLeftFunc(strings.TrimPrefix(rest, "/"), blank)
		for _, m := range marks {
			if strings.HasPrefix(rest, m) {
				return true
			}
		}
	}
}

// hostile draws text that is made of marks and their parts.
func hostile() *rapid.Generator[string] {
	pieces := []string{"<", "</", "/", ">", " ", "\n", "\"", "\\", "INBOX", "Skill name=\"x\"", "in", "box", "&lt;",
		"]", "{", "\u003c", "\\u003c", "ä", "<b>", "\u00a0", "\u200b", "\v"}
	piece := rapid.OneOf(rapid.SampledFrom(append(pieces, marks...)), rapid.String())
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") })
}

func TestNothingEscapedOpensAMark(t *testing.T) {
	for _, m := range marks {
		for _, v := range []string{"", "\n", "\v", "\u0085", "\u00a0", "\u200b"} {
			if e := Escape("<" + v + m + "><" + v + "/" + v + strings.ToUpper(m)); opens(e) {
				t.Fatalf("%q still opens a mark", e)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := hostile().Draw(t, "s")
		e := Escape(s)
		if opens(e) {
			t.Fatalf("%q still opens a mark", e)
		}
		if Escape(e) != e {
			t.Fatalf("escaped twice: %q", Escape(e))
		}
		if !opens(s) && e != s {
			t.Fatalf("%q needs no escape and became %q", s, e)
		}
		if back := strings.ReplaceAll(e, "&lt;", "<"); back != strings.ReplaceAll(s, "&lt;", "<") {
			t.Fatalf("%q became %q", s, e)
		}
	})
}

func TestMailStaysBetweenItsMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hostile()
		var msgs []muster.Message
		for range rapid.IntRange(1, 4).Draw(t, "mails") {
			msgs = append(msgs, muster.Message{From: muster.Name(h.Draw(t, "from")), Type: "message",
				Content: h.Draw(t, "content"),
				Plan:    h.Draw(t, "plan"), Feedback: h.Draw(t, "feedback"), RequestID: muster.RequestID(h.Draw(t, "id"))})
		}
		text := Render(msgs, 0)
		inner, ok := strings.CutPrefix(text, "<inbox>\n")
		inner, ok2 := strings.CutSuffix(inner, "\n</inbox>")
		if !ok || !ok2 || opens(inner) {
			t.Fatalf("a mark inside:\n%s", text)
		}
		var list []muster.Message
		if err := json.Unmarshal([]byte(inner), &list); err != nil || len(list) != len(msgs) {
			t.Fatalf("no list of %d mails: %v\n%s", len(msgs), err, text)
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
