package torture

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/store/mem"
)

// Each check must accept a correct state, and must name the one thing that is wrong in a state with a defect.

// newTestEnv returns an environment whose state is in memory.
func newTestEnv(t *testing.T) (*env, *services) {
	t.Helper()
	s := mem.New()
	a, err := Config{Dir: t.TempDir(), Open: func(string) (muster.Store, error) { return s.Handle(), nil },
		Env: os.Environ()}.newEnv(Row{})
	must(t, err)
	r := newServices(Job{Dir: a.root(), Name: "p1"}, s.Handle())
	r.out = io.Discard
	return a, r
}

// promise adds a line of a worker.
func (a *env) promise(worker, line string) {
	a.promises = append(a.promises, promise{worker, strings.Fields(line)})
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
	for want, wrong := range map[string]func(t *testing.T, a *env, r *services){
		"": func(*testing.T, *env, *services) {},
		"task 7 was created and is not on the board": func(_ *testing.T, a *env, _ *services) { a.promise("p1", "created 7") },
		"task 2 is pending": func(t *testing.T, _ *env, r *services) {
			_, err := r.board.Create(t.Context(), board.Draft{Subject: "more", CreatedBy: muster.Lead})
			must(t, err)
		},
		`by the claim "1 2 p2", and the board says "1 1 p1"`: func(_ *testing.T, a *env, _ *services) { a.promise("p2", "done 1 2 p2") },
		"the lead was not told that task 1": func(t *testing.T, _ *env, r *services) {
			_, end, _, err := r.post.Peek(t.Context(), muster.Lead, 0, 1<<30)
			must(t, err)
			must(t, r.post.Drop(t.Context(), muster.Lead, end))
		},
		"the completion of task 1 was told 2 times": func(t *testing.T, _ *env, r *services) {
			_, err := r.post.Send(t.Context(), muster.Message{From: muster.System, To: muster.Lead, Type: muster.MailLanded, TaskID: 1, Content: "again"})
			must(t, err)
		},
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			r.board.OnEffect(muster.EffectTell, r.tellLead)
			_, err := r.board.Create(t.Context(), board.Draft{Subject: "work", CreatedBy: muster.Lead})
			must(t, err)
			task, _, err := r.board.ClaimNext(t.Context(), board.Claim{Owner: r.owner()})
			must(t, err)
			must(t, r.complete(t.Context(), task))
			must(t, r.board.Settle(t.Context()))
			a.promise("p1", "created 1")
			a.promise("p1", "done 1 1 p1")
			wrong(t, a, r)
			expectViolation(t, a, a.checkClaims(t.Context(), r), want)
		})
	}
}

// deliverTo puts a message that brings mails into a transcript.
func deliverTo(t *testing.T, r *services, who muster.Name, mail ...muster.MessageID) {
	t.Helper()
	script, err := transcript.Open(t.Context(), r.store.Log(), who)
	must(t, err)
	must(t, script.User(t.Context(), []llm.Part{llm.Text{Text: "mail"}}, mail))
}

func TestCheckMail(t *testing.T) {
	for want, wrong := range map[string]func(t *testing.T, a *env, r *services){
		"": func(*testing.T, *env, *services) {},
		"mail s1-4 was acknowledged and is nowhe": func(_ *testing.T, a *env, _ *services) { a.promise("s1", "sent s1-4") },
		"mail s1-3.last was delivered twice":      func(t *testing.T, _ *env, r *services) { deliverTo(t, r, "reader-1", "s1-3.last") },
		"mail s1-1 was delivered after mail 3":    func(t *testing.T, _ *env, r *services) { deliverTo(t, r, "reader-1", "s1-1") },
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			a.promise("s1", "sent s1-2")
			a.promise("s1", "sent s1-3.last")
			deliverTo(t, r, "reader-1", "s1-2", "s1-3.last")
			wrong(t, a, r)
			expectViolation(t, a, a.checkMail(t.Context()), want)
		})
	}
}

func TestCheckGit(t *testing.T) {
	tier.All(t) // twelve repositories
	gittest.Env(t)
	for want, wrong := range map[string]func(t *testing.T, a *env, all []muster.Task){
		"":                        func(*testing.T, *env, []muster.Task) {},
		"with [tell] to follow":   func(_ *testing.T, _ *env, all []muster.Task) { all[0].Effects = []muster.Effect{muster.EffectTell} },
		"task 1 is landing":       func(_ *testing.T, _ *env, all []muster.Task) { all[0].Status = muster.Landing },
		"has landed 2 times":      func(t *testing.T, a *env, _ []muster.Task) { commit(t, a) },
		"and no commit on landed": func(_ *testing.T, _ *env, all []muster.Task) { all[0].Landed = nil },
		"task 1 names the commit": func(_ *testing.T, _ *env, all []muster.Task) {
			all[0].Landed = &muster.Landed{Commit: strings.Repeat("0", 40)}
		},
		"refs are left": func(t *testing.T, a *env, _ []muster.Task) { gittest.Git(t, a.root(), "branch", "wt/x", "main") },
		"worktrees are left": func(t *testing.T, a *env, _ []muster.Task) {
			gittest.Git(t, a.root(), "worktree", "add", "-q", "--detach", filepath.Join(a.dir, "elsewhere"))
		},
		"rows are left": func(t *testing.T, a *env, _ []muster.Task) {
			gittest.Write(t, a.root(), map[string]string{".worktrees/index.json": `{"worktrees": {"x": {}}}`})
		},
		"is left in .worktrees": func(t *testing.T, a *env, _ []muster.Task) { must(t, os.Mkdir(a.at("repo/.worktrees/x"), 0o700)) },
	} {
		t.Run(want, func(t *testing.T) {
			a, _ := newTestEnv(t)
			must(t, a.newRepository())
			must(t, os.Mkdir(a.at("repo/.worktrees"), 0o700))
			all := []muster.Task{{ID: 1, Status: muster.Completed, Landed: &muster.Landed{Commit: commit(t, a)}}}
			wrong(t, a, all)
			expectViolation(t, a, a.checkGit(all, target), want)
		})
	}
}

// commit makes a commit of task 1 on the target.
func commit(t *testing.T, a *env) string {
	t.Helper()
	id := gittest.Git(t, a.root(), "commit-tree", "-p", target, "-m", "work\n\nMuster-Task: 1", target+"^{tree}")
	gittest.Git(t, a.root(), "update-ref", "refs/heads/"+target, id)
	return id
}

func TestCheckPost(t *testing.T) {
	for want, delivered := range map[string][]muster.MessageID{
		"": {"m1"}, "mail m1 (message) from bob to al": nil, "m1 was delivered to alice twice": {"m1", "m1"},
	} {
		t.Run(want, func(t *testing.T) {
			a, r := newTestEnv(t)
			must(t, r.journal.Emit(t.Context(), muster.Event{Kind: journal.MailSent, Member: "bob",
				Fields: map[string]any{"type": "message", "to": "alice", "id": "m1"}}))
			deliverTo(t, r, "alice", delivered...)
			expectViolation(t, a, a.checkPost(t.Context(), r), want)
		})
	}
}
