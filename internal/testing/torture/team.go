package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/testing/faultinject"
	"muster/internal/transcript"
	"muster/journal"
)

// words are what the team of this scenario says. What a kill cuts off is never run again by the runtime, so each
// file is written twice, and the lead decides again what it is told waits for it.
const words = `
speakers:
  lead:
    - do: [{wait: {}}]
      until: All done
    - say: All three have landed.
scenes:
  - cue: '(?s)"from": "(?P<who>\w+)".{1,80}plan_approval_request'
    who: [lead]
    turns:
      - do: [{review_plan: {request_id: "${request:${who}}", approve: true}}]
  - cue: 'Request (?P<asked>[0-9a-f]+) of \w+ \(plan_approval'
    who: [lead]
    turns:
      - do: [{review_plan: {request_id: "${asked}", approve: true}}]
  - cue: 'Task #(?P<id>\d+): one\n'
    who: [coder]
    turns:
      - do: [{submit_plan: {plan: Write one.}}]
  - cue: 'Task #(?P<id>\d+): (?P<word>one|two|three)\n'
    who: [coder]
    turns:
      - do: # what bash prints is so much that it is cleared from the conversation later
          - bash: {command: "seq 1 9000; test ${word} != two || echo bad > bad"}
          - write_file: {path: "${word}.txt", content: "${word}\n"}
      - do:
          - write_file: {path: "${word}.txt", content: "${word}\n"}
          - send_message: {to: lead, content: "${word} is half done"}
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
      - cue: check failed|came back|nterrupted|unknown
        do: [{bash: {command: "rm -f bad; echo mended"}}]
      - cue: mended|nterrupted|unknown
        do: [{bash: {command: "rm -f bad; echo mended"}}]
      - cue: mended|nterrupted|unknown
        do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
`

// book is the playbook of the team. A first task is on the board before it.
const book = `
tasks:
  - {id: three, subject: three, blocked_by: two}
  - {id: two, subject: two}
`

// check is the team's check: task two fails it at first.
const check = "test ! -e bad"

// twice has the points of a recovery, which a team passes only after it was killed. It maps each to the point of
// the first kill.
var twice = map[string]string{"lane.undone": "lane.added", "lane.unbranched": "lane.branch",
	"lanes.remove.begin": "lanes.put.staged",
	"lanes.remove.end":   "lanes.put.staged"}

