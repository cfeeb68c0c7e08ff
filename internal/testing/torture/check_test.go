package torture

import (
	"context"
	"os"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// Each check must accept a correct state, and must name the one thing that is wrong in a state with a defect.

// change changes a state.
type change func(t *testing.T, a *env)

// testCheck makes a correct state for each defect, and expects check to report the text that is the defect's key.
func testCheck(t *testing.T, correct change, check func(*env, context.Context) error, defects map[string]change) {
	gittest.Env(t)
	defects[""] = func(*testing.T, *env) {}
	for want, damage := range defects {
		t.Run(want, func(t *testing.T) {
			a, err := (&session{dir: t.TempDir()}).newEnv(t.Context(), "test", "alice", "bob")
			require.NoError(t, err)
			defer a.Close()
			correct(t, a)
			damage(t, a)
			err = check(a, t.Context())
			said := strings.Join(a.row.violations, "\n")
			if err != nil || (want == "") == (len(a.row.violations) > 0) || !strings.Contains(said, want) {
				t.Errorf("the check reports %q (%v), want %q", said, err, want)
			}
		})
	}
}

// promise returns a change that adds lines of workers.
func promise(lines ...string) change {
	return func(_ *testing.T, a *env) { a.promises = append(a.promises, lines...) }
}

// create returns the new task of a claim of p1.
func create(t *testing.T, a *env) muster.Task {
	t.Helper()
	_, err := a.Board().Create(t.Context(), board.Draft{Subject: "work", CreatedBy: muster.Lead})
	require.NoError(t, err)
	task, _, err := a.Board().ClaimNext(t.Context(), board.Claim{Owner: "p1"})
	require.NoError(t, err)
	return task
}

func TestCheckClaims(t *testing.T) {
	correct := func(t *testing.T, a *env) {
		task := create(t, a)
		_, err := a.Board().Complete(t.Context(), task.ID, task.Fence, board.Outcome{By: "p1"})
		require.NoError(t, err)
		require.NoError(t, a.Board().Settle(t.Context()))
		promise("created 1", "done 1 1 p1", "late 1 0 p2")(t, a)
	}
	testCheck(t, correct, (*env).checkClaims, map[string]change{
		"task 7 was created and is not on the board":         promise("created 7"),
		`by the claim "1 2 p2", and the board says "1 1 p1"`: promise("done 1 2 p2"),
		"task 2 is in_progress":                              func(t *testing.T, a *env) { create(t, a) },
		"the lead was not told that task 1": func(t *testing.T, a *env) {
			_, end, _, err := a.Mail(t.Context()).Peek(t.Context(), muster.Lead, 0, 1<<30)
			require.NoError(t, err)
			require.NoError(t, a.Mail(t.Context()).Drop(t.Context(), muster.Lead, end))
		},
		"the completion of task 1 was told 2 times": func(t *testing.T, a *env) {
			_, err := a.Mail(t.Context()).Send(t.Context(), muster.Message{From: muster.System, To: muster.Lead,
				Type: muster.MailLanded, TaskID: 1, Content: "again"})
			require.NoError(t, err)
		},
	})
}

// deliverTo returns a change that puts a message with mails into a transcript.
func deliverTo(who muster.Name, mail ...muster.MessageID) change {
	return func(t *testing.T, a *env) {
		script, err := transcript.Open(t.Context(), a.Store().Log(), who)
		require.NoError(t, err)
		require.NoError(t, script.User(t.Context(), []llm.Part{llm.Text{Text: "mail"}}, mail))
	}
}

func TestCheckMail(t *testing.T) {
	correct := func(t *testing.T, a *env) {
		promise("sent s1-2", "sent s1-last")(t, a)
		deliverTo("reader-1", "s1-2", "s1-last")(t, a)
	}
	check := func(a *env, ctx context.Context) error {
		a.checkMail(ctx, []job{{Worker: "reader-1"}, {Worker: "reader-2"}})
		return nil
	}
	testCheck(t, correct, check, map[string]change{
		"mail s1-4 was acknowledged and is nowhe": promise("sent s1-4"),
		"mail s1-last was delivered twice":        deliverTo("reader-2", "s1-last"),
		"mail s1-1 was delivered after mail":      deliverTo("reader-1", "s1-1"),
	})
}

func TestCheckPost(t *testing.T) {
	correct := func(t *testing.T, a *env) {
		require.NoError(t, a.Journal().Emit(t.Context(), muster.Event{Kind: journal.MailSent, Member: "bob",
			Fields: map[string]any{"type": "message", "to": "alice", "id": "m1"}}))
		deliverTo("alice", "m1")(t, a)
	}
	testCheck(t, correct, (*env).checkPost, map[string]change{
		"m1 was delivered to alice twice": deliverTo("alice", "m1"),
		"mail m2 (message) from bob to al": func(t *testing.T, a *env) {
			require.NoError(t, a.Journal().Emit(t.Context(), muster.Event{Kind: journal.MailSent, Member: "bob",
				Fields: map[string]any{"type": "message", "to": "alice", "id": "m2"}}))
		},
	})
}

// commit makes a commit of task 1 with the tree on the target.
func commit(t *testing.T, a *env, tree string) string {
	t.Helper()
	id := gittest.Git(t, a.Root(), "commit-tree", "-p", target, "-m", "work\n\nMuster-Task: 1", tree)
	gittest.Git(t, a.Root(), "update-ref", "refs/heads/"+target, id)
	return id
}

func TestCheckGit(t *testing.T) {
	var task muster.Task
	correct := func(t *testing.T, a *env) {
		require.NoError(t, os.Mkdir(a.at("repo/.worktrees"), 0o700))
		task = muster.Task{ID: 1, Status: muster.Completed,
			Landed: &muster.Landed{Commit: commit(t, a, "main^{tree}")}}
	}
	check := func(a *env, _ context.Context) error {
		a.checkGit([]muster.Task{task}, target)
		return nil
	}
	testCheck(t, correct, check, map[string]change{
		"with [tell] to follow": func(*testing.T, *env) { task.Effects = []muster.Effect{muster.EffectTell} },
		"task 1 is landing":     func(*testing.T, *env) { task.Status = muster.Landing },
		"has landed 2 times":    func(t *testing.T, a *env) { commit(t, a, "main^{tree}") },
		"and no commit on land": func(*testing.T, *env) { task.Landed = nil },
		"task 1 names the comm": func(*testing.T, *env) { task.Landed = &muster.Landed{Commit: strings.Repeat("0", 40)} },
		"landed was red at": func(t *testing.T, a *env) {
			gittest.Write(t, a.Root(), map[string]string{"broken-1": "x"})
			gittest.Git(t, a.Root(), "add", "broken-1")
			commit(t, a, gittest.Git(t, a.Root(), "write-tree"))
		},
		"git fsck": func(t *testing.T, a *env) {
			id := gittest.Git(t, a.Root(), "rev-parse", "main^{tree}")
			require.NoError(t, os.Remove(a.at("repo/.git/objects/"+id[:2]+"/"+id[2:])))
		},
		"refs are left": func(t *testing.T, a *env) { gittest.Git(t, a.Root(), "branch", "wt/x", "main") },
		"worktrees are left": func(t *testing.T, a *env) {
			gittest.Git(t, a.Root(), "worktree", "add", "-q", "--detach", a.at("elsewhere"))
		},
		"rows are left": func(t *testing.T, a *env) {
			gittest.Write(t, a.Root(), map[string]string{".worktrees/index.json": `{"worktrees": {"x": {}}}`})
		},
		"is left in .worktrees": func(t *testing.T, a *env) { require.NoError(t, os.Mkdir(a.at("repo/.worktrees/x"), 0o700)) },
	})
}

func TestWrongPoints(t *testing.T) {
	var all []string
	for _, p := range faultinject.Points() {
		all = append(all, p.Name)
	}
	for _, c := range []struct{ without, with, want string }{
		{want: ""},
		{without: "lane.undone", want: "the point lane.undone was never passed"},
		{with: "no.such", want: "the point no.such was passed and is not on the list"},
		{without: "landing.reviewed"},
	} {
		passed := strings.Fields(strings.Replace(strings.Join(all, " "), c.without, "", 1) + " " + c.with)
		if got := strings.Join(wrongPoints(passed), "\n"); got != c.want {
			t.Errorf("without %q, with %q: %q, want %q", c.without, c.with, got, c.want)
		}
	}
}

// TestNeedsFailpoints checks that a build without failpoints runs nothing: it would kill fewer processes than it should.
func TestNeedsFailpoints(t *testing.T) {
	if failpoint.Enabled {
		t.Skip("this build has failpoints")
	}
	if code := Main([]string{"-minutes", "0"}); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
}
