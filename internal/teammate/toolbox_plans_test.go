package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/permissions"
	"muster/internal/tool/code"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// submit submits a plan, and returns when the member waits for its decision.
func (l *life) submit(ctx context.Context) <-chan permitted {
	done := make(chan permitted, 1)
	go func() {
		r, err := l.claims.plans.Plan(ctx, "Rewrite it.")
		done <- permitted{r, err, 0}
	}()
	synctest.Wait()
	return done
}

// A member that has submitted a plan is shown to wait, and reads the answer as the result of its call, not as mail too.
func TestAPlanIsDecided(t *testing.T) {
	for _, approve := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			task := p.claim()
			done := p.submit(t.Context())
			all := p.waiting()
			if len(all) != 1 || all[0].Plan != "Rewrite it." || all[0].TaskID != task.ID || all[0].Fence != task.Fence {
				t.Fatalf("%+v wait", all)
			}
			if m := p.me(); m.Doing != "waits for plan "+string(all[0].ID) || m.Status != muster.Working {
				t.Errorf("she is %s and %q", m.Status, m.Doing)
			}
			p.decide(all[0].ID, muster.Lead, approve, "Mind the tests.")
			got := <-done
			want := "Approved by lead. Mind the tests."
			if !approve {
				want = "The plan is rejected. Mind the tests. Call submit_plan with another plan, or release_task."
			}
			if got.err != nil || got.r.IsError == approve || got.r.Text() != want {
				t.Errorf("%q, %v", got.r.Text(), got.err)
			}
			if m := p.me(); m.Doing != "" {
				t.Errorf("it is decided, and she is %q", m.Doing)
			}
			if wakes, err := p.conversation.hasWakingMail(t.Context()); wakes || err != nil {
				t.Errorf("the answer is mail to read: %v", err)
			}
		})
	}
}

// asks are a plan and a question of permission, in which the member waits for a decision of by.
var asks = map[string]struct {
	ask func(*life, context.Context) <-chan permitted
	by  muster.Name
}{"a plan": {(*life).submit, muster.Lead}, "a question": {(*life).touch, muster.User}}

// A plan or a question whose task is taken away is void: its owner waits no longer, has no task, and nobody decides it.
// A plan is for a task, and says something.
func TestWhatIsAskedForALostTask(t *testing.T) {
	for what, c := range asks {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			task := p.claim()
			p.allowTouch(0)
			done := c.ask(p, t.Context())
			if n := len(p.waiting()); n != 1 {
				t.Fatalf("%s: %d wait", what, n)
			}
			p.revoke(task, true)
			if got := <-done; !errors.Is(got.err, muster.ErrFenced) || got.runs != 0 || p.current().ID != 0 || len(p.waiting()) > 0 {
				t.Errorf("%s: %+v; she has task %d, and %d wait", what, got, p.current().ID, len(p.waiting()))
			}
		})
	}
	p := newParts(t, "alice")
	none, err := p.claims.plans.Plan(t.Context(), "")
	p.must(err)
	p.claim()
	empty, err := p.claims.plans.Plan(t.Context(), "")
	if text := none.Text() + empty.Text(); err != nil || !none.IsError || !empty.IsError ||
		!strings.Contains(text, "hold no task") || !strings.Contains(text, "plan is empty") {
		t.Errorf("%q, %v", text, err)
	}
	p.revoke(p.current(), true)
	_, err = p.claims.plans.Plan(t.Context(), "Rewrite it.")
	if p.wants("before it is asked", err, muster.ErrFenced); p.current().ID != 0 || len(p.waiting()) > 0 {
		t.Errorf("she has task %d, and %d plans wait", p.current().ID, len(p.waiting()))
	}
}

// A process that is stopped while it waits leaves what it has asked and the claim; the next one asks no second time.
func TestWhatIsAskedOutlivesItsProcess(t *testing.T) {
	for what, c := range asks {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.claim()
			p.allowTouch(0)
			ctx, stop := context.WithCancelCause(t.Context())
			done := c.ask(p, ctx)
			was := p.waiting()
			stop(muster.ErrFenced) // whatever the cause is: it says nothing about the task
			if got := <-done; !errors.Is(got.err, muster.ErrFenced) || got.runs != 0 || p.current().ID == 0 || p.task(1).Owner != "alice" {
				t.Errorf("%s: %+v; she has task %d", what, got, p.current().ID)
			}
			time.Sleep(time.Minute)
			p.reopen(p.world.Store)
			p.must(p.claims.find(t.Context()))
			p.allowTouch(0)
			done = c.ask(p, t.Context())
			if all := p.waiting(); len(all) != 1 || len(was) != 1 || all[0].ID != was[0].ID || all[0].Deadline != was[0].Deadline {
				t.Fatalf("%s: %+v wait, and %+v did before", what, all, was)
			}
			p.decide(was[0].ID, c.by, true, "")
			if got := <-done; got.err != nil || got.r.IsError {
				t.Errorf("%s: %+v", what, got)
			}
		})
	}
}

