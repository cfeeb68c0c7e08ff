package teammate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// maxOutput is how many characters of a tool's output a model sees; the whole is kept in a file.
const maxOutput = 50_000

// tools are the member's tools, wrapped; outermost first: what happened, output limit, plan gate, the tool. The order
// never changes during a member's life: it is part of every request's stable prefix.
func (m *Member) tools(model llm.Model) []llm.Tool {
	options := code.Options{BashTimeout: m.BashTimeout, BackgroundTimeout: m.BackgroundTimeout, Outputs: filepath.Join(m.Home.Outputs(), string(m.name()))}
	own := code.Tools(m, m.Launcher, m.jobs, options)
	list := append(own, m.todo.Tool(), agent.NewSubagent(agent.Options{
		Model: model, System: prompt.Subagent(), Turns: m.SubagentTurns, MaxTokens: m.MaxTokens,
		CacheKey: func() string { return m.agentID() + "/sub" }, OnUsage: func(r llm.Reply) { m.meter(context.Background(), r, map[string]any{"subagent": true}) },
		Tools: func(kind string) []llm.Tool {
			if kind == agent.Explore {
				return m.wrap(code.ReadTools(m), false)
			}
			return m.wrap(own, false)
		},
	}))
	rooms := teamtools.Rooms{Board: m.Board, Post: m.Post, Roster: m.Roster, Requests: m.Requests, Lanes: m.Lanes,
		Run: m.Run, Log: m.Store.Log(), Exec: m.exec}
	if m.lead() {
		list = append(list, teamtools.ForLead(m, rooms)...)
	} else {
		list = append(list, teamtools.ForTeammate(m, rooms)...)
	}
	list = m.wrap(append(list, m.Extra...), true)
	specs := make([]llm.Spec, len(list))
	for i, t := range list {
		specs[i] = t.Spec()
	}
	m.mu.Lock()
	m.phase.specs = specs
	m.mu.Unlock()
	return list
}

// wrap puts the decorators around tools; audited ones are written to the journal.
func (m *Member) wrap(list []llm.Tool, audited bool) []llm.Tool {
	out := make([]llm.Tool, len(list))
	for i, t := range list {
		t = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
			if r, ok, err := m.mayChange(ctx, c); err != nil || !ok {
				return r, err
			}
			return next(ctx, c)
		})
		t = tool.Limit(t, maxOutput, func(_ context.Context, c llm.Call, whole string) (string, error) {
			return m.keepOutput(c.Name+"-"+strings.Map(plain, c.ID)+".txt", whole)
		})
		if audited {
			t = tool.Wrap(t, m.audit)
		}
		out[i] = t
	}
	return out
}

// audit writes a tool's start and end to the journal.
func (m *Member) audit(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	started := time.Now()
	m.event(ctx, journal.ToolStarted, map[string]any{"tool": c.Name, "text": clip(gist(c), 120)})
	r, err := next(ctx, c)
	fields := map[string]any{"tool": c.Name, "seconds": round(time.Since(started).Seconds())}
	if r.IsError || err != nil {
		fields["error"] = clip(words(llm.Message{Parts: r.Parts}), 200)
	}
	m.event(ctx, journal.ToolEnded, fields)
	if cut := context.Cause(ctx) != nil && (r.IsError || err != nil); cut && slices.Contains(recorded, c.Name) {
		m.mu.Lock()
		m.unsaid[c.ID] = true
		m.mu.Unlock()
	}
	return r, err
}

// exec runs a command in a lane for worktree_run.
func (m *Member) exec(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(filepath.Join(m.Home.Outputs(), string(m.name())), "worktree_run")
	p, err := m.Launcher.Start(ctx, proc.Spec{Argv: proc.Shell(command), Dir: dir, Env: code.Environ(os.Environ(), dir), Out: out})
	if err != nil {
		return "", 0, err
	}
	exit, err := p.Wait()
	out.Done()
	text := out.Text()
	if ctx.Err() == context.DeadlineExceeded {
		return text + fmt.Sprintf("\n[killed after %s]", timeout), exit, nil
	}
	return text, exit, err
}

// Spawn records a new teammate; the supervisor that sees the record starts it.
func (m *Member) Spawn(ctx context.Context, s teamtools.Spawn) (muster.Member, error) {
	run, err := m.Run(ctx)
	if err != nil {
		return muster.Member{}, err
	}
	n, err := m.Roster.Teammates(ctx)
	if err != nil {
		return muster.Member{}, err
	}
	if n >= run.Cap {
		return muster.Member{}, muster.Errorf(muster.Invalid, "%d teammates live and %d is the most this run may have (--teammates): wait for them, or shut one down first", n, run.Cap)
	}
	r, err := m.Roster.Add(ctx, muster.Member{Name: s.Name, Role: s.Role, Prompt: s.Prompt, Model: s.Model,
		RequirePlan: s.RequirePlan, StartedBy: m.name(), Status: muster.Working})
	if err == nil && m.Spawned != nil {
		m.Spawned()
	}
	return r, err
}

// gist is a call in a few words, for people: its most telling value.
func gist(c llm.Call) string {
	for _, key := range []string{"command", "path", "pattern", "subject", "to", "name", "task_id", "prompt"} {
		if v := field(c.Input, key); v != "" {
			line, _, _ := strings.Cut(v, "\n")
			return line
		}
	}
	return ""
}

func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
		return r
	}
	return '-'
}

// field is a value of a call's input as text.
func field(input json.RawMessage, key string) string {
	var in map[string]any
	if json.Unmarshal(input, &in) != nil || in[key] == nil {
		return ""
	}
	if s, ok := in[key].(string); ok {
		return s
	}
	return fmt.Sprint(in[key])
}
