package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/requests"
	"muster/internal/transcript"
	"muster/llm"
	"muster/store/mem"
)

// Each check must accept a correct state, and must name the one thing that is wrong in a state with a defect.

// newTestEnv returns an environment whose state is in memory.
func newTestEnv(t *testing.T) (*env, *services) {
	t.Helper()
	s := mem.New()
	dir := t.TempDir()
	a := &env{Config: Config{Open: func(string) (muster.Store, error) { return s.Handle(), nil }, Env: os.Environ()},
		dir: dir, ledgers: newLedgers(dir)}
	if err := os.MkdirAll(a.root(), 0o700); err != nil {
		t.Fatal(err)
	}
	return a, newServices(Job{Dir: a.root(), Name: "check"}, s.Handle())
}

// addEntry adds a line to a ledger.
func (a *env) addEntry(who, line string) {
	a.ledgers.all = append(a.ledgers.all, entry{who, strings.Fields(line)})
}

// expectViolation fails the test unless the check found a violation with the text want, or none if want is empty.
func expectViolation(t *testing.T, a *env, err error, want string) {
	t.Helper()
	said := strings.Join(a.row.Violations, "\n")
	if err != nil || (want == "") == a.row.Bad() || !strings.Contains(said, want) {
		t.Errorf("the check reports %q (%v), want %q", said, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckClaims(t *testing.T) {
	const of = 2
	for want, wrong := range map[string]func(t *testing.T, a *env, r *services, back map[string]bool){
		"": func(*testing.T, *env, *services, map[string]bool) {},
		"there are 1 tasks of 2": func(t *testing.T, _ *env, r *services, _ map[string]bool) {
			must(t, r.board.Delete(t.Context(), 2, true))
		},
		"task 3 is pending": func(t *testing.T, _ *env, r *services, _ map[string]bool) {
			_, err := r.board.Create(t.Context(), board.Draft{Subject: "more", CreatedBy: muster.Lead})
			must(t, err)
		},
		"task 1 was completed by 2 claims": func(_ *testing.T, a *env, _ *services, _ map[string]bool) { a.addEntry("p2", "done 1 2 p2-1") },
		"task 1: the completion": func(_ *testing.T, a *env, _ *services, _ map[string]bool) {
			a.ledgers.all = nil
			a.addEntry("p2", "done 1 7 p2-1")
		},
		"by a claim that had been taken back: 1 1 p1-1": func(_ *testing.T, _ *env, _ *services, back map[string]bool) { back["1 1 p1-1"] = true },
		"nobody was told that task 2": func(t *testing.T, _ *env, r *services, _ map[string]bool) {
			_, end, _, err := r.post.Peek(t.Context(), muster.Lead, 0, 1<<30)
			must(t, err)
			must(t, r.post.Drop(t.Context(), muster.Lead, end))
		},
		"the completion of task 1 was told 2 times": func(t *testing.T, _ *env, r *services, _ map[string]bool) {
			_, err := r.post.Send(t.Context(), muster.Message{From: muster.System, To: muster.Lead, Type: muster.MailLanded, TaskID: 1, Content: "again"})
			must(t, err)
		},
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			r.board.OnEffect(muster.EffectTell, func(ctx context.Context, task muster.Task) error {
				_, err := r.post.Send(ctx, muster.Message{ID: muster.MessageID(fmt.Sprintf("task-%d-%d", task.ID, task.Fence)), From: muster.System,
					To: muster.Lead, Type: muster.MailLanded, TaskID: task.ID, Content: task.Subject})
				return err
			})
			for range of {
				_, err := r.board.Create(t.Context(), board.Draft{Subject: "work", CreatedBy: muster.Lead})
				must(t, err)
				task, _, err := r.board.ClaimNext(t.Context(), board.Claim{Owner: "p1-1"})
				must(t, err)
				_, err = r.board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{By: "p1-1"})
				must(t, err)
				a.addEntry("p1", fmt.Sprintf("done %d %d p1-1", task.ID, task.Fence))
			}
			must(t, r.board.Settle(t.Context()))
			back := map[string]bool{}
			wrong(t, a, r, back)
			tasks := of
			if strings.Contains(want, "pending") {
				tasks++
			}
			err := a.checkClaims(t.Context(), r, tasks, back)
			if strings.Contains(want, "pending") { // and nobody was told of it
				a.row.Violations = a.row.Violations[:1]
			}
			expectViolation(t, a, err, want)
		})
	}
}

// takes puts words into a conversation, with the mails that they bring.
func takes(t *testing.T, r *services, who muster.Name, text string, mail ...muster.MessageID) {
	t.Helper()
	script, err := transcript.Open(t.Context(), r.store.Log(), who)
	must(t, err)
	if strings.HasPrefix(text, "epoch") {
		must(t, script.Mark(t.Context(), text))
		return
	}
	must(t, script.User(t.Context(), []llm.Part{llm.Text{Text: text}}, mail))
}

