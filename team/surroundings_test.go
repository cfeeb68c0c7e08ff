package team_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/llm"
	"muster/llm/script"
	"muster/team"
)

// firstAsked keeps the first request of each member.
type firstAsked struct {
	llm.Model
	mu    sync.Mutex
	first map[string]llm.Request // by cache key
}

func (q *firstAsked) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	q.mu.Lock()
	if _, seen := q.first[r.CacheKey]; !seen {
		q.first[r.CacheKey] = r
	}
	q.mu.Unlock()
	return q.Model.Reply(ctx, r, emit)
}

// sayings returns what a request says to the model, without the tools.
func sayings(r llm.Request) string {
	text := strings.Join(r.System, "\n")
	for _, m := range r.Messages {
		text += "\n" + m.Text()
	}
	return text
}

// firstRequests runs a lead with two teammates of one role, each of which does a task, and returns the first request of
// each member.
func firstRequests(t *testing.T, w *world) map[string]llm.Request {
	t.Helper()
	s, err := script.Parse([]byte(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: amy, role: coder, prompt: Take a task.}}, {spawn_teammate: {name: bob, role: coder, prompt: Take a task.}}, {task_create: {subject: one, description: Write one.}}, {task_create: {subject: two, description: Write two.}}]
    - do: [{wait: {}}]
    - say: Done.
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>one|two)'
    who: [amy, bob]
    turns:
      - do: [{write_file: {path: "${what}", content: x}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: done}}]
      - say: Done.
`))
	if err != nil {
		t.Fatal(err)
	}
	q := &firstAsked{Model: s.Model(), first: map[string]llm.Request{}}
	tm, _ := w.open("speakers: {lead: [say: x]}", func(c *team.Config) {
		c.Check = "test -e README"
		c.Model = func(string) (llm.Model, error) { return q, nil }
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sum, err := tm.Run(ctx, "the goal", team.Start{})
	if err != nil || sum.Code != 0 {
		t.Fatalf("the run ended with %d, %v\n%s", sum.Code, err, w.tail())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first
}

// The first request of every member has the facts that it would otherwise have to look for.
func TestFactsInTheFirstRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("AGENTS.md", "Indent with tabs.\n"+strings.Repeat("More.\n", 10_000))
	w.write("CLAUDE.md", "Never read.\n")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "rules")
	w.write("draft", "not committed")
	tip := w.git("rev-parse", "HEAD")
	day := time.Now()
	first := firstRequests(t, w)
	for _, who := range []string{"lead@demo", "amy@demo", "bob@demo"} {
		text := sayings(first[who])
		place := "Working directory: " + w.root + "/.team/scratch/"
		if who != "lead@demo" && !strings.Contains(text, place) {
			place = "Your lane: " + w.root + "/"
		}
		for _, want := range []string{
			"Repository: " + w.root + "\n", place,
			fmt.Sprintf("Platform: %s/%s\n", runtime.GOOS, runtime.GOARCH),
			"Check command: test -e README\n", "Work lands on: muster/demo, now at ",
			"The user's checkout: branch main at " + tip[:7] + ", with uncommitted changes in ",
			"Indent with tabs.\nMore.\n", "[cut: 32768 of 60018 bytes; read_file shows the rest]",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not told %q", who, want)
			}
		}
		today := "Date: " + day.Format(time.DateOnly)
		if !strings.Contains(text, today) && !strings.Contains(text, "Date: "+time.Now().Format(time.DateOnly)) {
			t.Errorf("%s is not told %q", who, today)
		}
		if strings.Contains(text, "Never read") {
			t.Errorf("%s reads CLAUDE.md beside AGENTS.md", who)
		}
	}
}

// A subagent begins with the same facts as its member, and reads what the project says about a directory for itself.
func TestFactsForSubagents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("AGENTS.md", "Indent with tabs.\n")
	w.write("sub/AGENTS.md", "Never touch the parser.\n")
	w.write("sub/a.txt", "a\n")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "rules")
	s, err := script.Parse([]byte(`
speakers:
  lead:
    - do: [{read_file: {path: sub/a.txt}}, {subagent: {prompt: look into it, kind: explore}}]
    - do: [{task_create: {subject: one}}, {claim_task: {task_id: 1}}]
    - do: [{subagent: {prompt: change it, kind: work}}]
    - do: [{complete_task: {task_id: 1, summary: done}}]
    - say: Done.
