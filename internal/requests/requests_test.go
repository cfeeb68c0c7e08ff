package requests

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/testing/require"
	"muster/internal/testing/tapped"
	"muster/internal/testing/tier"
	"muster/journal"
	"muster/store/mem"
)

func post(s muster.Store) *mailbox.Mail {
	return mailbox.New(s, journal.New(s.Log()), func(_ context.Context, n muster.Name) (bool, []muster.Name, error) {
		return slices.Contains([]muster.Name{"carol", "bob", "lead", "user"}, n), nil, nil
	})
}

func process(s muster.Store) *Requests { return New(s, post(s), journal.New(s.Log())) }

func plan(text string) muster.Request {
	return muster.Request{Kind: muster.AskPlan, From: "carol", To: muster.Lead, Plan: text, TaskID: 9, Fence: 2}
}

func ask(t testing.TB, q *Requests, r muster.Request) muster.Request {
	t.Helper()
	return require.Value(q.Ask(t.Context(), r))(t)
}

func box(t testing.TB, s muster.Store, n muster.Name) []muster.Message {
	t.Helper()
	msgs, _, _, err := post(s).Peek(t.Context(), n, 0, 1<<30)
	require.NoError(t, err)
	return msgs
}

func kinds(t testing.TB, s muster.Store) (out []string) {
	t.Helper()
	for e, err := range journal.New(s.Log()).Read(t.Context(), 0) {
		require.NoError(t, err)
		if strings.HasPrefix(e.Kind, "request.") {
			out = append(out, fmt.Sprintf("%s %s %s %s %s", e.Kind, e.Member, e.Text("kind"), e.Text("status"), e.Text("by")))
		}
	}
	return out
}

func TestAPlanIsAskedAndApproved(t *testing.T) {
	s := mem.New()
	carol, lead := process(s), process(s.Handle())
	r := ask(t, carol, plan("1. move it"))
	if !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(string(r.ID)) {
		t.Fatalf("id %q", r.ID)
	}
	if r.Status != muster.RequestPending || r.Deadline != 0 || r.PlanHash != PlanHash("1. move it") || r.CreatedAt == 0 {
		t.Fatalf("%+v", r)
	}
	got := box(t, s, muster.Lead)
	if len(got) != 1 || got[0].Type != muster.MailPlan || got[0].RequestID != r.ID || got[0].Plan != "1. move it" || got[0].From != "carol" || got[0].TaskID != 9 {
		t.Fatalf("the lead has %+v", got)
	}
	d, now, err := lead.Decide(t.Context(), r.ID, muster.Lead, true, "mind the tests")
	require.NoError(t, err)
	if !now || d.Status != muster.RequestApproved || d.ResolvedBy != muster.Lead || d.Response != "mind the tests" || d.ResolvedAt == 0 {
		t.Fatalf("%+v, now %v", d, now)
	}
	got = box(t, s, "carol")
	if len(got) != 1 || got[0].Type != muster.MailPlanAnswer || got[0].Approve == nil || !*got[0].Approve || got[0].RequestID != r.ID ||
		got[0].Feedback != "mind the tests" || got[0].From != muster.Lead {
		t.Fatalf("carol has %+v", got)
	}
	there := require.Value(carol.Get(t.Context(), r.ID))(t)
	if there.Status != muster.RequestApproved || len(there.Extra) != 0 {
		t.Fatalf("the record is %+v", there)
	}
	if want := []string{"request.created carol plan_approval  ", "request.decided carol plan_approval approved lead"}; !slices.Equal(kinds(t, s), want) {
		t.Fatalf("events %q", kinds(t, s))
	}
}

func TestAskRefuses(t *testing.T) {
	gone := plan("p")
	gone.To = "nobody"
	free := plan("p")
	free.TaskID = 0
	odd := plan("p")
	odd.ID = "../x"
	for _, c := range []struct {
		r    muster.Request
		want error
	}{
		{gone, muster.ErrNotFound},
		{free, muster.ErrInvalid},
		{odd, muster.ErrInvalid},
		{plan(""), muster.ErrInvalid},
		{plan(strings.Repeat("p", mailbox.MaxMail+1)), muster.ErrInvalid},
		{muster.Request{Kind: "tea", From: "carol", To: "lead"}, muster.ErrInvalid},
	} {
		s := mem.New()
		q := process(s)
		if _, err := q.Ask(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%.60v: %v", c.r, err)
		}
		all := require.Value(q.List(t.Context()))(t)
		if len(all) != 0 || len(box(t, s, "lead")) != 0 {
			t.Errorf("%.60v left a record or mail", c.r)
		}
	}
}