func TestCheckMail(t *testing.T) {
	for want, wrong := range map[string]func(t *testing.T, a *env, r *services){
		"":                                       func(*testing.T, *env, *services) {},
		"mail s1-3 was acknowledged and is nowh": func(_ *testing.T, a *env, _ *services) { a.addEntry("s1", "sent 3") },
		"mail s1-2 was delivered 2 times":        func(t *testing.T, _ *env, r *services) { takes(t, r, "reader-1", "x", "s1-2") },
		"mail s1-1 was delivered after mail 2":   func(t *testing.T, _ *env, r *services) { takes(t, r, "reader-1", "x", "s1-1") },
		"3 mails of 2 were delivered":            func(t *testing.T, _ *env, r *services) { takes(t, r, "reader-2", "x", "s2-1") },
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			a.addEntry("s1", "sent 1")
			a.addEntry("s1", "sent 2")
			takes(t, r, "reader-1", "x", "s1-1", "s1-2")
			wrong(t, a, r)
			expectViolation(t, a, a.checkMail(t.Context(), 1, 2), want)
		})
	}
}

func TestCheckRequests(t *testing.T) {
	for want, wrong := range map[string]func(t *testing.T, a *env, r *services){
		"":                               func(*testing.T, *env, *services) {},
		"was decided by 2 processes":     func(_ *testing.T, a *env, _ *services) { a.addEntry("d2", "told 0 approved d1 true") },
		"people were told":               func(_ *testing.T, a *env, _ *services) { a.addEntry("d2", "told 0 rejected d2 false") },
		"was answered by 2 mails":        func(t *testing.T, _ *env, r *services) { answer(t, r) },
		"was mailed to nobody":           nil,
		"request 00000002 is pending":    nil,
		"00000001 is approved by d1, an": func(_ *testing.T, a *env, _ *services) { a.ledgers.all = a.ledgers.all[:0] },
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			q := requests.New(r.store, r.post, r.journal)
			n := 1
			if strings.Contains(want, "pending") {
				n = 2
			}
			for i := range n {
				_, err := q.Ask(t.Context(), muster.Request{ID: requestID(i), Kind: muster.AskPlan, From: "asker", To: muster.Lead, TaskID: 1, Plan: "plan"})
				must(t, err)
			}
			_, _, err := q.Decide(t.Context(), requestID(0), muster.Lead, true, "d1")
			must(t, err)
			if want == "was mailed to nobody" {
				_, end, _, err := r.post.Peek(t.Context(), "asker", 0, 1<<30)
				must(t, err)
				must(t, r.post.Drop(t.Context(), "asker", end))
			}
			a.addEntry("d1", "told 0 approved d1 true")
			if wrong != nil {
				wrong(t, a, r)
			}
			expectViolation(t, a, a.checkRequests(t.Context(), r, q, n), want)
		})
	}
}

func answer(t *testing.T, r *services) {
	t.Helper()
	_, err := r.post.Send(t.Context(), muster.Message{From: muster.Lead, To: "asker", Type: muster.MailPlanAnswer, RequestID: requestID(0), Content: "again"})
	must(t, err)
}

func TestCheckHosts(t *testing.T) {
	for want, wrong := range map[string]func(t *testing.T, a *env, r *services){
		"":                             func(*testing.T, *env, *services) {},
		"epoch 1 of m1 has two hosts":  func(_ *testing.T, a *env, _ *services) { a.addEntry("h2", "took m1 1 host-2.1") },
		"a host of epoch 1 wrote":      func(t *testing.T, _ *env, r *services) { takes(t, r, "m1", "turn 1 3") },
		"turn 2 of m1 stands where tu": func(t *testing.T, _ *env, r *services) { takes(t, r, "m1", "turn 2 2") },
		"m1 has had 3 turns of 2":      func(t *testing.T, _ *env, r *services) { takes(t, r, "m1", "turn 2 3") },
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			a.addEntry("h1", "took m1 1 host-1.1")
			a.addEntry("h2", "took m1 2 host-2.1")
			for _, text := range []string{"epoch 1", "turn 1 1", "epoch 2", "turn 2 2"} {
				takes(t, r, "m1", text)
			}
			wrong(t, a, r)
			expectViolation(t, a, a.checkHosts(t.Context(), r, 1, 2), want)
		})
	}
}

