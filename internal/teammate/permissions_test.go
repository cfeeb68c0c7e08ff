package teammate

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/permissions"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

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
	p.Permissions = permissions.Settings{Policy: permissions.Policy{Rules: []permissions.Rule{r}}, Wait: wait}
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
	t := tool.Wrap(bash, p.toolbox.permit(bash, &workdir{self: p.self}))
	go func() {
		r, err := t.Run(ctx, llm.Call{ID: "1", Name: "bash", Input: []byte(`{"command":"touch x"}`)}, nil)
		done <- permitted{r, err, runs}
	}()
	synctest.Wait()
	return done
}

// TestAQuestionEndsAtItsDeadline: nobody answers, and the member goes on without the call at the deadline, not before.
func TestAQuestionEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.claim()
		p.allowTouch(5 * time.Minute)
		done, began := p.touch(t.Context()), time.Now()
		if all := p.waiting(); len(all) != 1 || all[0].To != muster.User || all[0].Plan != "touch x" {
			t.Fatalf("%+v wait", all)
		}
		got := <-done
		if !got.r.IsError || got.runs != 0 || !strings.Contains(got.r.Text(), "nobody answered in time") {
			t.Errorf("%+v", got)
		}
		if waited := time.Since(began).Round(time.Second); waited != 5*time.Minute || len(p.waiting()) > 0 {
			t.Errorf("it waited %v, and %d questions wait", waited, len(p.waiting()))
		}
	})
}

// TestTheUserSaysNo: the model reads why, and the call is not made.
func TestTheUserSaysNo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.claim()
		p.allowTouch(0)
		done := p.touch(t.Context())
		p.decide(p.waiting()[0].ID, muster.User, false, "Leave it.")
		if got := <-done; !got.r.IsError || got.runs != 0 || !strings.Contains(got.r.Text(), "the user said no: Leave it.") {
			t.Errorf("%+v", got)
		}
	})
}

// TestAnUnattendedRunGoesOn: where nobody can be asked the call is refused at once, and an event says so.
func TestAnUnattendedRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.claim()
		p.allowTouch(-1)
		began := time.Now()
		got := <-p.touch(t.Context())
		if !got.r.IsError || got.runs != 0 || !strings.Contains(got.r.Text(), "nobody can be asked") || time.Since(began) > 0 {
			t.Errorf("%+v after %v", got, time.Since(began))
		}
		if e := p.events(journal.PermissionDecided); len(e) != 1 || e[0].Fields["outcome"] != "denied" || e[0].Fields["what"] != "touch x" {
			t.Errorf("the events are %+v", e)
		}
	})
}

// TestALongerYes: what is approved for the run is not asked about again, by nobody but the user's word, and another
// command is.
func TestALongerYes(t *testing.T) {
	for _, by := range []muster.Name{muster.User, "bob"} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.claim()
			p.allowTouch(time.Minute)
			_, err := p.Requests.Ask(t.Context(), muster.Request{ID: "0000beef", Kind: muster.AskPermission, From: "alice", To: by,
				Asks: []string{"bash(touch x)"}})
			p.must(err)
			_, _, err = p.Requests.DecideFor(t.Context(), "0000beef", by, true, muster.ScopeRun, "")
			p.must(err)
			if got := <-p.touch(t.Context()); got.runs == 1 != (by == muster.User) {
				t.Errorf("allowed by %s: %+v", by, got)
			}
		})
	}
}
