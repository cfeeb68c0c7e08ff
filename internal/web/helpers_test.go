package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/face"
	"muster/internal/spend"
	"muster/internal/testing/require"
	"muster/internal/view"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/store/file"
	"muster/team"
)

// seeing is a model that shows the test each request of a helper, before it answers.
type seeing struct {
	llm.Model
	see func(name muster.Name)
}

func (m seeing) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if r.Agent != "" {
		m.see(muster.Name(r.Agent))
	}
	return m.Model.Reply(ctx, r, emit)
}

// A helper has a row below its member while it works, and its conversation and its cost stay when it has ended.
func TestHelpersAreSeenWhileTheyWork(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var rows []string // at each request of a helper: the members of the page, and of muster status
	see := func(name muster.Name) {
		mu.Lock()
		defer mu.Unlock()
		var s state
		w.get("/api/state", &s)
		i := slices.IndexFunc(s.Members, func(m member) bool { return m.Name == name })
		if i < 1 || s.Members[i-1].Name != "ann" || s.Members[i].Of != "ann" || s.Members[i].Look != view.LookWorking {
			t.Errorf("while %s works the page shows %+v", name, s.Members)
			return
		}
		var c conversation
		w.get("/api/member/"+string(name), &c)
		m := s.Members[i]
		rows = append(rows, fmt.Sprintf("%s %s %s, %d turns, says %d", m.Label, m.Role, m.Does, m.Turns, len(c.Said)))
		o := require.Value(face.Overview(t.Context(), w.team, time.Now()))(t)
		sum := spend.Sum{}
		for _, m := range o.Members {
			sum = sum.Plus(o.CostOf(m))
		}
		if drawn := o.Draw(view.Screen{}); !strings.Contains(drawn, "\n  "+m.Label+" ") || sum != o.Spending.Total {
			t.Errorf("the rows cost %+v, and all %+v:\n%s", sum, o.Spending.Total, drawn)
		}
	}
	plays := require.Value(script.Parse([]byte(`
speakers:
  lead:
    - do: [{task_create: {subject: a greeting}}, {spawn_teammate: {name: ann, role: coder, prompt: You write.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  reviewer:
    - do: [{read_file: {path: greet}}]
    - do: [{verdict: {verdict: approve}}]
  subagent:
    - do: [{read_file: {path: README}}]
    - say: A few words.
scenes:
  - cue: 'Task #\d+: a greeting'
    turns:
      - do: [{subagent: {kind: explore, prompt: Read what there is.}}]
      - do: [{write_file: {path: greet, content: "hello\n"}}]
      - do: [{complete_task: {task_id: "${task}", summary: Says hello.}}]
`)))(t)
	price := func(r llm.Reply, _ time.Time) (float64, bool) { return float64(r.Usage.Input) / 1000, true }
	at := require.Value(team.Open(t.Context(), team.Config{Dir: w.dir, OpenStore: func(root string) (muster.Store, error) {
		return file.Open(root)
	}, Settings: team.Settings{Teammates: 1, Landing: config.Landing{Review: "reviewer"}},
		Model: func(string) (llm.Model, error) { return seeing{plays.Model(), see}, nil },
		Price: func(string) func(llm.Reply, time.Time) (float64, bool) { return price }}))(t)
	defer at.Close()
	sum := require.Value(at.Run(t.Context(), "a greeting", team.Start{}))(t)
	if want := []string{"explore-1 explore 1 a greeting: thinks, 0 turns, says 5",
		"explore-1 explore 1 a greeting: thinks, 1 turns, says 7",
		"reviewer-1 reviewer 1 a greeting: thinks, 0 turns, says 5",
		"reviewer-1 reviewer 1 a greeting: thinks, 1 turns, says 7"}; sum.Code != 0 || !slices.Equal(rows, want) {
		t.Errorf("the run ended with %d (%s), and the rows were\n%s", sum.Code, sum.Text, strings.Join(rows, "\n"))
	}
	o := require.Value(face.Overview(t.Context(), w.team, time.Now()))(t)
	past := face.NewPast(o.Run, o.Tasks)
	for e, err := range w.journal.Read(t.Context(), 0) {
		require.NoError(t, err)
		past.Apply(e.Event)
		if p := past.Overview(muster.Time(e.At)); e.Kind == journal.AgentStarted && !slices.ContainsFunc(p.Members,
			func(m view.Member) bool { return string(m.Name) == e.Text("agent") && m.WorksFor == "ann" }) {
			t.Errorf("the past has no row for %s: %+v", e.Text("agent"), p.Members)
		}
	}
	for what, o := range map[string]view.Overview{"now": o, "in the past": past.Overview(time.Now())} {
		if len(o.Members) != 2 || len(o.Spending.Agents) != 2 {
			t.Errorf("%s there are the members %+v and the helpers %+v", what, o.Members, o.Spending.Agents)
		}
		for name, a := range o.Spending.Agents {
			if a.Member != "ann" || a.Calls != 2 || a.Dollars <= 0 || !strings.HasPrefix(string(name), "ann."+a.Role+"-") {
				t.Errorf("%s: %s has spent %+v", what, name, a)
			}
		}
	}
	var c conversation
	w.get("/api/member/ann.explore-1", &c)
	if last := c.Said[len(c.Said)-1]; last.Kind != team.SaidByIt || last.Text != "A few words." {
		t.Errorf("the subagent's last words are %+v", last)
	}
	w.get("/api/member/ann.reviewer-1", &c)
	if last := c.Said[len(c.Said)-1]; last.Kind != team.SaidResult {
		t.Errorf("the reviewer's last call is open: %+v", c.Said)
	}
	for _, name := range []string{"ann.explore-2", "ann", "eve.explore-1", "ann.."} {
		res, _ := w.send(w.request("GET", "/api/member/"+name, ""))
		if (res.StatusCode == 200) != (name == "ann") {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}