// writing begins a call of write_file that makes the working directory's file "two", which a rule asks about.
func (p *life) writing(ctx context.Context, runs *int) (file string, done chan error) {
	w := p.toolbox.wraps
	r, err := permissions.ParseRule(permissions.Ask, "edit_file", "config.yaml")
	p.must(err)
	w.permits.settings = permissions.Settings{Policy: permissions.Policy{Rules: []permissions.Rule{r}}}
	dir := p.toolbox.newWorkdir()
	at, err := dir.Workdir(ctx)
	p.must(err)
	write := tool.Func("write_file", "writes", func(context.Context, struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}) (string, error) {
		*runs++
		return "done", nil
	})
	write = tool.Wrap(write, w.permits.around(write, dir))
	done = make(chan error, 1)
	go func() {
		_, err := write.Run(ctx, llm.Call{ID: "1", Name: "write_file", Input: []byte(`{"path":"file","content":"two\n"}`)}, nil)
		done <- err
	}()
	synctest.Wait()
	return filepath.Join(at.Dir, "file"), done
}

// An answer is for the change that was shown: where the file is another one by then, the question is asked again, and a
// question of before a restart is replaced.
func TestAnAnswerIsForTheChangeThatWasShown(t *testing.T) {
	const first, other, third = "--- /dev/null\n+++ b/file\n@@ -0,0 +1,1 @@\n+two\n",
		"--- a/file\n+++ b/file\n@@ -1,1 +1,1 @@\n-other\n+two\n", "--- a/file\n+++ b/file\n@@ -1,1 +1,1 @@\n-third\n+two\n"
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.claim()
		runs := 0
		shows := func(want string) muster.RequestID {
			t.Helper()
			synctest.Wait()
			all := p.waiting()
			if len(all) != 1 || all[0].Change != want || runs > 0 {
				t.Fatalf("%+v wait, %d runs", all, runs)
			}
			return all[0].ID
		}
		ctx, stop := context.WithCancelCause(t.Context())
		file, done := p.writing(ctx, &runs)
		id := shows(first)
		p.must(os.WriteFile(file, []byte("other\n"), 0o600))
		p.decide(id, muster.User, true, "")
		time.Sleep(time.Second)
		id = shows(code.ChangedSince + other)
		restart := func() {
			stop(muster.ErrFenced)
			if err := <-done; !errors.Is(err, muster.ErrFenced) {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			p.reopen(p.world.Store)
			p.must(p.claims.find(t.Context()))
			ctx, stop = context.WithCancelCause(t.Context())
			_, done = p.writing(ctx, &runs)
		}
		restart()
		if got := shows(code.ChangedSince + other); got != id {
			t.Errorf("it is asked as %s a second time as %s", id, got)
		}
		p.must(os.WriteFile(file, []byte("third\n"), 0o600))
		restart()
		p.decide(shows(third), muster.User, true, "")
		time.Sleep(time.Second)
		p.must(<-done)
		if runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// interrupted begins a call that is asked about and ends its process meanwhile. It returns the question.
func (p *life) interrupted() muster.Request {
	p.Helper()
	p.claim()
	p.allowTouch(0)
	ctx, stop := context.WithCancelCause(p.Context())
	done := p.touch(ctx)
	was := p.waiting()[0]
	stop(muster.ErrFenced)
	<-done
	return was
}

// reopenAsking begins the next process.
func (p *life) reopenAsking() {
	p.Helper()
	time.Sleep(time.Minute)
	p.reopen(p.world.Store)
	p.must(p.claims.find(p.Context()))
	p.allowTouch(0)
}

// The user may answer while no process of the team lives. That answer is for one call: of two that run side by side the
// second is asked about. It counts for nothing in the next run, and where the model has not repeated the call in its
// next replies.
func TestAnAnswerBetweenTwoProcesses(t *testing.T) {
	for what, before := range map[string]func(*life){
		"a call": func(p *life) {
			if got := <-p.touch(p.Context()); got.err != nil || got.r.IsError {
				t.Errorf("%+v", got)
			}
		},
		"a call side by side": func(p *life) {
			done := p.touch(p.Context())
			p.touch(p.Context())
			p.decide(p.waiting()[0].ID, muster.User, false, "once is enough")
			if got := <-done; got.r.IsError {
				t.Errorf("%+v", got)
			}
		},
		"the next run": func(p *life) { p.run.StartedAt = muster.UnixTime(time.Now()) },
		"other calls": func(p *life) {
			for i := range lostReplies {
				p.toolbox.wraps.permits.repliedAt = func() float64 { return float64(i + 1) }
				p.toolbox.wraps.permits.noteReply(p.Context())
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.decide(p.interrupted().ID, muster.User, true, "")
			p.reopenAsking()
			before(p)
			done := p.touch(t.Context())
			all := p.waiting()
			if len(all) != 1 {
				t.Fatalf("after %s %+v wait", what, all)
			}
			p.decide(all[0].ID, muster.User, false, "no")
			if got := <-done; !got.r.IsError {
				t.Errorf("after %s: %+v", what, got)
			}
		})
	}
}

// A question whose deadline has passed while no process lived is asked anew.
func TestAQuestionThatNobodyWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		was := p.interrupted()
		time.Sleep(time.Hour)
		p.reopenAsking()
		done := p.touch(t.Context())
		all := p.waiting()
		if len(all) != 1 || all[0].ID == was.ID || all[0].Deadline < was.Deadline+3000 {
			t.Fatalf("%+v wait", all)
		}
		p.decide(all[0].ID, muster.User, true, "")
		if got := <-done; got.err != nil || got.r.IsError {
			t.Errorf("%+v", got)
		}
	})
}