// teams runs a lead and two teammates with three tasks, two of them of a playbook. It kills them at every point that
// they pass, and resumes them until their run ends.
func teams(ctx context.Context, a *env) error {
	list := a.at("points")
	w, err := a.newTeamRepo(ctx, "plain")
	if err != nil {
		return err
	}
	if code, said := w.muster(ctx, "list:"+list, w.run()...); code != 0 {
		a.fail(nil, "the team does not come to its end unharmed: exit %d: %s", code, said)
		return nil
	}
	if err := w.check(ctx); err != nil || a.row.Bad() {
		return err
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	points := strings.Fields(string(data))
	a.rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	points = points[:min(a.amount(len(points), 3), len(points))]
	points = append(append(points, slices.Sorted(maps.Keys(twice))...), "playbook.created", "playbook.finished")
	for i, p := range points {
		if err := a.killTeam(ctx, fmt.Sprintf("%d-%s", i+1, p), p); err != nil {
			return err
		}
		if a.row.Bad() {
			return nil
		}
		a.row.Operations++
	}
	return nil
}

// killTeam runs a team, kills it at a point, and resumes it until its run ends.
func (a *env) killTeam(ctx context.Context, name, point string) error {
	w, err := a.newTeamRepo(ctx, name)
	if err != nil {
		return err
	}
	before := len(a.row.Violations)
	arms := []string{point}
	if first := twice[point]; first != "" {
		arms = []string{first, point}
	}
	for _, at := range arms {
		arm := fmt.Sprintf("kill:%s:%d", at, 1+a.rng.IntN(2))
		code, said := w.muster(ctx, arm, w.next()...)
		switch {
		case code == -1:
			a.row.Kills++
			a.row.AtPoints++
			a.row.Points[at]++
		case code != 0:
			a.fail(nil, "armed with %s, the team ended with exit %d: %s", arm, code, said)
		}
	}
	for try := 0; !w.over() && len(a.row.Violations) == before; try++ {
		began := time.Now()
		if code, said := w.muster(ctx, "", w.next()...); code != 0 {
			a.fail(&a.row.Stuck, "killed at %s, it does not go on: exit %d: %s", point, code, said)
		} else if at, ok := w.resumed(began); ok {
			a.times = append(a.times, at)
		}
		if try > 2 {
			a.fail(&a.row.Stuck, "killed at %s, it does not come to its end", point)
		}
	}
	if len(a.row.Violations) == before {
		if err := w.check(ctx); err != nil {
			return err
		}
	}
	if len(a.row.Violations) > before {
		a.row.Violations = append(a.row.Violations, "killed at "+point+", in "+w.dir)
		return nil
	}
	return os.RemoveAll(w.dir)
}

// teamRepo is a repository with a team in it.
type teamRepo struct {
	*env      // with the directory of this repository
	of   *env // the environment of the scenario, whose row counts
	dir  string
}

// newTeamRepo creates a repository with a board of one task and two teammates who are to be started.
func (a *env) newTeamRepo(ctx context.Context, name string) (*teamRepo, error) {
	b := *a
	b.dir = a.at(name)
	w := &teamRepo{&b, a, b.dir}
	if err := os.MkdirAll(b.root(), 0o700); err != nil {
		return nil, err
	}
	if err := b.repository(); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"words.yaml": words, "book.yaml": book} {
		if err := os.WriteFile(b.at(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := b.write(muster.Task{ID: 1, Subject: "one", Status: muster.Pending, RequirePlan: true}); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"adopt", "--yes"}, // another program made the board
		{"team", "spawn", "alice", "--role", "coder"}, {"team", "spawn", "bob", "--role", "coder"},
	} {
		if code, said := w.muster(ctx, "", args...); code != 0 {
			return nil, muster.Errorf(muster.Unavailable, "muster %s: exit %d: %s", strings.Join(args, " "), code, said)
		}
	}
	return w, nil
}

func (w *teamRepo) run() []string {
	return []string{"run", "land three files", "--playbook", w.at("book.yaml"), "--teammates", "2", "--model",
		"script/" + w.at("words.yaml"), "--team", "x", "--check", check,
		"--budget", "900M tokens"} // what it costs is synced only where there is a budget
}

// next returns the arguments that a user would type next: a run that was started is resumed.
func (w *teamRepo) next() []string {
	if r, err := w.record(); err != nil || r.StartedAt == 0 {
		return w.run()
	}
	return []string{"resume"}
}

func (w *teamRepo) record() (r muster.Run, err error) {
	data, err := os.ReadFile(filepath.Join(w.root(), ".team", "run.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func (w *teamRepo) over() bool {
	r, err := w.record()
	return err == nil && r.EndedAt != 0
}

// muster runs the program to its end; -1 is the code of one that killed itself.
func (w *teamRepo) muster(ctx context.Context, arm string, args ...string) (code int, said string) {
	ctx, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.Muster[0], slices.Concat(w.Muster[1:], args)...)
	cmd.Dir = w.root()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(w.Env[:len(w.Env):len(w.Env)], "MUSTER_MODEL=")
	if list := w.List; list != "" {
		arm = strings.TrimPrefix(arm+";list:"+list, ";")
	}
	if arm != "" {
		cmd.Env = append(cmd.Env, faultinject.Variable+"="+arm)
	}
	err := cmd.Run()
	text := out.String()
	text = text[max(0, len(text)-1500):]
	if err == nil || cmd.ProcessState == nil {
		if err != nil {
			return 1, err.Error()
		}
		return 0, text
	}
	if killed(cmd.ProcessState) && ctx.Err() == nil {
		return -1, text
	}
	return max(cmd.ProcessState.ExitCode(), 1), text
}

// resumed returns how long the team took from the start of the program until it was resumed.
func (w *teamRepo) resumed(began time.Time) (time.Duration, bool) {
	for e := range w.events() {
		if at := muster.Time(e.At); e.Kind == journal.RunResumed && at.After(began) {
			return at.Sub(began), true
		}
	}
	return 0, false
}

func (w *teamRepo) events() func(yield func(muster.Event) bool) {
	return func(yield func(muster.Event) bool) {
		data, _ := os.ReadFile(filepath.Join(w.root(), ".team", "events.jsonl"))
		for line := range bytes.Lines(data) {
			var e muster.Event
			if json.Unmarshal(line, &e) == nil && !yield(e) {
				return
			}
		}
	}
}

// check compares what is there in the end with what should be: three landed tasks, nothing half-made, every mail once.
func (w *teamRepo) check(ctx context.Context) error {
	a := w.env
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	a.row = Row{}
	if err := a.checkGit(all, "muster/x", 3); err != nil {
		return err
	}
	w.checkPost(ctx, r)
	to := &w.of.row
	to.Lost, to.Doubled, to.Stuck = to.Lost+a.row.Lost, to.Doubled+a.row.Doubled, to.Stuck+a.row.Stuck
	to.Violations = append(to.Violations, a.row.Violations...)
	return nil
}

// checkPost wants every mail that was sent to be in its reader's transcript once, or still in the inbox. Requests that
// were decided before their mail was read need not be read.
func (w *teamRepo) checkPost(ctx context.Context, r *services) {
	a := w.env
	had := map[string]int{}
	for _, name := range []muster.Name{muster.Lead, "alice", "bob"} {
		for e, err := range transcript.Read(ctx, r.store.Log(), name, 0) {
			if err != nil {
				a.fail(&a.row.Lost, "the transcript of %s: %v", name, err)
				continue
			}
			if e.Kind == transcript.KindCompressed { // it repeats what was said before
				continue
			}
			for _, id := range e.Mail {
				if had[string(name)+" "+string(id)]++; had[string(name)+" "+string(id)] == 2 {
					a.fail(&a.row.Doubled, "mail %s was delivered to %s twice", id, name)
				}
			}
		}
		waiting, _, _, err := r.post.Peek(ctx, name, 0, 1<<30)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			a.fail(nil, "%v", err)
		}
		for _, m := range waiting {
			had[string(name)+" "+string(m.ID)]++
		}
	}
	for e := range w.events() {
		kind := muster.MessageType(e.Text("type"))
		if e.Kind != journal.MailSent || kind == muster.MailShutdown || kind == muster.MailPlan ||
			kind == muster.MailPlanAnswer || e.Text("to") == string(muster.User) {
			continue
		}
		if had[e.Text("to")+" "+e.Text("id")] == 0 {
			a.fail(&a.row.Lost, "mail %s (%s) from %s to %s is nowhere", e.Text("id"), kind, e.Member, e.Text("to"))
		}
	}
}