func TestAskedAgainItIsTheSameRequest(t *testing.T) {
	s := mem.New()
	q := process(s)
	first := ask(t, q, plan("p"))
	again := plan("p")
	again.ID = first.ID
	if r := ask(t, process(s.Handle()), again); r.CreatedAt != first.CreatedAt || r.Status != muster.RequestPending {
		t.Fatalf("%+v", r)
	}
	if raw, _, err := s.Inbox().Peek(t.Context(), "lead", 0, 9); err != nil || len(raw) != 2 || raw[0].ID != raw[1].ID {
		t.Fatalf("sent again it must have the same id: %v %v", raw, err)
	}
	_, _, err := q.Decide(t.Context(), first.ID, "lead", false, "no")
	require.NoError(t, err)
	if r := ask(t, q, again); r.Status != muster.RequestRejected || r.Response != "no" {
		t.Fatalf("a decided one must come back as it was decided: %+v", r)
	}
	if got := box(t, s, "lead"); len(got) != 1 {
		t.Fatalf("a decided request was mailed again: %v", got)
	}
}

func TestWhoMayDecide(t *testing.T) {
	for _, c := range []struct {
		to, by muster.Name
		may    bool
	}{
		{"lead", "lead", true}, {"lead", "user", true}, {"lead", "carol", false}, {"lead", "bob", false}, {"lead", "system", false},
		{"bob", "bob", true}, {"bob", "user", false}, {"bob", "lead", false}, {"user", "user", true}, {"user", "lead", false},
	} {
		q := process(mem.New())
		r := ask(t, q, muster.Request{Kind: muster.AskPermission, From: "carol", To: c.to, Reason: "push"})
		_, now, err := q.Decide(t.Context(), r.ID, c.by, true, "")
		r, _ = q.Get(t.Context(), r.ID)
		if c.may != now || c.may != (err == nil) || c.may != Final(r) || err != nil && !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s decides what is for %s: %v %v %s", c.by, c.to, now, err, r.Status)
		}
	}
}

func TestDecidedTwiceTheFirstAnswerStands(t *testing.T) {
	s := mem.New()
	rounds := tier.Amount(8, 50)
	for i := range rounds {
		r := ask(t, process(s), plan(fmt.Sprint("plan ", i)))
		type verdict struct {
			r   muster.Request
			now bool
			err error
		}
		var g sync.WaitGroup
		got := make(chan verdict, 8)
		for k := range 8 {
			q := process(s.Handle())
			g.Go(func() {
				d, now, err := q.Decide(context.Background(), r.ID, []muster.Name{"lead", "user"}[k%2], k%2 == 0, fmt.Sprint(k))
				got <- verdict{d, now, err}
			})
		}
		g.Wait()
		close(got)
		final := require.Value(process(s).Get(t.Context(), r.ID))(t)
		nows := 0
		for v := range got {
			require.NoError(t, v.err)
			if v.now {
				nows++
			}
			if v.r.Response != final.Response || v.r.Status != final.Status || v.r.ResolvedBy != final.ResolvedBy {
				t.Fatalf("one heard %s by %s, the record says %s by %s", v.r.Status, v.r.ResolvedBy, final.Status, final.ResolvedBy)
			}
		}
		if nows != 1 {
			t.Fatalf("%d decided it", nows)
		}
	}
	if got := box(t, s, "carol"); len(got) != rounds {
		t.Fatalf("%d answers to %d requests", len(got), rounds)
	}
}

func TestAnAnswerThatCannotBeMailedIsNone(t *testing.T) {
	q := process(mem.New())
	r := ask(t, q, plan("p"))
	if _, now, err := q.Decide(t.Context(), r.ID, "lead", false, strings.Repeat("n", mailbox.MaxMail)); now || !errors.Is(err, muster.ErrInvalid) {
		t.Fatalf("got %v, decided now: %v", err, now)
	}
	if r, _ := q.Get(t.Context(), r.ID); Final(r) {
		t.Fatalf("it was decided: %+v", r)
	}
}