// A question whose call has ended with its process is taken back when the member is done with its task.
func TestALostQuestionIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.interrupted()
		p.reopenAsking()
		if n := len(p.waiting()); n != 1 {
			t.Errorf("%d questions wait", n)
		}
		for i, name := range []string{"read_file", "complete_task"} {
			call := tool.Func(name, "does nothing", func(context.Context, struct{}) (string, error) { return "", nil })
			call = tool.Wrap(call, p.toolbox.wraps.permits.around(call, p.toolbox.newWorkdir()))
			if _, err := call.Run(t.Context(), llm.Call{ID: "2", Name: name, Input: []byte(`{}`)}, nil); err != nil {
				t.Error(err)
			}
			if all := p.waiting(); len(all) != 1-i {
				t.Errorf("after %s %+v wait", name, all)
			}
		}
	})
}

// The same plan for the same claim is one request until it is rejected. Any other is a new one.
func TestAPlanIsAskedOnce(t *testing.T) {
	p := newParts(t, "alice")
	task := p.claim()
	ask := func(plan string) muster.RequestID {
		t.Helper()
		r, err := p.claims.plans.request(t.Context(), p.current(), plan)
		p.must(err)
		return r.ID
	}
	first := ask("one")
	if ask("one") != first {
		t.Error("a plan that waits is asked again")
	}
	if p.decide(first, muster.Lead, true, ""); ask("one") != first {
		t.Error("an approved plan is asked again")
	}
	second := ask("two")
	if second == first || ask("one") == first {
		t.Error("an older plan counts though another was submitted after it")
	}
	third := ask("two")
	if third == second {
		t.Error("an older plan counts")
	}
	if p.decide(third, muster.Lead, false, ""); ask("two") == third {
		t.Error("a rejected plan is not asked again")
	}
	mine := ask("three")
	p.revoke(task, false)
	p.claims.clearTask()
	_, err := p.claims.Claim(t.Context(), task.ID)
	if p.must(err); ask("three") == mine {
		t.Error("a plan for an earlier claim counts for this one")
	}
	failEach(t, func(p *life) { p.claim() }, func(p *life) error {
		_, err := p.claims.plans.request(p.Context(), p.current(), "one")
		return err
	})
}

