package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/team"
)

// mcpServer is a server over stdio. It notes each of its starts in the file starts, and has the tools look and alter,
// and another one where there is a file more.
const mcpServer = `
echo start >> "$DIR/starts"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
  *'"tools/list"'*)
    more=; [ -f "$DIR/more" ] && more=',{"name":"more","inputSchema":{"type":"object"}}'
    result='{"tools":[{"name":"look","description":"Looks.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"alter","inputSchema":{"type":"object"}}'$more']}' ;;
  *'"prompts/list"'*) result='{"prompts":[{"name":"greet","description":"Greets."}]}' ;;
  *'"prompts/get"'*) result='{"messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}]}' ;;
  *'"look"'*) result='{"content":[{"type":"text","text":"a fine view"}]}' ;;
  *'"alter"'*) result='{"content":[{"type":"text","text":"it was altered"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// justDone is a script with nothing to do.
const justDone = "speakers: {lead: [{say: Done.}]}"

// withMCP returns a change of a configuration that adds the server, and the server's directory.
func withMCP(t *testing.T) (change func(*team.Config), dir string) {
	t.Helper()
	dir = t.TempDir()
	server := team.MCPServer{Name: "view", File: ".mcp.json", Text: "{}", Command: []string{"sh", "-c", mcpServer},
		Env: map[string]string{"DIR": dir}}
	return func(c *team.Config) {
		c.MCPServers, c.MCPCache = func() []team.MCPServer { return []team.MCPServer{server} }, filepath.Join(dir, "cache")
	}, dir
}

// starts returns how often the server was started.
func starts(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "starts"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "start")
}

// prefixModel records the tools of each request, and calls after with their number.
type prefixModel struct {
	llm.Model
	mu    sync.Mutex
	tools []string
	after func(n int)
}

// Reply asks the model.
func (m *prefixModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	data, _ := json.Marshal(r.Tools)
	m.mu.Lock()
	m.tools = append(m.tools, string(data))
	n := len(m.tools)
	m.mu.Unlock()
	if m.after != nil {
		m.after(n)
	}
	return m.Model.Reply(ctx, r, emit)
}

// All members of a process share one server, and a required plan holds for its tools that change something.
func TestMCPServerIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change, dir := withMCP(t)
	w.run(`
speakers:
  lead:
    - do: [{mcp__view__look: {}}, {mcp__view__alter: {}}, {task_create: {subject: move, require_plan: true}}]
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
scenes:
  - cue: 'Task #1: move'
    who: [alice]
    turns:
      - do: [{mcp__view__look: {}}, {mcp__view__alter: {}}]
      - do: [{release_task: {task_id: 1, reason: enough was seen}}]
`, 3, change)
	if n := starts(t, dir); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
	for name, want := range map[string]string{"lead": "it was altered", "alice": "a fine view"} {
		if text := w.said(name); !strings.Contains(text, "a fine view") || !strings.Contains(text, want) {
			t.Errorf("%s has not seen %q:\n%s", name, want, text)
		}
	}
	if text := w.said("alice"); strings.Contains(text, "it was altered") || !strings.Contains(text, "submit_plan") {
		t.Errorf("without a plan something was altered:\n%s", text)
	}
}

// A role has those tools of servers that its file names, and no others.
func TestMCPToolsOfARole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change, _ := withMCP(t)
	w.write(".claude/agents/looker.md", "---\nname: looker\ndescription: looks\ntools: Read, mcp__view__look\n---\nLook.\n")
	w.run(`
speakers:
  lead:
    - do: [{task_create: {subject: move, claim_role: looker}}, {spawn_teammate: {name: alice, role: looker, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
scenes:
  - cue: 'Task #1: move'
    who: [alice]
    turns:
      - do: [{mcp__view__look: {}}, {mcp__view__alter: {}}]
      - do: [{release_task: {task_id: 1, reason: enough was seen}}]
`, 3, change)
	if text := w.said("alice"); !strings.Contains(text, "a fine view") || strings.Contains(text, "it was altered") {
		t.Errorf("alice has:\n%s", text)
	}
}

// What a member's requests begin with is the same after a restart, also where the server lists other tools by then. The
// next run has the new ones.
func TestMCPToolsStayTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change, dir := withMCP(t)
	words, err := script.Parse([]byte(`
speakers:
  lead:
    - do: [{mcp__view__look: {}}]
    - do: [{mcp__view__look: {}}]
    - say: Done.
`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &prefixModel{Model: words.Model(), after: func(n int) {
		if n == 2 {
			cancel(muster.CauseUser)
		}
	}}
	ours := func(c *team.Config) {
		change(c)
		c.Model = func(string) (llm.Model, error) { return m, nil }
	}
	tm, _ := w.open(justDone, ours)
	if _, err := tm.Run(ctx, "the goal", team.Start{}); !errors.Is(err, muster.CauseUser) {
		t.Fatalf("%v\n%s", err, w.tail())
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.Model, m.after = words.Model(), nil
	tm, _ = w.open(justDone, ours)
	if sum, err := tm.Resume(t.Context()); err != nil || sum.Code != 0 {
		t.Fatalf("%+v, %v\n%s", sum, err, w.tail())
	}
	before := len(m.tools)
	for i, tools := range m.tools {
		if tools != m.tools[0] || !strings.Contains(tools, `"mcp__view__look"`) {
			t.Errorf("request %d has other tools:\n%s\n%s", i, m.tools[0], tools)
		}
	}
	// The first start was for the list, and the second for the call after the restart.
	if n := starts(t, dir); n != 2 {
		t.Errorf("the server was started %d times", n)
	}
	m.Model = words.Model()
	w.run(justDone, 0, ours)
	if tools := m.tools[before]; !strings.Contains(tools, `"mcp__view__more"`) {
		t.Errorf("the next run does not have the new tool:\n%s", tools)
	}
}

// A server that does not start does not stop the run, and the journal says why.
func TestMCPServerThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(justDone, 0, func(c *team.Config) {
		c.MCPServers = func() []team.MCPServer {
			return []team.MCPServer{{Name: "bad", Command: []string{"sh", "-c", "echo no luck >&2; exit 1"}}}
		}
	})
	w.index("the server that fails", func(e muster.Event) bool {
		return e.Kind == journal.RunNote && strings.HasPrefix(e.Text("text"),
			"the MCP server bad does not start: it has closed the connection (the last line that it printed: no luck)")
	})
}

// The prompts of servers are those of the run that goes on in the process.
func TestMCPPrompts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change, _ := withMCP(t)
	var tm *team.Team
	asked := make(chan string, 1)
	tm, _ = w.open(justDone, func(c *team.Config) {
		change(c)
		inner := c.Model
		c.Model = func(name string) (llm.Model, error) {
			m, err := inner(name)
			return &prefixModel{Model: m, after: func(int) {
				all := team.Prompts(tm)
				text, err := team.Prompt(t.Context(), tm, "view", "greet", nil)
				data, _ := json.Marshal(all)
				if err != nil {
					text = err.Error()
				}
				asked <- string(data) + text
			}}, err
		}
	})
	if len(team.Prompts(tm)) != 0 {
		t.Error("there are prompts without a run")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := tm.Run(ctx, "the goal", team.Start{}); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != `[{"server":"view","name":"greet","description":"Greets."}]Say hello.` {
		t.Error(got)
	}
	if _, err := team.Prompt(t.Context(), tm, "view", "greet", nil); err == nil {
		t.Error("a prompt after the run")
	}
}
