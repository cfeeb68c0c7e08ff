package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/llm"
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

func withMCP(t *testing.T) (change func(*team.Config), dir string) {
	t.Helper()
	dir = t.TempDir()
	server := team.MCPServer{Name: "view", File: ".mcp.json", Text: "{}", Command: []string{"sh", "-c", mcpServer},
		Env: map[string]string{"DIR": dir}}
	return func(c *team.Config) {
		c.MCPServers, c.MCPCache = func() []team.MCPServer { return []team.MCPServer{server} }, filepath.Join(dir, "cache")
	}, dir
}

func starts(t *testing.T, dir string) int {
	t.Helper()
	data := require.Value(os.ReadFile(filepath.Join(dir, "starts")))(t)
	return strings.Count(string(data), "start")
}

// All members of a process share one server, a required plan holds for its tools that change something, and a role has
// those of its tools that its file names.
func TestMCPServerIsShared(t *testing.T) {
	t.Parallel()
	h := onFiles(t)
	change, dir := withMCP(t)
	gittest.Write(t, h.root, map[string]string{".claude/agents/looker.md": "---\nname: looker\ndescription: looks\n" +
		"tools: Read, mcp__view__look\n---\nLook.\n"})
	h.start(`
speakers:
  lead:
    - do: [{mcp__view__look: {}}, {mcp__view__alter: {}}]
    - do: [{task_create: {subject: move, require_plan: true, claim_role: coder}}, {task_create: {subject: look, claim_role: looker}}]
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Work.}}, {spawn_teammate: {name: lou, role: looker, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
scenes:
  - cue: 'Task #(?P<id>\d+):'
    turns:
      - do: [{mcp__view__look: {}}, {mcp__view__alter: {}}]
      - do: [{release_task: {task_id: "${number:id}", reason: enough was seen}}]
`, change).ends(3, time.Minute)
	if n := starts(t, dir); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
	for name, alters := range map[muster.Name]bool{"lead": true, "alice": false, "lou": false} {
		said := h.said(name)
		if !strings.Contains(said, "a fine view") || strings.Contains(said, "it was altered") != alters {
			t.Errorf("%s reads:\n%s", name, said)
		}
		if strings.Contains(said, "needs an approved plan before") != (name == "alice") {
			t.Errorf("%s is told of plans:\n%s", name, said)
		}
	}
}

// What a member's requests begin with is the same after a restart, also where the server lists other tools by then. The
// next run has the new ones.
func TestMCPToolsStayTheSame(t *testing.T) {
	t.Parallel()
	h := onFiles(t)
	change, dir := withMCP(t)
	const words = `
speakers:
  lead:
    - do: [{mcp__view__look: {}}]
    - do: [{mcp__view__look: {}}]
    - say: Done.
`
	q := &asked{Model: h.scripted(words)}
	open := func() *team.Team { return h.open(q, change) }
	turns, second, stopped := 0, make(chan struct{}), make(chan struct{})
	q.on = func(llm.Request) {
		if turns++; turns == 2 {
			close(second)
			<-stopped
		}
	}
	r := h.run(open())
	<-second
	r.stop(muster.CauseUser)
	close(stopped)
	<-r.done
	gittest.Write(t, dir, map[string]string{"more": ""})
	q.Model, q.on = h.scripted(words), nil
	h.begin(open().Resume).ends(0, time.Minute)
	tools := func(r llm.Request) string {
		data, _ := json.Marshal(r.Tools)
		return string(data)
	}
	all := q.of("lead")
	for i, r := range all {
		if got := tools(r); got != tools(all[0]) || !strings.Contains(got, `"mcp__view__look"`) {
			t.Errorf("request %d has other tools:\n%s\n%s", i, tools(all[0]), got)
		}
	}
	// The first start was for the list, and the second for the call after the restart.
	if n := starts(t, dir); n != 2 {
		t.Errorf("the server was started %d times", n)
	}
	q.Model = h.scripted(justDone)
	h.run(open()).ends(0, time.Minute)
	if got := tools(q.of("lead")[len(all)]); !strings.Contains(got, `"mcp__view__more"`) {
		t.Errorf("the next run does not have the new tool:\n%s", got)
	}
}

// A server that does not start does not stop the run, and the journal says why.
func TestMCPServerThatFails(t *testing.T) {
	t.Parallel()
	h := onFiles(t)
	h.start(justDone, func(c *team.Config) {
		c.MCPServers = func() []team.MCPServer {
			return []team.MCPServer{{Name: "bad", Command: []string{"sh", "-c", "echo no luck >&2; exit 1"}}}
		}
	}).ends(0, time.Minute)
	if h.noted("the MCP server bad does not start: it has closed the connection (the last line that it printed: no luck)") != 1 {
		t.Error(h.tail())
	}
}

// The prompts of servers are those of the run that goes on in the process.
func TestMCPPrompts(t *testing.T) {
	t.Parallel()
	h := onFiles(t)
	change, _ := withMCP(t)
	var tm *team.Team
	got := ""
	prompt := func() (string, error) { return team.Prompt(t.Context(), tm, "view", "greet", nil) }
	tm = h.open(&asked{Model: h.scripted(justDone), on: func(llm.Request) {
		text, err := prompt()
		got = fmt.Sprint(team.Prompts(tm), text, err)
	}}, change)
	if len(team.Prompts(tm)) != 0 {
		t.Error("there are prompts without a run")
	}
	h.run(tm).ends(0, time.Minute)
	if got != "[{view greet Greets. []}]Say hello.<nil>" {
		t.Error(got)
	}
	if _, err := prompt(); err == nil {
		t.Error("a prompt after the run")
	}
}

// refuser is a model whose server does not take a tool.
type refuser struct{ llm.Model }

// Reply implements llm.Model.
func (m refuser) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	for _, s := range r.Tools {
		if s.Name == "mcp__view__look" && s.Optional {
			return llm.Reply{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("its schema is wrong"), Tools: []string{s.Name}}
		}
	}
	return m.Model.Reply(ctx, r, emit)
}

// A tool of a server that the model's server refuses is left out of the requests, and one line says so.
func TestRefusedMCPTool(t *testing.T) {
	t.Parallel()
	h := onFiles(t)
	change, _ := withMCP(t)
	h.run(h.open(refuser{h.scripted(`speakers: {lead: [{do: [{mcp__view__alter: {}}]}, {say: Done.}]}`)}, change)).ends(0, time.Minute)
	const line = "is asked without the tool mcp__view__look, because of which its server refused a request: its schema is wrong"
	if h.noted(line) != 1 || !strings.Contains(h.said("lead"), "it was altered") {
		t.Error(h.tail())
	}
}