// What is cancelled with a claim are its plans: no other request, of nobody else, and of no other claim.
func TestOnlyThePlansOfAClaimAreCancelled(t *testing.T) {
	p := newParts(t, "alice")
	task := p.claim()
	p.create(board.Draft{})
	ask := func(r muster.Request) muster.RequestID {
		t.Helper()
		r, err := p.config.Requests.Ask(t.Context(), r)
		p.must(err)
		return r.ID
	}
	plan := muster.Request{Kind: muster.AskPlan, From: "alice", To: muster.Lead, Plan: "one", TaskID: task.ID,
		Fence: task.Fence}
	mine := ask(plan)
	others := map[string]muster.RequestID{}
	for what, change := range map[string]func(*muster.Request){
		"kind":  func(r *muster.Request) { r.Kind, r.Reason = muster.AskPermission, "please" },
		"from":  func(r *muster.Request) { r.From = "bob" },
		"task":  func(r *muster.Request) { r.TaskID = 2 },
		"fence": func(r *muster.Request) { r.Fence++ },
	} {
		r := plan
		change(&r)
		others[what] = ask(r)
	}
	p.must(p.claims.plans.cancel(t.Context(), task, "it was given back"))
	if r, err := p.config.Requests.Get(t.Context(), mine); err != nil || r.Status != muster.RequestCancelled {
		t.Errorf("hers is %s: %v", r.Status, err)
	}
	for what, id := range others {
		if r, err := p.config.Requests.Get(t.Context(), id); err != nil || r.Status != muster.RequestPending {
			t.Errorf("another %s: it is %s, %v", what, r.Status, err)
		}
	}
	failEach(t, func(p *life) { p.claim(); p.askPlan() }, func(p *life) error {
		return p.claims.plans.cancel(p.Context(), p.current(), "it was given back")
	})
}

// permitted is what came of a call.
type permitted struct {
	r    llm.Result
	err  error
	runs int // of the tool
}

// allowTouch sets what permissions say: touch is asked about, and a question waits so long.
func (p *life) allowTouch(wait time.Duration) {
	p.Helper()
	r, err := permissions.ParseRule(permissions.Ask, "bash(touch *)", "config.yaml")
	p.must(err)
	p.toolbox.wraps.permits.settings = permissions.Settings{Policy: permissions.Policy{Rules: []permissions.Rule{r}}, Wait: wait}
}

// touch begins a call of bash that is asked about, and returns when it waits.
func (p *life) touch(ctx context.Context) <-chan permitted {
	done, runs := make(chan permitted, 1), 0
	type input struct {
		Command string `json:"command"`
	}
	bash := tool.Func("bash", "runs a command", func(_ context.Context, in input) (string, error) {
		runs++
		return in.Command + " is done", nil
	})
	t := tool.Wrap(bash, p.toolbox.wraps.permits.around(bash, p.toolbox.newWorkdir()))
	go func() {
		r, err := t.Run(ctx, llm.Call{ID: "1", Name: "bash", Input: []byte(`{"command":"touch x"}`)}, nil)
		done <- permitted{r, err, runs}
	}()
	synctest.Wait()
	return done
}

// TestAQuestion: the model reads why its call is not made, and an event tells of it. Where nobody answers that is at
// the deadline, not before; where nobody can be asked, at once. A turn that is stopped takes its question back.
func TestAQuestion(t *testing.T) {
	for says, c := range map[string]struct {
		wait, took time.Duration
		answer     func(p *life, id muster.RequestID)
	}{
		"nobody answered in time": {5 * time.Minute, 5 * time.Minute, func(*life, muster.RequestID) {}},
		"the user said no: No.":   {0, 0, func(p *life, id muster.RequestID) { p.decide(id, muster.User, false, "No.") }},
		"nobody can be asked":     {-1, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.claim()
			p.allowTouch(c.wait)
			done, began := p.touch(t.Context()), time.Now()
			if all, doing := p.waiting(), p.me().Doing; c.answer != nil {
				if len(all) != 1 || all[0].To != muster.User || all[0].Plan != "touch x" ||
					doing != "waits for your answer to "+string(all[0].ID) {
					t.Fatalf("%+v wait, and she is %q", all, doing)
				}
				c.answer(p, all[0].ID)
			}
			got := <-done
			took, e := time.Since(began).Round(time.Second), p.events(journal.PermissionDecided)
			if !got.r.IsError || got.runs != 0 || !strings.Contains(got.r.Text(), says) || took != c.took || len(e) != 1 ||
				len(p.waiting()) > 0 || e[0].Fields["outcome"] != "denied" || e[0].Fields["what"] != "touch x" {
				t.Errorf("%s: %+v after %v, %d questions wait, told is %+v", says, got, took, len(p.waiting()), e)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.allowTouch(0)
		ctx, stop := context.WithCancelCause(t.Context())
		done := p.touch(ctx)
		stop(muster.CauseTurn)
		if got := <-done; got.err == nil || len(p.waiting()) > 0 {
			t.Errorf("%+v, and %d questions wait", got, len(p.waiting()))
		}
	})
}

// TestAnEditIsAskedAboutWithItsChange: the user sees what an edit changes, without its secrets, also where it is cut. The
// time of the call is without the wait for the answer.
func TestAnEditIsAskedAboutWithItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		const secret = "Q7xk29fLz0pWv83mNbRtYh52kd8SvQ1zTgXo94Wm"
		w := p.toolbox.wraps
		r, err := permissions.ParseRule(permissions.Ask, "edit_file", "config.yaml")
		p.must(err)
		w.permits.settings = permissions.Settings{Policy: permissions.Policy{Rules: []permissions.Rule{r}}}
		w.permits.secrets = w.permits.secrets.With(secret)
		edit := tool.Func("write_file", "writes", func(context.Context, struct {
			Path    string `json:"path"`
			Content string `json:"content"`
		}) (string, error) {
			time.Sleep(2 * time.Second)
			return "done", nil
		})
		asked := tool.Wrap(edit, w.permits.around(edit, p.toolbox.newWorkdir()))
		audited := tool.Wrap(asked, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
			return w.audit(ctx, c, next, false)
		})
		done := make(chan error, 1)
		go func() {
			_, err := audited.Run(t.Context(), llm.Call{ID: "1", Name: "write_file",
				Input: []byte(`{"path":"key","content":"` + strings.Repeat("a", 490) + secret + `"}`)}, nil)
			done <- err
		}()
		time.Sleep(time.Minute)
		all := p.waiting()
		if len(all) != 1 || !strings.HasPrefix(all[0].Change, "--- /dev/null\n+++ b/key\n@@ -0,0 +1,1 @@\n") ||
			strings.Contains(all[0].Change, secret[:4]) {
			t.Fatalf("%+v wait", all)
		}
		p.decide(all[0].ID, muster.User, true, "")
		p.must(<-done)
		if e := p.events(journal.ToolEnded); len(e) != 1 || e[0].Number("seconds") > 3 {
			t.Errorf("%+v", e)
		}
	})
}

