//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/internal/spend"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// busyWords is a script of a lead and n teammates with a task each, which they never finish.
func busyWords(n int) string {
	var b strings.Builder
	b.WriteString("speakers:\n  lead:\n    - do:\n")
	for i := range n {
		fmt.Fprintf(&b, "        - task_create: {subject: part %d}\n", i+1)
	}
	for i := range n {
		fmt.Fprintf(&b, "        - spawn_teammate: {name: t%d, role: coder, prompt: Write.}\n", i+1)
	}
	b.WriteString("    - do: [{wait: {}}]\n      until: All done\n    - say: Done.\n")
	b.WriteString("scenes:\n  - cue: 'Task #\\d+: part'\n    who: [coder]\n    turns:\n")
	for i := range 60 {
		fmt.Fprintf(&b, "      - do: [{write_file: {path: f%d.txt, content: \"%d\\n\"}}]\n", i, i)
	}
	return b.String()
}

// pricedWorld is a world whose user has said the price of the model: a dollar for 1,000 tokens of any kind.
func pricedWorld(t *testing.T, n int) (w *world, s *vendor, model string) {
	t.Helper()
	w, s = newWorld(t), serve(t, busyWords(n))
	w.write(filepath.Join(w.base, "home", ".config", "muster", "config.yaml"), "endpoints:\n  stand-in: {url: "+s.url+"/v1}\n"+
		"models:\n  stand-in/m: {price: {input: 1000, output: 1000, cache_read: 1000, cache_write: 1000}}\n")
	return w, s, "stand-in/m"
}

func (w *world) cost() (c struct {
	Budget string
	Total  spend.Sum
	Models map[string]spend.Sum
}) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal([]byte(w.muster(0, "cost", "--json").stdout), &c))
	return c
}

func (w *world) ledger() map[string]spend.Call {
	w.t.Helper()
	calls := map[string]spend.Call{}
	for line := range strings.Lines(w.read(".team/spend.jsonl")) {
		var c spend.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		calls[c.ID] = c
	}
	return calls
}

// TestKilledWhileItSpends kills a run of eight agents in the middle of their calls. The sum on disk is that of the
// calls: those that were answered as the server counts them, the others as their requests. A budget goes on from there.
func TestKilledWhileItSpends(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w, s, model := pricedWorld(t, 7)
	s.most = 40
	p := w.start("run", "--model", model, "--teammates", "7", "write the parts")
	w.awaits("calls are under way", func() bool { n, _ := s.counts(); return n >= s.most+3 })
	require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL))
	<-p.done
	s.mu.Lock()
	s.most = 0
	s.mu.Unlock()
	begun, answered := s.counts()
	calls, ended, open := w.ledger(), 0, 0
	var dollars spend.Dollars
	for _, c := range calls {
		if c.State == spend.Ended {
			ended++
		} else {
			open++
		}
		dollars += *c.Dollars
	}
	t.Logf("%d requests, %d answered; the ledger has %d ended and %d open", begun, answered, ended, open)
	// Eight agents: one call of each may be noted and not made yet, or answered and not read yet.
	if len(calls) < begun || len(calls) > begun+8 || ended > answered || ended < answered-8 || open < 3 {
		t.Errorf("%d requests, %d answered; the ledger has %d ended and %d open", begun, answered, ended, open)
	}
	c := w.cost()
	if c.Total.Calls != len(calls) || c.Total.Estimated != open || c.Total.Dollars != dollars || c.Models[model] != c.Total {
		t.Errorf("muster cost says %+v; the ledger has %d calls of %v", c.Total, len(calls), dollars)
	}
	w.has("status", w.muster(0, "status").stdout, dollars.String(), "COST")
	// With what was spent as its budget, it stops before the next call.
	out := w.muster(3, "resume", "--budget", fmt.Sprintf("%.9f", dollars.Float()))
	if n, _ := s.counts(); n != begun {
		t.Errorf("%d calls without a budget", n-begun)
	}
	w.has("stdout", out.stdout, "the budget of $", "is spent", "go on:      muster resume --budget ")
	// Twice of it goes on, and ends with at most a call of each agent more.
	budget := 2 * dollars
	out = w.muster(3, "resume", "--budget", fmt.Sprintf("%.9f", budget.Float()))
	c = w.cost()
	most := spend.Dollars(0) // of a call
	for _, call := range w.ledger() {
		if call.State == spend.Begun {
			t.Errorf("%+v is open", call)
		}
		most = max(most, *call.Dollars)
	}
	if c.Total.Dollars < budget || c.Total.Dollars >= budget+8*most || c.Total.Estimated != open {
		t.Errorf("%v were spent of %v; a call costs %v at most; %+v", c.Total.Dollars, budget, most, c.Total)
	}
	w.has("stdout", out.stdout, " of $", "on work that did not land")
	w.soonGone()
}

// TestJoinedProcessesHoldOneBudget has two processes work for one team.
func TestJoinedProcessesHoldOneBudget(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w, s, model := pricedWorld(t, 4)
	tokens := 0
	p := w.start("run", "--model", model, "--teammates", "2", "--budget", "600k tokens", "write the parts")
	w.awaits("the team is at work", func() bool { _, n := s.counts(); return n > 3 })
	q := w.start("join", "--teammates", "2", "--role", "coder")
	out := p.ends(3)
	w.has("stdout", out.stdout, "the budget of 600k tokens is spent", `go on:      muster resume --budget "900k tokens"`)
	joined := q.ends(3)
	w.has("stderr", joined.stderr, "the budget of 600k tokens is spent")
	hosts, most := map[string]bool{}, 0
	for _, c := range w.ledger() {
		n := c.Input + c.Output + c.CacheRead + c.CacheWrite
		tokens, most, hosts[string(c.Host)] = tokens+n, max(most, n), true
	}
	if tokens < 600_000 || tokens >= 600_000+5*most || len(hosts) != 2 {
		t.Errorf("%d tokens of 600k, by %d processes; a call has %d at most", tokens, len(hosts), most)
	}
	if begun, answered := s.counts(); begun != answered || len(w.ledger()) != begun {
		t.Errorf("%d calls were begun, %d answered, %d are in the ledger", begun, answered, len(w.ledger()))
	}
	w.soonGone()
}

// TestADayInTwoRepositories has a budget of a day in the user's settings.
func TestADayInTwoRepositories(t *testing.T) {
	t.Parallel()
	w, s, model := pricedWorld(t, 1)
	config := filepath.Join(w.base, "home", ".config", "muster", "config.yaml")
	text := require.Value(os.ReadFile(config))(t)
	w.write(config, string(text)+"budget: {day: 100}\n")
	out := w.muster(3, "run", "--model", model, "write the parts")
	w.has("stdout", out.stdout, "the budget of $100.00 for today is spent", "goes on tomorrow", "go on:      muster resume\n")
	begun, _ := s.counts()
	other := gittest.Repo(t, nil)
	out = w.muster(3, "-C", other, "run", "--model", model, "write more")
	w.has("stdout", out.stdout, "the budget of $100.00 for today is spent")
	if n, _ := s.counts(); n != begun {
		t.Errorf("%d calls in the other repository", n-begun)
	}
}
