package spend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/compact"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/store/file"
	"muster/store/mem"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]string{
		"": "none", "none": "none", "5": "$5.00", "$5": "$5.00", " $2.50 ": "$2.50", "0.001": "$0.001", ".5": "$0.50",
		"200k tokens": "200k tokens", "200ktokens": "200k tokens", "2M Tokens": "2M tokens", "1 token": "1 tokens",
		"1234567 tokens": "1234567 tokens", "1.5M tokens": "1500k tokens",
	} {
		b, err := ParseBudget(text)
		if err != nil || b.String() != want {
			t.Errorf("%q is %v, %v; want %s", text, b, err, want)
		}
		if again, err := ParseBudget(b.String()); err != nil || again != b {
			t.Errorf("%v is read as %v, %v", b, again, err)
		}
	}
	for _, text := range []string{"200k", "2M", "0", "-5", "0 tokens", "$5 tokens", "$5k", "1.5 tokens", "five", "5 dollars",
		"1e3", "0x10", "NaN", "Inf", "5,00", "tokens", "$", "k tokens", "99999999999", "1_000"} {
		if b, err := ParseBudget(text); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%q is %v, %v", text, b, err)
		}
	}
}

func TestBudgetsAreCompared(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"4", "5", true}, {"5", "5", false}, {"6", "5", false}, {"5", "", true}, {"", "5", false}, {"none", "none", false},
		{"1k tokens", "2k tokens", true}, {"1 tokens", "5", false}, {"0.01", "5k tokens", false}} {
		a, _ := ParseBudget(c.a)
		b, _ := ParseBudget(c.b)
		if a.IsLower(b) != c.want {
			t.Errorf("%v is lower than %v: %v", a, b, !c.want)
		}
	}
	for text, want := range map[string]string{"5": "8", "1": "2", "0.5": "0.8", "12": "20", "0.001": "0.002",
		"200k tokens": `"300k tokens"`, "3 tokens": `"5 tokens"`} {
		b, _ := ParseBudget(text)
		s := Sum{Dollars: b.Dollars, Usage: llm.Usage{Input: b.Tokens}}
		if got := b.Next(s); got != want {
			t.Errorf("after %v: %s, want %s", b, got, want)
		}
	}
	b, _ := ParseBudget("5")
	if got := b.Next(Sum{Dollars: 9 * dollar}); got != "20" {
		t.Errorf("after $9 of $5: %s", got)
	}
}

func TestMoneyInWords(t *testing.T) {
	for f, want := range map[float64]string{0: "$0.00", 0.42: "$0.42", 12.345: "$12.35", 0.0034: "$0.0034",
		0.00001: "under $0.0001", 0.00999: "$0.0100"} {
		if got := FromFloat(f).String(); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
	for _, c := range []struct {
		sum  Sum
		want string
	}{{Sum{}, ""}, {Sum{Dollars: dollar}, "$1.00"}, {Sum{Unpriced: 2}, "unknown"},
		{Sum{Dollars: dollar, Unpriced: 2}, "at least $1.00"}} {
		if got := c.sum.Cost(); got != c.want {
			t.Errorf("%+v costs %q", c.sum, got)
		}
	}
}

// Whatever the order in which records of calls are read, and however often: a call counts once, by the record that
// knows most of it, and every sum is that of its calls.
func TestBooksCountEachCallOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Call
		want := map[string]Call{}
		for i := range rapid.IntRange(0, 8).Draw(t, "calls") {
			for _, s := range rapid.SliceOfN(rapid.SampledFrom([]State{Begun, Cut, Ended}), 1, 4).Draw(t, "states") {
				c := Call{ID: fmt.Sprint(i), State: s, Task: muster.TaskID(i % 3), Member: muster.Name(fmt.Sprint("m", i%2)),
					Model: "m", Usage: llm.Usage{Input: 1 + i + len(s)}, Estimated: s != Ended}
				if i%3 == 0 {
					c.Agent = muster.Name(fmt.Sprint(c.Member, ".a-", i%5))
				}
				if i%4 != 0 {
					d := Dollars(i*1000 + len(s))
					c.Dollars = &d
				}
				all = append(all, c)
				if supersedes(c, want[c.ID]) {
					want[c.ID] = c
				}
			}
		}
		b := NewBook()
		for _, c := range rapid.Permutation(append(all, all...)).Draw(t, "read") {
			b.Add(c)
		}
		var total Sum
		for _, c := range want {
			if c.State != Begun {
				total = total.Plus(c.sum())
			}
		}
		var members, tasks, models Sum
		for _, s := range b.Members {
			members = members.Plus(s)
		}
		for _, s := range b.Tasks {
			tasks = tasks.Plus(s)
		}
		for _, s := range b.Models {
			models = models.Plus(s)
		}
		var own Sum // with the helpers apart
		for m := range b.Members {
			own = own.Plus(b.Own(m, func(muster.Name) bool { return true }))
		}
		for _, a := range b.Agents {
			own = own.Plus(a.Sum)
		}
		if own != total {
			t.Errorf("members %+v and helpers %+v are %+v, want %+v", b.Members, b.Agents, own, total)
		}
		if b.Total != total || members != total || tasks != total || models != total {
			t.Errorf("%+v\n%+v\n%+v\n%+v\nwant %+v", b.Total, members, tasks, models, total)
		}
	})
}

