package requests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
	"muster/store/storetest"
)

// isState reports whether an operation is on requests or mail. What the journal cannot write is nobody's failure.
func isState(op string) bool {
	return strings.Contains(op, " requests") || strings.HasSuffix(op, "mail")
}

// A failure of the store is the caller's error, whatever operation it comes in.
func TestNoFailureIsHidden(t *testing.T) {
	permission := muster.Request{ID: "0000000a", Kind: muster.AskPermission, From: "bob", To: muster.User, Reason: "rm"}
	shutdown := muster.Request{ID: "0000000b", Kind: muster.AskShutdown, From: muster.Lead, To: "bob"}
	first := plan("p")
	first.ID = "0000000c"
	decided := plan("q")
	decided.ID = "0000000d"
	later := time.Now().Add(24 * time.Hour)
	for name, act := range map[string]func(t *testing.T, q *Requests) error{
		"ask": func(t *testing.T, q *Requests) error {
			_, err := q.Ask(t.Context(), plan("p"))
			return err
		},
		"ask again": func(t *testing.T, q *Requests) error {
			_, err := q.Ask(t.Context(), first)
			return err
		},
		"decide": func(t *testing.T, q *Requests) error {
			_, now, err := q.Decide(t.Context(), first.ID, muster.Lead, true, "yes")
			if now != (err == nil) {
				t.Errorf("decided now: %v, with the error %v", now, err)
			}
			return err
		},
		"decide again": func(t *testing.T, q *Requests) error {
			_, now, err := q.Decide(t.Context(), decided.ID, muster.Lead, false, "no")
			if now {
				t.Errorf("decided now, with the error %v", err)
			}
			return err
		},
		"decide too late": func(t *testing.T, q *Requests) error {
			ended, err := q.Expire(t.Context(), later)
			if err == nil && len(ended) != 2 {
				t.Errorf("%v has expired", ended)
			}
			return err
		},
		"cancel": func(t *testing.T, q *Requests) error {
			return q.Withdraw(t.Context(), "carol", "never mind", is(first.ID))
		},
		"leave":      func(t *testing.T, q *Requests) error { return q.Leave(t.Context(), "bob", "it has left") },
		"settle":     func(t *testing.T, q *Requests) error { return q.Settle(t.Context()) },
		"missing":    func(t *testing.T, q *Requests) error { return unlessNotFound(q.Get(t.Context(), "ffffffff")) },
		"no request": func(t *testing.T, q *Requests) error { return unlessNotFound(q.Get(t.Context(), "x")) },
		"await": func(t *testing.T, q *Requests) error {
			if err := q.Withdraw(t.Context(), "carol", "never mind", is(first.ID)); err != nil {
				return err
			}
			_, err := q.Await(t.Context(), first.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.FailEach(t, isState, func(t *testing.T, wrap func(muster.Store) muster.Store) error {
				fails := false
				s := torn(mem.New(), &fails)
				q := process(s)
				ask(t, q, permission)
				ask(t, q, shutdown)
				ask(t, q, decided)
				fails = true // its mail is left to whoever settles, and so is that of the answer
				if _, now, err := q.Decide(t.Context(), decided.ID, muster.Lead, true, "yes"); now || !errors.Is(err, muster.ErrUnavailable) {
					t.Fatal(now, err)
				}
				if _, err := q.Ask(t.Context(), first); !errors.Is(err, muster.ErrUnavailable) {
					t.Fatal(err)
				}
				fails = false
				return act(t, process(wrap(s)))
			})
		})
	}
}

func unlessNotFound(_ muster.Request, err error) error {
	if errors.Is(err, muster.ErrNotFound) {
		return nil
	}
	return err
}

// Every kind of mail says in its text who asks for what, or what was decided.
func TestWhatTheMailSays(t *testing.T) {
	for _, c := range []struct {
		r             muster.Request
		mail          [2]muster.MessageType // of the question and the answer
		asks, yes, no string
	}{
		{r: plan("p"), mail: [2]muster.MessageType{muster.MailPlan, muster.MailPlanAnswer},
			asks: "carol asks you to approve its plan for task 9.",
			yes:  "Your plan for task 9 is approved: go on.", no: "Your plan for task 9 is rejected."},
		{r: muster.Request{Kind: muster.AskShutdown, From: muster.Lead, To: "bob", Reason: "no work"},
			mail: [2]muster.MessageType{muster.MailShutdown, muster.MailShutdownAnswer},
			asks: "lead asks you to shut down. Reason: no work", yes: "bob shuts down.", no: "bob goes on working."},
		{r: muster.Request{Kind: muster.AskShutdown, From: muster.Lead, To: "bob"},
			mail: [2]muster.MessageType{muster.MailShutdown, muster.MailShutdownAnswer}, asks: "lead asks you to shut down.",
			yes: "bob shuts down.", no: "bob goes on working."},
		{r: muster.Request{Kind: muster.AskPermission, From: "bob", To: muster.User, Reason: "rm -r build"},
			asks: ""}, // it stands under what needs an answer
		{r: muster.Request{Kind: muster.AskPermission, From: "bob", To: muster.Lead, Reason: "rm -r build"},
			mail: [2]muster.MessageType{muster.MailMessage}, asks: "bob asks for permission: rm -r build"},
	} {
		for _, yes := range []bool{true, false} {
			s := mem.New()
			q := process(s)
			r := ask(t, q, c.r)
			if got := box(t, s, r.To); c.asks == "" {
				if len(got) > 0 {
					t.Errorf("%s has %+v to put away", r.To, got)
				}
			} else if len(got) != 1 || got[0].Content != c.asks || got[0].RequestID != r.ID || got[0].Type != c.mail[0] {
				t.Errorf("%s was asked %+v", r.To, got)
			}
			_, _, err := q.Decide(t.Context(), r.ID, r.To, yes, "because")
			require.NoError(t, err)
			want := map[bool]string{true: c.yes, false: c.no}[yes]
			got := box(t, s, r.From)
			switch {
			case want == "" && len(got) != 0:
				t.Errorf("%s has %+v, and waits for the record itself", r.From, got)
			case want != "" && (len(got) != 1 || got[0].Content != want || got[0].From != r.To || got[0].Type != c.mail[1] ||
				*got[0].Approve != yes || got[0].RequestID != r.ID || got[0].Feedback != "because"):
				t.Errorf("%s was answered %+v, want %q", r.From, got, want)
			}
		}
	}
}

func is(id muster.RequestID) func(muster.Request) bool {
	return func(r muster.Request) bool { return r.ID == id }
}