// TestJudgeOfLandings: a commit for each task, and nothing half-made.
func TestCheckLandings(t *testing.T) {
	for want, wrong := range map[string]func(t *testing.T, a *env, all []muster.Task){
		"":                        func(*testing.T, *env, []muster.Task) {},
		"there are 2 tasks of 1":  nil,
		"with [tell] to follow":   func(_ *testing.T, _ *env, all []muster.Task) { all[0].Effects = []muster.Effect{muster.EffectTell} },
		"task 1 is landing":       func(_ *testing.T, _ *env, all []muster.Task) { all[0].Status = muster.Landing },
		"has landed 2 times":      func(t *testing.T, a *env, _ []muster.Task) { land(t, a) },
		"and no commit on landed": func(_ *testing.T, _ *env, all []muster.Task) { all[0].Landed = nil },
		"task 1 names the commit": func(_ *testing.T, _ *env, all []muster.Task) {
			all[0].Landed = &muster.Landed{Commit: strings.Repeat("0", 40)}
		},
		"refs are left": func(t *testing.T, a *env, _ []muster.Task) { gitIn(t, a, "branch", "wt/x", "main") },
		"worktrees are left": func(t *testing.T, a *env, _ []muster.Task) {
			gitIn(t, a, "worktree", "add", "-q", "--detach", filepath.Join(a.dir, "elsewhere"))
		},
		"rows are left": func(t *testing.T, a *env, _ []muster.Task) {
			must(t, os.WriteFile(a.at("repo/.worktrees/index.json"), []byte(`{"worktrees": {"x": {}}}`), 0o600))
		},
		"is left in .worktrees": func(t *testing.T, a *env, _ []muster.Task) { must(t, os.Mkdir(a.at("repo/.worktrees/x"), 0o700)) },
	} {
		t.Run(want, func(t *testing.T) {
			a, _ := newTestEnv(t)
			must(t, a.repository())
			must(t, os.Mkdir(a.at("repo/.worktrees"), 0o700))
			all := []muster.Task{{ID: 1, Status: muster.Completed, Landed: &muster.Landed{Commit: land(t, a)}}}
			if wrong != nil {
				wrong(t, a, all)
			} else {
				all = append(all, all[0])
			}
			expectViolation(t, a, a.checkGit(all, target, 1), want)
		})
	}
}

func gitIn(t *testing.T, a *env, args ...string) string {
	t.Helper()
	out, err := a.git(args...)
	must(t, err)
	return out
}

// land makes a commit of task 1 on the target.
func land(t *testing.T, a *env) string {
	t.Helper()
	commit := gitIn(t, a, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit-tree", "-p", target, "-m", "work\n\nMuster-Task: 1", target+"^{tree}")
	gitIn(t, a, "update-ref", "refs/heads/"+target, commit)
	return commit
}

// TestJudgeOfATeamsMail: what was sent is in its reader's conversation once, or waits.
func TestCheckPost(t *testing.T) {
	for want, wrong := range map[string]func(t *testing.T, r *services){
		"":                                 func(t *testing.T, r *services) { takes(t, r, "alice", "x", "m1") },
		"mail m1 (message) from bob to al": func(*testing.T, *services) {},
		"m1 was delivered to alice twice": func(t *testing.T, r *services) {
			takes(t, r, "alice", "x", "m1")
			takes(t, r, "alice", "x", "m1")
		},
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			must(t, os.Mkdir(a.at("repo/.team"), 0o700))
			must(t, os.WriteFile(a.at("repo/.team/events.jsonl"), []byte(
				`{"event":"mail.sent","member":"bob","ts":1,"type":"message","to":"alice","id":"m1"}`+"\n"), 0o600))
			wrong(t, r)
			w := &teamRepo{a, a, a.dir}
			w.checkPost(t.Context(), r)
			expectViolation(t, a, nil, want)
		})
	}
}

// TestJudgeOfTheJournal: each line is there once, in whatever file, and the files' numbers are the places of their ends.
func TestCheckJournal(t *testing.T) {
	line := filler + "x\"}\n"
	for want, c := range map[string]struct{ aside, live, number int }{
		"":                       {fillings - 5, 5, (fillings - 5) * len(line)},
		"64 of 65 large lines":   {fillings - 5, 4, (fillings - 5) * len(line)},
		"66 lines of 65":         {fillings - 5, 6, (fillings - 5) * len(line)},
		"events.7.jsonl ends at": {fillings - 5, 5, 7},
		"was never put aside":    {0, fillings, 0},
	} {
		t.Run(want, func(t *testing.T) {
			a, _ := newTestEnv(t)
			dir := a.at("repo/.team")
			must(t, os.Mkdir(dir, 0o700))
			if c.aside > 0 {
				must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("events.%d.jsonl", c.number)), []byte(strings.Repeat(line, c.aside)), 0o600))
			}
			must(t, os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(strings.Repeat(line, c.live)), 0o600))
			expectViolation(t, a, a.checkJournal(1), want)
		})
	}
}
