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
	"muster/internal/board"
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
	"lanes.remove.begin": "lanes.put.staged", "lanes.remove.end": "lanes.put.staged"}

// teams runs a lead and two teammates with three tasks, two of them of a playbook. It kills them at every point that
// they pass, and resumes them until their run ends.
func teams(ctx context.Context, a *env) error {
	w, err := a.newTeam(ctx, "plain")
	if err != nil {
		return err
	}
	list := a.at("points")
	if code, said := w.muster(ctx, "list:"+list, w.next()...); code != 0 {
		a.fail(nil, "the team does not come to its end unharmed: exit %d: %s", code, said)
		return nil
	}
	if err := w.checkTeam(ctx); err != nil || a.row.Bad() {
		return err
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	points := strings.Fields(string(data))
	a.rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	points = points[:min(a.amount(len(points), 3), len(points))]
	var kills [][]string
	for _, p := range append(points, "playbook.created", "playbook.finished") {
		kills = append(kills, []string{p})
	}
	for _, second := range slices.Sorted(maps.Keys(twice)) {
		kills = append(kills, []string{twice[second], second})
	}
	for i, points := range kills {
		if err := a.killTeam(ctx, fmt.Sprintf("team-%d", i+1), points); err != nil || a.row.Bad() {
			return err
		}
	}
	return nil
}

// killTeam runs a team, kills it at the points one after the other, and resumes it until its run ends.
func (a *env) killTeam(ctx context.Context, name string, points []string) error {
	w, err := a.newTeam(ctx, name)
	if err != nil {
		return err
	}
	for _, p := range points {
		arm := fmt.Sprintf("kill:%s:%d", p, 1+a.rng.IntN(2))
		switch code, said := w.muster(ctx, arm, w.next()...); code {
		case exitKilled:
			a.row.Kills++
			a.row.AtPoints++
		case 0:
		default:
			a.fail(nil, "armed with %s, the team ended with exit %d: %s", arm, code, said)
		}
	}
	for try := 0; w.runRecord().EndedAt == 0 && !a.row.Bad(); try++ {
		if code, said := w.muster(ctx, "", w.next()...); code != 0 || try > 2 {
			a.fail(&a.row.Stuck, "the team does not come to its end: exit %d: %s", code, said)
		}
	}
	if !a.row.Bad() {
		if err := w.checkTeam(ctx); err != nil {
			return err
		}
	}
	if a.row.Bad() {
		a.row.Violations = append(a.row.Violations, fmt.Sprintf("killed at %v, in %s", points, w.dir))
		return nil
	}
	a.row.Operations++
	return os.RemoveAll(w.dir)
}

// newTeam creates a repository with a board of one task and two teammates who are to be started. The environment that
// it returns counts in the same row.
func (a *env) newTeam(ctx context.Context, name string) (*env, error) {
	w := *a
	w.dir = a.at(name)
	if err := w.newRepository(); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"words.yaml": words, "book.yaml": book} {
		if err := os.WriteFile(w.at(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"alice", "bob"} {
		if code, said := w.muster(ctx, "", "team", "spawn", name, "--role", "coder"); code != 0 {
			return nil, muster.Errorf(muster.Unavailable, "%s is not spawned: exit %d: %s", name, code, said)
		}
	}
	r, err := w.openServices()
	if err != nil {
		return nil, err
	}
	defer r.store.Close()
	_, err = r.board.Create(ctx, board.Draft{Subject: "one", RequirePlan: true, CreatedBy: muster.Lead})
	return &w, err
}

// next returns the arguments that a user would type next: a run that was started is resumed.
func (a *env) next() []string {
	if a.runRecord().StartedAt != 0 {
		return []string{"resume"}
	}
	return []string{"run", "land three files", "--playbook", a.at("book.yaml"), "--teammates", "2", "--model",
		"script/" + a.at("words.yaml"), "--team", "x", "--check", check,
		"--budget", "900M tokens"} // the ledger of costs is synced only if there is a budget
}

// runRecord returns the record of the team's run, the zero value if there is none.
func (a *env) runRecord() (r muster.Run) {
	data, err := os.ReadFile(filepath.Join(a.root(), ".team", "run.json"))
	if err == nil {
		_ = json.Unmarshal(data, &r)
	}
	return r
}

// exitKilled is the exit code of a program that has killed itself.
const exitKilled = -1

// muster runs the program to its end, and returns its exit code and the end of what it printed.
func (a *env) muster(ctx context.Context, arm string, args ...string) (code int, said string) {
	ctx, cancel := context.WithTimeout(ctx, 2*stuckAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.Muster[0], slices.Concat(a.Muster[1:], args)...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = a.root(), &out, &out, 5*time.Second
	cmd.Env = append(slices.Clone(a.Env), "MUSTER_MODEL=")
	if a.List != "" {
		arm = strings.TrimPrefix(arm+";list:"+a.List, ";")
	}
	if arm != "" {
		cmd.Env = append(cmd.Env, faultinject.Variable+"="+arm)
	}
	err := cmd.Run()
	said = out.String()
	said = said[max(0, len(said)-1500):]
	switch {
	case err == nil:
		return 0, said
	case cmd.ProcessState == nil || ctx.Err() != nil:
		return 1, err.Error()
	case wasKilled(cmd.ProcessState):
		return exitKilled, said
	}
	return max(cmd.ProcessState.ExitCode(), 1), said
}

// checkTeam wants three landed tasks, nothing half-made, and every mail once.
func (a *env) checkTeam(ctx context.Context) error {
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	if len(all) != 3 {
		a.fail(&a.row.Lost, "there are %d tasks of 3", len(all))
	}
	if err := a.checkGit(all, "muster/x"); err != nil {
		return err
	}
	return a.checkPost(ctx, r)
}

// checkPost wants every mail that was sent to be in its reader's transcript once, or still in the inbox. Requests that
// were decided before their mail was read need not be read.
func (a *env) checkPost(ctx context.Context, r *services) error {
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
				key := string(name) + " " + string(id)
				if had[key]++; had[key] == 2 {
					a.fail(&a.row.Doubled, "mail %s was delivered to %s twice", id, name)
				}
			}
		}
		waiting, _, _, err := r.post.Peek(ctx, name, 0, 1<<30)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
		for _, m := range waiting {
			had[string(name)+" "+string(m.ID)]++
		}
	}
	isOfRequest := []muster.MessageType{muster.MailShutdown, muster.MailPlan, muster.MailPlanAnswer}
	for e, err := range r.journal.Read(ctx, 0) {
		if err != nil {
			return err
		}
		if e.Kind == journal.MailSent && !slices.Contains(isOfRequest, muster.MessageType(e.Text("type"))) &&
			e.Text("to") != string(muster.User) && had[e.Text("to")+" "+e.Text("id")] == 0 {
			a.fail(&a.row.Lost, "mail %s (%s) from %s to %s is nowhere", e.Text("id"), e.Text("type"), e.Member,
				e.Text("to"))
		}
	}
	return nil
}
