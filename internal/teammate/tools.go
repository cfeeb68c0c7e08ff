package teammate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// maxOutput is how many characters of a tool's output a model sees; the whole is kept in a file.
const maxOutput = 50_000

// audit writes the start and the end of one of the member's own calls to the journal. A call that the end of the
// process has cut off stays without an answer if records tell its outcome.
func (m *Member) audit(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := m.journalCall(ctx, c, next, nil)
	_, recoverable := m.profile().recoverers[c.Name]
	if cut := context.Cause(ctx) != nil && (r.IsError || err != nil); cut && recoverable {
		m.mu.Lock()
		m.unsaid[c.ID] = true
		m.mu.Unlock()
	}
	return r, err
}

// auditSubagent writes a subagent's calls to the journal. They are events of the member that the subagent works for.
func (m *Member) auditSubagent(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	return m.journalCall(ctx, c, next, map[string]any{"subagent": true})
}

// journalCall runs a call between the two events that tell of it. Both have the fields more besides their own.
func (m *Member) journalCall(ctx context.Context, c llm.Call, next tool.Next, more map[string]any) (llm.Result, error) {
	begin := map[string]any{"tool": c.Name, "text": clip(gist(c), 120)}
	maps.Copy(begin, more)
	m.event(ctx, journal.ToolStarted, begin)
	started := time.Now()
	r, err := next(ctx, c)
	end := map[string]any{"tool": c.Name, "seconds": round(time.Since(started).Seconds())}
	maps.Copy(end, more)
	if r.IsError || err != nil {
		end["error"] = clip(words(llm.Message{Parts: r.Parts}), 200)
	}
	m.event(ctx, journal.ToolEnded, end)
	return r, err
}

// exec runs a command in a lane for worktree_run.
func (m *Member) exec(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(filepath.Join(m.Home.Outputs(), string(m.name())), "worktree_run")
	p, err := m.Launcher.Start(ctx, proc.Spec{Argv: proc.Shell(command), Dir: dir, Env: code.Environ(ctx, os.Environ(), dir), Out: out})
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