// fixed is a model that answers after a second of simulated time.
type fixed struct {
	usage llm.Usage
	err   error
}

func (f *fixed) Reply(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	select {
	case <-ctx.Done():
		return llm.Reply{}, context.Cause(ctx)
	case <-time.After(time.Second):
	}
	return llm.Reply{Usage: f.usage, Model: "m-1",
		Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: "12345678"}}}}, f.err
}

func perToken(r llm.Reply, _ time.Time) (float64, bool) {
	return float64(r.Usage.Input+r.Usage.Output) / 100, true
}

func caller(name muster.Name) Caller {
	return Caller{Member: name, Model: "p/m", Now: func() (muster.TaskID, int) { return 3, 7 }}
}

// ask is a request, and asked how many tokens it has by an estimate.
var (
	ask = llm.Request{System: []string{"12345678"}, Messages: []llm.Message{{Role: llm.User,
		Parts: llm.Parts{llm.Text{Text: "1234"}, llm.Text{Text: "多少"}}}}}
	asked = compact.PrefixTokens(ask.System, nil) + compact.Estimate(ask.Messages)
)

func cents(n int) Dollars { return Dollars(n) * dollar / 100 }

func bookOf(t *testing.T, m *Meter) (b Book) {
	t.Helper()
	require.NoError(t, m.Look(t.Context(), func(x *Book) { b = *x }))
	return b
}

func TestWhatACallCounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		model fixed
		stop  bool // the caller is cancelled
		want  Sum
	}{
		{"a reply", fixed{usage: llm.Usage{Input: 8, Output: 2}}, false,
			Sum{Calls: 1, Usage: llm.Usage{Input: 8, Output: 2}, Dollars: dollar / 10}},
		{"a server that does not count", fixed{}, false,
			Sum{Calls: 1, Usage: llm.Usage{Input: asked, Output: 2}, Dollars: cents(asked + 2), Estimated: 1}},
		{"refused", fixed{err: llm.Errorf(llm.Overloaded, "later")}, false, Sum{Calls: 1}},
		{"cut off by the server", fixed{err: llm.Errorf(llm.Incomplete, "half")}, false,
			Sum{Calls: 1, Usage: llm.Usage{Input: asked}, Dollars: cents(asked), Estimated: 1}},
		{"cancelled", fixed{}, true,
			Sum{Calls: 1, Usage: llm.Usage{Input: asked}, Dollars: cents(asked), Estimated: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := NewMeter(Options{Log: mem.New().Log(), Run: 1, Host: "host-1.1"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.stop {
				time.AfterFunc(time.Millisecond, cancel)
			}
			r, err := m.Model(&c.model, caller("alice"), perToken).Reply(ctx, ask, nil)
			if b := bookOf(t, m); b.Total != c.want || b.Members["alice"] != c.want || b.Tasks[3] != c.want ||
				b.Models["p/m"] != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, b.Total, c.want)
			}
			if err == nil && (r.Dollars == nil || FromFloat(*r.Dollars) != c.want.Dollars) {
				t.Errorf("%s: the reply says %v", c.name, r.Dollars)
			}
		})
	}
}

