//go:build linux

package bench

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster/bench/habits/policy"
)

// habit is how a model that knows only another program's tools does in muster.
type habit struct {
	name  string // in figures
	says  string
	model string // all speak Anthropic's protocol, in which a result says that it is an error
	of    func(policy.Task) policy.Habit
	turns float64 // at most, to the first landing
	no    float64 // calls that may be refused
	size  float64 // KB at most, of all requests until then
}

var habits = []habit{
	{"claude-code", "Claude Code", "anthropic/claude-sonnet-5", policy.ClaudeCode, 12, 1, 185},
	{"codex", "Codex", "anthropic/gpt-5.5", policy.Codex, 13, 2, 200},
	{"pi", "pi", "anthropic/claude-sonnet-5", policy.Pi, 10, 1, 140},
}

// habitual is what came of a run.
type habitual struct {
	turns   int     // requests until the first landing
	steps   int     // turns of the habit with its own tools, the last words among them
	size    float64 // KB of the requests
	refused []string
}

// landed runs the task by a habit, and fails unless it lands.
func (h habit) landed(tb testing.TB) (r habitual) {
	tb.Helper()
	w := shop(tb)
	task := policy.Task{Root: w.root, Search: "def total", File: "shop/cart.py", Old: "price * (count - 1)",
		New: "price * count", Line: "    return sum(price * (count - 1) for price, count in cart)", Test: "tests/test_cart.py",
		Before: "    def test_total(self):", Added: "    def test_empty(self):\n        self.assertEqual(total([]), 0)\n",
		Check: "python3 -m unittest -q 2>&1 | tail -5", Words: "The total of a cart counts each piece. The tests pass."}
	own := h.of(task)
	m := policy.New(own)
	s := serveModel(tb, m)
	cmd := w.command(muster, "run", "The total of a cart is too small. Mend it.", "--model", h.model, "--check",
		"python3 -m unittest -q")
	cmd.Env = append(cmd.Env, s.env()...)
	if out := w.output(cmd); !strings.Contains(out, "1 of 1 task landed") {
		tb.Fatalf("%s: %s\nrefused: %q", h.says, out, m.Refused)
	}
	for line := range strings.Lines(w.muster("log", "--json")) {
		var e struct {
			Kind string    `json:"event"`
			At   time.Time `json:"ts"`
		}
		must(tb, json.Unmarshal([]byte(line), &e))
		if !strings.HasPrefix(e.Kind, "task.completed") {
			continue
		}
		for _, v := range s.visits("lead") {
			if v.came.Before(e.At) {
				r.turns, r.size = r.turns+1, r.size+float64(v.bytes)/1000
			}
		}
		break
	}
	r.steps, r.refused = len(own.Steps)+1, m.Refused
	return r
}

// BenchmarkHabits counts the turns to the first landing of models that know only the tools of another program.
func BenchmarkHabits(b *testing.B) {
	for _, h := range habits {
		r := h.landed(b)
		report(b, h.name+"-turns", figure{what: "turns to the first landing of a bug in 150 files, by the habits of " + h.says, unit: "turns",
			ours: float64(r.turns), limit: h.turns, beside: float64(r.steps), is: "its own tools"})
		report(b, h.name+"-refused", figure{what: "... calls that were refused", unit: "calls", ours: float64(len(r.refused)), limit: h.no})
		report(b, h.name+"-size", figure{what: "... bodies of the requests", unit: "KB", ours: r.size, limit: h.size})
		for _, text := range r.refused {
			b.Logf("%s was refused: %s", h.says, text)
		}
	}
}