scenes:
  - {cue: look into it, who: [lead/sub], turns: [{do: [{read_file: {path: sub/a.txt}}]}, {say: I looked.}]}
  - {cue: change it, who: [lead/sub], turns: [{do: [{bash: {command: echo b > sub/a.txt}}]}, {say: I changed it.}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	q := &allAsked{Model: s.Model()}
	tm, _ := w.open("speakers: {lead: [say: x]}", func(c *team.Config) {
		c.Check = "test -e README"
		c.Model = func(string) (llm.Model, error) { return q, nil }
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if sum, err := tm.Run(ctx, "the goal", team.Start{}); err != nil || sum.Code != 0 {
		t.Fatalf("the run ended with %d, %v\n%s", sum.Code, err, w.tail())
	}
	for cue, place := range map[string]string{"look into it": w.root + "/.team/scratch/lead", "change it": w.root + "/.worktrees/"} {
		said := q.last(cue)
		for _, want := range []string{"Indent with tabs.", "Repository: " + w.root, "Check command: test -e README",
			"Working directory: " + place, "Never touch the parser."} {
			if !strings.Contains(said, want) {
				t.Errorf("the subagent that is to %q is not told %q, but %s", cue, want, said)
			}
		}
	}
}

// allAsked keeps what each request says.
type allAsked struct {
	llm.Model
	mu  sync.Mutex
	all []string
}

func (q *allAsked) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	text := ""
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if answer, ok := p.(llm.Result); ok {
				text += "\n" + answer.Text()
			}
		}
		text += "\n" + m.Text()
	}
	q.mu.Lock()
	q.all = append(q.all, text)
	q.mu.Unlock()
	return q.Model.Reply(ctx, r, emit)
}

// last returns what the last request of a subagent says that is to do something.
func (q *allAsked) last(cue string) (last string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, text := range q.all {
		if strings.Contains(text, cue) && !strings.Contains(text, "The goal:") {
			last = text
		}
	}
	return last
}

// wire returns a request in the order in which chat templates write it: the system prompt, the tools, the messages.
func wire(t *testing.T, r llm.Request) (prefix, messages string) {
	t.Helper()
	prefix = strings.Join(r.System, "\n")
	for _, s := range r.Tools {
		prefix += fmt.Sprintf("\n{%q:%q,%q:%q,%q:%s}", "name", s.Name, "description", s.Description, "parameters", s.Schema)
	}
	for _, m := range r.Messages {
		messages += "\n" + m.Text()
	}
	return prefix, messages
}

// The first requests stay within their bounds, with a reserve for what later parts add: 16,000 bytes for the lead and
// 14,000 for a teammate. Teammates of a role share all of a request that comes before the name.
func TestSizeAndShareOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	const reserve, leastShare = 1000, 90
	first := firstRequests(t, newWorld(t))
	for who, limit := range map[string]int{"lead@demo": 16_000, "amy@demo": 14_000, "bob@demo": 14_000} {
		prefix, messages := wire(t, first[who])
		size := len(prefix) + len(messages)
		t.Logf("%s: %d bytes of at most %d: %d before the messages, %d of them the system prompt", who, size, limit,
			len(prefix), len(strings.Join(first[who].System, "\n")))
		if size > limit-reserve {
			t.Errorf("the first request of %s has %d bytes; with a reserve of %d it may have %d", who, size, reserve,
				limit-reserve)
		}
	}
	amy, messages := wire(t, first["amy@demo"])
	bob, others := wire(t, first["bob@demo"])
	if amy != bob {
		t.Error("two teammates of a role have different system prompts or tools")
	}
	a, b := amy+messages, bob+others
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	share := 100 * same / max(len(a), len(b))
	t.Logf("two teammates of a role share the first %d of %d bytes: %d%%", same, len(a), share)
	if share < leastShare {
		t.Errorf("two teammates of a role share %d%% of their first request, want %d%%; they part at %q", share,
			leastShare, a[max(0, same-80):min(len(a), same+40)])
	}
	if i := strings.Index(a, "amy"); i < same {
		t.Errorf("the name stands at byte %d", i)
	}
}