func TestMissing(t *testing.T) {
	q := process(mem.New())
	if _, err := q.Get(t.Context(), "7f2c91ab"); !errors.Is(err, muster.ErrNotFound) || err.Error() != "there is no request 7f2c91ab, and none waits" {
		t.Fatalf("got %v", err)
	}
	one := plan("p")
	one.ID, one.TaskID = "00000000", 1
	ask(t, q, one)
	if _, err := q.Get(t.Context(), "7f2c91ab"); err == nil || err.Error() != "there is no request 7f2c91ab; waiting: 00000000 (plan of carol for 1)" {
		t.Fatalf("got %v", err)
	}
	for i, id := range []muster.RequestID{"7f2c91aa", "7f2c0000", "11111111"} {
		r := plan("p")
		r.ID, r.TaskID = id, muster.TaskID(i+2)
		ask(t, q, r)
	}
	s := muster.Request{ID: "7f2c91ff", Kind: muster.AskShutdown, From: "lead", To: "bob"}
	ask(t, q, s)
	_, _, err := q.Decide(t.Context(), "7f2c91ab", "lead", true, "")
	want := "there is no request 7f2c91ab; waiting: 7f2c91aa (plan of carol for 2), 7f2c91ff (shutdown of bob), 7f2c0000 (plan of carol for 3) and 2 more"
	if !errors.Is(err, muster.ErrNotFound) || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
	if _, err := q.Get(t.Context(), "../../etc"); !errors.Is(err, muster.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
}

func TestListAndForeignFields(t *testing.T) {
	s := mem.New()
	q := process(s)
	foreign := `{"request_id":"abcd0001","kind":"plan_approval","from":"carol","to":"lead","status":"pending","plan":"x","task_id":4,"created_at":5,"updated_at":5,"colour":"red"}`
	_, err := s.Table(muster.TableRequests).Put(t.Context(), "abcd0001", []byte(foreign), muster.None)
	require.NoError(t, err)
	_, err = s.Table(muster.TableRequests).Put(t.Context(), "bad", []byte(`{"status":7}`), muster.None)
	require.NoError(t, err)
	r := ask(t, q, plan("p"))
	all := require.Value(q.List(t.Context()))(t)
	if len(all) != 2 || all[0].ID != "abcd0001" || all[1].ID != r.ID {
		t.Fatalf("%+v", all)
	}
	_, now, err := process(s.Handle()).Decide(t.Context(), "abcd0001", "user", true, "")
	require.NoError(t, err)
	d := require.Value(q.Get(t.Context(), "abcd0001"))(t)
	if !now || string(d.Extra["colour"]) != `"red"` || len(d.Extra) != 1 {
		t.Fatalf("%+v", d)
	}
	pending := require.Value(q.Pending(t.Context()))(t)
	if len(pending) != 1 || pending[0].ID != r.ID {
		t.Fatalf("%+v", pending)
	}
}

// torn is a store whose inboxes take nothing while fails is true, as a crash between record and mail leaves them.
func torn(s muster.Store, fails *bool) muster.Store {
	return tapped.Store{Store: s, Before: func(_ context.Context, op, _ string, _ []byte) error {
		if op == "mail" && *fails {
			return muster.Errorf(muster.Unavailable, "writing has ended")
		}
		return nil
	}}
}

func TestACrashBetweenRecordAndMailLosesNothing(t *testing.T) {
	fails := true
	s := torn(mem.New(), &fails)
	q := process(s)
	if _, err := q.Ask(t.Context(), plan("p")); !errors.Is(err, muster.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	pending := require.Value(q.Pending(t.Context()))(t)
	if len(pending) != 1 || len(box(t, s, "lead")) != 0 {
		t.Fatal("the record must come first")
	}
	fails = false
	for range 3 {
		require.NoError(t, process(s).Settle(t.Context()))
	}
	if raw, _, _ := s.Inbox().Peek(t.Context(), "lead", 0, 9); len(raw) != 1 || raw[0].RequestID != pending[0].ID {
		t.Fatalf("lead has %+v", raw)
	}
	fails = true
	if _, _, err := q.Decide(t.Context(), pending[0].ID, "lead", true, "yes"); !errors.Is(err, muster.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	fails = false
	d, now, err := q.Decide(t.Context(), pending[0].ID, "user", false, "no") // the repeated answer repeats the mail, too
	require.NoError(t, err)
	if now || d.Status != muster.RequestApproved {
		t.Fatalf("%+v", d)
	}
	require.NoError(t, q.Settle(t.Context()))
	if raw, _, _ := s.Inbox().Peek(t.Context(), "carol", 0, 9); len(raw) != 1 || raw[0].Feedback != "yes" {
		t.Fatalf("carol has %+v", raw)
	}
}

// The changes of requests are told late, but never later than the Get that has seen them.
func TestWhoWasToldFindsItInTheList(t *testing.T) {
	s, told := mem.New(), true
	q := process(tapped.Store{Store: s, Around: func(o tapped.Operation, do func() error) error {
		told = told || o.Name == "get"
		if o.Name == "changes" && !told {
			return nil
		}
		return do()
	}})
	r := ask(t, q, plan("p"))
	approved := func() bool {
		t.Helper()
		all := require.Value(q.List(t.Context()))(t)
		return Approved(all, 9, 2)
	}
	if approved() {
		t.Fatal("nobody approved it")
	}
	told = false
	_, _, err := process(s).Decide(t.Context(), r.ID, "user", true, "")
	require.NoError(t, err)
	if d, err := q.Await(t.Context(), r.ID); err != nil || d.Status != muster.RequestApproved {
		t.Fatalf("%+v %v", d, err)
	}
	if !approved() {
		t.Fatal("the plan's author was told that it is approved, and the list says that it is not")
	}
	told = true
	if !approved() {
		t.Fatal("the changes took it back")
	}
}