// TestAPatchInTheShellIsAnEdit: rules for files hold for a command that only applies a patch.
func TestAPatchInTheShellIsAnEdit(t *testing.T) {
	p := newParts(t, "alice")
	r, err := permissions.ParseRule(permissions.Deny, "edit_file(secret/**)", "config.yaml")
	p.must(err)
	p.toolbox.wraps.permits.settings = permissions.Settings{Policy: permissions.Policy{Rules: []permissions.Rule{r}}}
	dir := p.toolbox.newWorkdir()
	for _, bash := range p.toolbox.files.tools(dir, "") {
		if bash.Spec().Name != "bash" {
			continue
		}
		bash = tool.Wrap(bash, p.toolbox.wraps.permits.around(bash, dir))
		input, err := json.Marshal(map[string]string{"cwd": "secret", "command": "apply_patch <<'EOF'\n" +
			"*** Begin Patch\n*** Update File: key.txt\n@@\n-a\n+b\n*** End Patch\nEOF"})
		p.must(err)
		got, err := bash.Run(t.Context(), llm.Call{ID: "1", Name: "bash", Input: input}, nil)
		p.must(err)
		if want := `bash was not called: "secret/key.txt" is refused by deny edit_file(secret/**)`; !strings.
			HasPrefix(got.Text(), want) {
			t.Errorf("%s, want %s", got.Text(), want)
		}
	}
}

// TestALongerYes: what is approved for the run is not asked about again, by nobody but the user's word, and another
// command is; what is approved once is.
func TestALongerYes(t *testing.T) {
	for _, c := range []struct {
		by    muster.Name
		scope muster.RequestScope
		runs  int
		began time.Duration // of the run, after the answer
	}{{muster.User, muster.ScopeRun, 1, -1}, {"bob", muster.ScopeRun, 0, -1}, {muster.User, muster.ScopeOnce, 0, -1},
		{muster.User, muster.ScopeRun, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.claim()
			p.allowTouch(time.Minute)
			_, err := p.config.Requests.Ask(t.Context(), muster.Request{ID: "0000beef", Kind: muster.AskPermission, From: "alice", To: c.by,
				Asks: []string{"bash(touch x)"}})
			p.must(err)
			_, _, err = p.config.Requests.DecideFor(t.Context(), "0000beef", c.by, true, c.scope, "")
			p.must(err)
			p.run.StartedAt = muster.UnixTime(time.Now().Add(c.began * time.Second))
			if got := <-p.touch(t.Context()); got.runs != c.runs {
				t.Errorf("allowed by %s for %q: %+v", c.by, c.scope, got)
			}
		})
	}
}
