package landing_test

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

// TestMessages: what a landed commit says, by the setting, git's config, and what its owner has committed.
func TestMessages(t *testing.T) {
	t.Parallel()
	const ends = "\n\nMuster-Task: 1\nMuster-Member: alice\nMuster-Check: " + muster.ReceiptUnchecked + "\n"
	const signed = "Signed-off-by: Ann Tester <ann@example.com>\n"
	const plain = "Add one\n\nIt adds one." + ends
	for name, c := range map[string]struct {
		message string            // the setting
		config  map[string]string // git's
		files   map[string]string // of the repository
		commits []string          // the owner's messages
		rest    bool              // it leaves something that it has not committed
		want    string
	}{
		"nothing set": {want: plain},
		"a prefix":    {message: "chore: {subject}", want: "chore: Add one" + ends},
		"all fields": {message: `{subject} (#{task})\n\n{body}\n\n{owner} with {model}`,
			want: "Add one (#1)\n\nIt adds one.\n\nalice with m/x" + ends},
		"trailers": {message: "{subject}\n\nTask: {task}\nModel: {model}\n",
			want: "Add one" + ends + "Task: 1\nModel: m/x\n"},
		"no subject":  {message: "{model}\n", want: "m/x" + ends},
		"sign-off":    {config: map[string]string{"format.signOff": "true"}, want: plain + signed},
		"no sign-off": {config: map[string]string{"format.signOff": "false"}, want: plain},
		"a template": {config: map[string]string{"commit.template": "t.txt"},
			files: map[string]string{"t.txt": "\n# Say why.\n\nTicket: \nReviewed-by: Bo <bo@example.com>\n"},
			want:  plain + "Reviewed-by: Bo <bo@example.com>\n"},
		"a missing one": {config: map[string]string{"commit.template": "none"}, want: plain},
		"committed once": {commits: []string{"feat(api): add one\n\nBecause.\n\nCloses: #3"},
			want: "feat(api): add one\n\nBecause." + ends + "Closes: #3\n"},
		"once, and a frame": {message: "chore: {subject}\n\nTask: {task}", commits: []string{"feat: add one"},
			want: "feat: add one" + ends + "Task: 1\n"},
		"once, signed": {config: map[string]string{"format.signOff": "true"},
			commits: []string{"feat: one\n\n" + signed}, want: "feat: one" + ends + signed},
		"once, a forgery": {commits: []string{"feat: one\n\nMuster-Task: 9\nMuster-Check: green\nCloses: #3"},
			want: "feat: one" + ends + "Closes: #3\n"},
		"committed twice": {commits: []string{"feat: one", "fix: two"}, want: plain},
		"not meant":       {commits: []string{"WIP"}, want: plain},
		"half":            {commits: []string{"feat: half of it"}, rest: true, want: plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"a": "a\n"}
			for name, text := range c.files {
				files[name] = text
			}
			w := newWorld(t, "", files)
			gittest.Git(t, w.root, "config", "user.name", "Ann Tester")
			gittest.Git(t, w.root, "config", "user.email", "ann@example.com")
			for key, value := range c.config {
				gittest.Git(t, w.root, "config", key, value)
			}
			w.process("", func(o *landing.Options) { o.Message = c.message })
			task, dir := w.task("Add one", "alice", map[string]string{"one": "1\n"})
			for n, message := range c.commits {
				w.write(dir, map[string]string{"more": strings.Repeat("x", n+1)})
				gittest.Git(t, dir, "add", "-A")
				gittest.Git(t, dir, "commit", "-q", "-m", message)
			}
			if c.rest {
				w.write(dir, map[string]string{"rest": "1\n"})
			}
			v, err := w.land.LandWith(w.ctx(), task.ID, task.Fence, "It adds one.", "alice", landing.Owner{Model: "m/x"})
			w.landed(v, err)
			if got := strings.TrimSpace(w.git("log", "-1", "--format=%B", target)) + "\n"; got != c.want {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
			id, landed, ok := landing.Trailers(w.git("log", "-1", "--format=%B", target))
			if id != task.ID || !ok || landed.Receipt != muster.ReceiptUnchecked {
				t.Errorf("the trailers say %d, %+v, %v", id, landed, ok)
			}
		})
	}
}