// Several processes with eight agents each hold one budget: they share nothing but the files.
func TestProcessesShareABudget(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	warned := map[Scope]int{}
	var meters []*Meter
	for i := range 3 {
		store := require.Value(file.Open(dir))(t)
		defer store.Close()
		meters = append(meters, NewMeter(Options{Log: store.Log(), Run: 1, Host: muster.HostID(fmt.Sprint("host-", i, ".1")),
			Budgets: Budgets{Team: Budget{Dollars: 10 * dollar}, Task: Budget{Tokens: 5000}},
			Warn: func(_ context.Context, e *Exceeded) {
				mu.Lock()
				defer mu.Unlock()
				warned[e.Scope]++
			}}))
	}
	model := quick{}
	var agents sync.WaitGroup
	for i := range 24 {
		agents.Go(func() {
			counted := meters[i%3].Model(&model, caller(muster.Name(fmt.Sprint("m", i))), perToken)
			for {
				if _, err := counted.Reply(t.Context(), ask, nil); err != nil {
					if over, ok := IsExceeded(err); !ok || over.Scope != OfTeam || llm.KindOf(err) != llm.Spent {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	agents.Wait()
	for _, m := range meters {
		b := bookOf(t, m)
		if b.Total.Calls != model.n || b.Total.Dollars != Dollars(model.n)*dollar/10 {
			t.Errorf("%+v, and %d calls were made", b.Total, model.n)
		}
	}
	if model.n < 100 || model.n > 124 {
		t.Errorf("%d calls of 10 cents by 24 agents on a budget of $10", model.n)
	}
	if warned[OfTeam] != 1 || warned[OfTask] != 0 {
		t.Errorf("warned: %v", warned)
	}
}

// quick is a model that answers at once with ten tokens.
type quick struct {
	mu sync.Mutex
	n  int
}

func (q *quick) Reply(context.Context, llm.Request, func(llm.Delta)) (llm.Reply, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
	return llm.Reply{Usage: llm.Usage{Input: 8, Output: 2}}, nil
}

// What a killed process leaves: a call that has begun counts as its request, half a line counts for nothing, and what a
// process writes that was only taken for dead stands over the estimate.
func TestKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	store := require.Value(file.Open(dir))(t)
	defer store.Close()
	dead := NewMeter(Options{Log: store.Log(), Run: 1, Host: "host-1.1"})
	counted := dead.Model(&quick{}, caller("alice"), perToken).(*model)
	require.Value(counted.Reply(t.Context(), ask, nil))(t)
	open := counted.newCall(ask)
	require.NoError(t, dead.begin(t.Context(), open))
	path := filepath.Join(dir, ".team", "spend.jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("\x00\xff garbage\n{\"call\":\"ended\",\"id\":\"A\",\"run\":1,\"inp")
	}
	require.NoError(t, errors.Join(err, f.Close()))
	for _, line := range []string{`"dollars":-5`, `"dollars":1e12`, `"dollars":0,"input":-9`} {
		if _, err := store.Log().Append(t.Context(), "spend", muster.Anywhere,
			[]byte(`{"call":"ended","id":"B","run":1,"member":"alice",`+line+`}`)); err != nil {
			t.Fatal(err)
		}
	}
	next := NewMeter(Options{Log: store.Log(), Run: 1, Host: "host-1.2"})
	if b := bookOf(t, next); b.Total.Calls != 1 || b.Total.Dollars != dollar/10 || len(b.Open()) != 1 {
		t.Errorf("%+v", b)
	}
	isAlive := func(_ context.Context, h muster.HostID) (bool, error) { return h != "host-1.1", nil }
	for range 2 {
		require.NoError(t, next.CutOff(t.Context(), isAlive))
		if b := bookOf(t, next); b.Total.Calls != 2 || b.Total.Dollars != cents(10+asked) || b.Total.Estimated != 1 ||
			len(b.Open()) != 0 {
			t.Errorf("%+v", b)
		}
	}
	d := dollar
	open.State, open.Usage, open.Estimated, open.Dollars = Ended, llm.Usage{Input: 100}, false, &d
	dead.end(t.Context(), open)
	if b := bookOf(t, next); b.Total.Calls != 2 || b.Total.Dollars != dollar*11/10 || b.Total.Estimated != 0 {
		t.Errorf("%+v", b.Total)
	}
	// A closed meter writes nothing.
	before, _ := os.ReadFile(path)
	dead.Close()
	dead.end(t.Context(), open)
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("a closed meter has written")
	}
}

// A day's budget counts what two repositories spend, once each, and begins anew the next day.
func TestABudgetOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := mem.New()
		one := func() *Meter {
			return NewMeter(Options{Log: mem.New().Log(), Run: 1, Host: "host-1.1", Day: &Day{Log: user.Handle().Log()},
				Budgets: Budgets{Day: Budget{Dollars: dollar}}})
		}
		a, b := one(), one()
		q := quick{}
		call := func(m *Meter) error {
			_, err := m.Model(&q, caller("alice"), perToken).Reply(t.Context(), ask, nil)
			return err
		}
		for i := range 10 {
			require.NoError(t, call([]*Meter{a, b}[i%2]))
		}
		for _, m := range []*Meter{a, b, one()} {
			if over, ok := IsExceeded(call(m)); !ok || over.Scope != OfDay || over.Spent.Calls != 10 ||
				over.Error() != "the budget of $1.00 for today is spent" {
				t.Errorf("%+v", over)
			}
		}
		time.Sleep(24 * time.Hour)
		if err := call(a); err != nil {
			t.Error(err)
		}
	})
}

// A budget in dollars is refused where the price is not known, and one in tokens is not.
func TestNoPrice(t *testing.T) {
	unknown := func(llm.Reply, time.Time) (float64, bool) { return 0, false }
	q := quick{}
	m := NewMeter(Options{Log: mem.New().Log(), Run: 1, Budgets: Budgets{Task: Budget{Dollars: dollar}}})
	if _, err := m.Model(&q, caller("alice"), unknown).Reply(t.Context(), ask, nil); !errors.Is(err, muster.ErrInvalid) ||
		q.n != 0 {
		t.Error(err)
	}
	m = NewMeter(Options{Log: mem.New().Log(), Run: 1, Budgets: Budgets{Member: Budget{Tokens: 15}}})
	counted := m.Model(&q, caller("alice"), nil)
	for i := range 3 {
		if _, err := counted.Reply(t.Context(), ask, nil); (err != nil) != (i == 2) {
			t.Error(i, err)
		}
	}
	if b := bookOf(t, m); b.Total.Cost() != "unknown" || b.Total.Unpriced != 2 {
		t.Errorf("%+v", b.Total)
	}
}
