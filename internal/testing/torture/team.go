package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
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
  - cue: '<mail from="(?P<who>\w+)"[^>]* type="plan_approval_request"'
    who: [lead]
    turns:
      - do: [{review_plan: {request_id: "${request:${who}}", approve: true}}]
  - cue: 'Request (?P<asked>[0-9a-f]+) of \w+ \(plan for'
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
      - do: # what bash prints is half of a window and more, so that it is cleared from the conversation later
          - bash: {command: "seq 1 9000; test ${word} != two || echo bad > bad"}
          - bash: {command: seq 10 9010}
          - bash: {command: seq 20 9020}
          - bash: {command: seq 30 9030}
          - bash: {command: seq 40 9040}
          - bash: {command: seq 50 9050}
          - write_file: {path: "${word}.txt", content: "${word}\n"}
      - do:
          - write_file: {path: "${word}.txt", content: "${word}\n"}
          - send_message: {to: lead, content: "${word} is half done"}
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
      - cue: check failed|did not land|nterrupted|unknown
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

// recoveries are points of a recovery, which a team passes only after a first kill, each after the point of that.
var recoveries = [][]string{{"lane.added", "lane.undone"}, {"lane.branch", "lane.unbranched"},
	{"lanes.put.staged", "lanes.remove.begin"}, {"lanes.put.staged", "lanes.remove.end"}}

// teams runs a lead and two teammates with three tasks, two of them of a playbook. It kills them at every point that
// they pass, and resumes them until their run ends.
func teams(ctx context.Context, a *env) error {
	list := a.at("points")
	if err := a.team(ctx, "plain", "list:"+list); err != nil {
		return err
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	points := strings.Fields(string(data))
	a.rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	points = points[:min(a.amount(len(points), 3), len(points))]
	kills := recoveries
	for _, p := range append(points, "playbook.created", "playbook.finished") {
		kills = append(kills, []string{p})
	}
	for i, points := range kills {
		var faults []string
		for _, p := range points {
			faults = append(faults, fmt.Sprintf("kill:%s:%d", p, 1+a.rng.IntN(2)))
		}
		if err := a.team(ctx, fmt.Sprintf("team-%d", i+1), faults...); err != nil {
			return err
		}
	}
	return nil
}

// team starts a new team, and resumes it until its run ends. It arms each of the processes with one of the faults, and
// the last ones with none.
func (a *env) team(ctx context.Context, name string, faults ...string) error {
	w, err := a.newTeam(ctx, filepath.Join("team", name))
	if err != nil {
		return err
	}
	defer w.Close()
	for starts := 0; ; starts++ {
		run, err := w.Runs().Get(ctx)
		if err != nil {
			return err
		}
		if run.EndedAt != 0 {
			break
		}
		args := []string{"resume"}
		if run.StartedAt == 0 {
			args = []string{"run", "land three files", "--playbook", w.at("book.yaml"), "--teammates", "2", "--model",
				"script/" + w.at("words.yaml"), "--team", "x", "--check", check,
				"--budget", "900M tokens"} // the ledger of costs is synced only if there is a budget
		}
		fault := ""
		if starts < len(faults) {
			fault = faults[starts]
		}
		killed, err := w.muster(ctx, fault, args...)
		switch {
		case err != nil:
			a.row.stuck++
			return fmt.Errorf("the team in %s, armed with %v: %w", w.dir, faults, err)
		case killed && fault != "":
			a.row.kills++
		case killed || starts > len(faults)+2:
			a.row.stuck++
			return fmt.Errorf("the team in %s, armed with %v, does not come to its end", w.dir, faults)
		}
	}
	if err := w.checkTeam(ctx); err != nil {
		return err
	}
	if len(a.row.violations) > 0 {
		return fmt.Errorf("the team in %s was armed with %v", w.dir, faults)
	}
	a.row.operations++
	return os.RemoveAll(w.dir)
}

// newTeam creates a repository with a board of one task and two teammates who are to be started. The environment that
// it returns counts in the same row.
func (a *env) newTeam(ctx context.Context, dir string) (*env, error) {
	w, err := a.newEnv(ctx, dir, "alice", "bob")
	if err != nil {
		return nil, err
	}
	w.row = a.row
	for name, text := range map[string]string{"words.yaml": words, "book.yaml": book} {
		if err := os.WriteFile(w.at(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	_, err = w.Board().Create(ctx, board.Draft{Subject: "one", RequirePlan: true, CreatedBy: muster.Lead})
	return w, err
}

// muster runs the program to its end, and reports whether it was killed. Any other failure is an error, with the end of
// the output.
func (a *env) muster(ctx context.Context, fault string, args ...string) (killed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*stuckAfter)
	defer cancel()
	cmd := a.command(ctx, fault, roleMuster, args...)
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() == nil && cmd.ProcessState != nil && wasKilled(cmd.ProcessState):
		return true, nil
	}
	return false, fmt.Errorf("muster %s: %w: %s", args[0], err, out[max(0, len(out)-1500):])
}

// checkTeam wants three landed tasks, nothing half-made, and every mail once.
func (a *env) checkTeam(ctx context.Context) error {
	all, err := a.Board().List(ctx)
	if err != nil {
		return err
	}
	if len(all) != 3 {
		a.fail(&a.row.lost, "there are %d tasks of 3", len(all))
	}
	a.checkGit(all, "muster/x")
	return a.checkPost(ctx)
}

// delivered returns the mails in the transcript of name, in their order.
func (a *env) delivered(ctx context.Context, name muster.Name) (mails []string) {
	for e, err := range transcript.Read(ctx, a.Store().Log(), name, 0) {
		if err != nil {
			a.fail(&a.row.lost, "the transcript of %s: %v", name, err)
			continue
		}
		if e.Kind == transcript.KindCompressed { // it repeats what was said before
			continue
		}
		for _, id := range e.Mail {
			mails = append(mails, string(id))
		}
	}
	return mails
}

// checkPost wants every mail that was sent to be in its reader's transcript once, or still in the inbox. Requests that
// were decided before their mail was read need not be read.
func (a *env) checkPost(ctx context.Context) error {
	had := map[string]bool{}
	for _, name := range []muster.Name{muster.Lead, "alice", "bob"} {
		for _, id := range a.delivered(ctx, name) {
			if had[string(name)+" "+id] {
				a.fail(&a.row.doubled, "mail %s was delivered to %s twice", id, name)
			}
			had[string(name)+" "+id] = true
		}
		waiting, _, _, err := a.Mail(ctx).Peek(ctx, name, 0, 1<<30)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
		for _, m := range waiting {
			had[string(name)+" "+string(m.ID)] = true
		}
	}
	isOfRequest := []muster.MessageType{muster.MailShutdown, muster.MailPlan, muster.MailPlanAnswer}
	for e, err := range a.Journal().Read(ctx, 0) {
		if err != nil {
			return err
		}
		to, id, kind := e.Text("to"), e.Text("id"), e.Text("type")
		if e.Kind != journal.MailSent || slices.Contains(isOfRequest, muster.MessageType(kind)) ||
			to == string(muster.User) || had[to+" "+id] {
			continue
		}
		a.fail(&a.row.lost, "mail %s (%s) from %s to %s is nowhere", id, kind, e.Member, to)
	}
	return nil
}
