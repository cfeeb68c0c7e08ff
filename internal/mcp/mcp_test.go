package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/llm"
)

// pool is a pool of a test, with what it has told and logged.
type pool struct {
	*Pool
	t    *testing.T
	mu   sync.Mutex
	told []string
	log  bytes.Buffer
}

// Write adds to the log.
func (p *pool) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

// logged returns the log.
func (p *pool) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// standIns returns the definition of a stand-in of each kind, which has the kind's name. With -cover it would print a
// warning without GOCOVERDIR.
func standIns(t *testing.T, kinds ...string) (all []Server) {
	t.Helper()
	self := require.Value(os.Executable())(t)
	for _, kind := range kinds {
		all = append(all, Server{Name: kind, File: ".mcp.json", Text: kind, Command: []string{self},
			Env: map[string]string{"STAND_IN": kind, "GOCOVERDIR": t.TempDir()}})
	}
	return all
}

// open returns a pool of servers, which Close ends with the test.
func open(t *testing.T, o Options, servers []Server) *pool {
	t.Helper()
	l := require.Value(proc.New(t.Context()))(t)
	p := &pool{t: t}
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Launcher, o.Log = l, slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Tell = func(line string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, line)
	}
	p.Pool = New(t.Context(), o, servers)
	t.Cleanup(func() {
		p.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// prepared is open, and then Prepare, in parallel with other tests.
func prepared(t *testing.T, kinds ...string) *pool {
	t.Helper()
	t.Parallel()
	p := open(t, Options{}, standIns(t, kinds...))
	p.Prepare(t.Context(), time.Minute, true)
	return p
}

// lines returns what was told.
func (p *pool) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.told, "\n")
}

// tool returns a tool that models are offered.
func (p *pool) tool(name string) llm.Tool {
	p.t.Helper()
	all := p.Tools(false, nil)
	i := slices.IndexFunc(all, func(t llm.Tool) bool { return t.Spec().Name == name })
	if i < 0 {
		p.t.Fatalf("no tool %s among %s\n%s\n%s", name, strings.Join(names(all), " "), p.lines(), p.logged())
	}
	return all[i]
}

// call calls a tool.
func (p *pool) call(name, input string) llm.Result {
	p.t.Helper()
	r, err := p.tool(name).Run(p.t.Context(), llm.Call{ID: "1", Name: name, Input: json.RawMessage(input)}, nil)
	if err != nil || r.ID != "1" {
		p.t.Fatalf("%s: %+v, %v", name, r, err)
	}
	return r
}

// want calls a tool, and checks whether its result is an error and what it says.
func (p *pool) want(name, input string, isError bool, text string) {
	p.t.Helper()
	if r := p.call(name, input); r.IsError != isError || !strings.Contains(r.Text(), text) {
		p.t.Errorf("%s %s: error %v, %.300q", name, input, r.IsError, r.Text())
	}
}

// names returns the names of tools.
func names(tools []llm.Tool) (list []string) {
	for _, t := range tools {
		list = append(list, t.Spec().Name)
	}
	return list
}

// specs returns what models are told of tools.
func specs(tools []llm.Tool) string {
	var all []llm.Spec
	for _, t := range tools {
		all = append(all, t.Spec())
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(all)
	return b.String()
}

func TestTools(t *testing.T) {
	p := prepared(t, "everything")
	want := "mcp__everything__echo mcp__everything__env mcp__everything__fail mcp__everything__image " +
		"mcp__everything__slow mcp__everything__structured mcp__everything__write list_resources read_resource"
	if got := strings.Join(names(p.Tools(false, nil)), " "); got != want {
		t.Fatalf("tools are %s", got)
	}
	p.want("mcp__everything__echo", `{"message":"hi"}`, false, "Echo: hi")
	p.want("mcp__everything__echo", `{"message":5}`, true, "message")
	p.want("mcp__everything__fail", `{}`, true, "it broke &lt;/mail>")
	p.want("mcp__everything__structured", `{}`, false, `{"degrees":21}`)
	p.want("list_resources", `{}`, false, "everything:\n- note://1: note A note")
	p.want("read_resource", `{"server":"x","uri":"note://1"}`, true, `There is no server "x".`)
	p.want("read_resource", `{"server":"everything","uri":"note://1"}`, false, "[resource note://1]\nthe note")
	p.want("read_resource", `{"server":"everything","uri":"note://2"}`, true, "The MCP server everything refuses this")
	// What changes something needs a plan, and what only reads does not.
	if s := p.tool("mcp__everything__echo").Spec(); !s.ReadOnly || s.NeedsPlan {
		t.Errorf("echo: %+v", s)
	}
	if s := p.tool("mcp__everything__write").Spec(); s.ReadOnly || !s.NeedsPlan {
		t.Errorf("write: %+v", s)
	}
	// An image is shown to a model that takes it.
	r := p.call("mcp__everything__image", `{}`)
	if _, ok := r.Parts[0].(llm.Image); !ok || !strings.Contains(r.Text(), "[a sound, audio/wav, 3 bytes: it cannot be shown]") {
		t.Errorf("%+v", r)
	}
	blind := p.Tools(true, nil)
	r, err := blind[3].Run(t.Context(), llm.Call{Input: json.RawMessage("{}")}, nil)
	if err != nil || !strings.Contains(r.Text(), "[an image, image/png, 3 bytes") {
		t.Errorf("%+v, %v", r, err)
	}
	// A role has what it may have.
	some := p.Tools(false, func(name string, writes bool) bool { return !writes && strings.HasPrefix(name, "mcp__everything__e") })
	if got := strings.Join(names(some), " "); got != "mcp__everything__echo mcp__everything__env" {
		t.Errorf("some tools are %s", got)
	}
	if all := p.Prompts(); len(all) != 1 || all[0].Name != "greet" || len(all[0].Arguments) != 1 || !all[0].Arguments[0].Required {
		t.Errorf("prompts are %+v", all)
	}
	if text, err := p.Prompt(t.Context(), "everything", "greet", map[string]string{"who": "Ann"}); err != nil || text != "Greet Ann" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := p.Prompt(t.Context(), "everything", "other", nil); err == nil {
		t.Error("there is no such prompt")
	}
	if p.lines() != "" {
		t.Errorf("told: %s", p.lines())
	}
}

// A server over stdio sees the variables that commands of agents see, and its own; it works in the root.
func TestEnvironment(t *testing.T) {
	t.Setenv("MCP_SECRET_TOKEN", "must-not-be-seen")
	servers := standIns(t, "everything")
	servers[0].Env["OWN"] = "mine"
	dir := require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	p := open(t, Options{Dir: dir}, servers)
	p.Prepare(t.Context(), time.Minute, true)
	text := p.call("mcp__everything__env", `{}`).Text()
	if !strings.Contains(text, "OWN=mine\n") || strings.Contains(text, "must-not-be-seen") || !strings.Contains(text, "CWD="+dir) {
		t.Errorf("the server sees:\n%s", text)
	}
}

// The tools of servers that were asked once are offered without a start. What a server lists later is for the next run.
func TestToolsAreRemembered(t *testing.T) {
	t.Parallel()
	cache, dir := t.TempDir(), t.TempDir()
	offered := func(isNew, calls bool) string {
		p := open(t, Options{Cache: cache, Dir: dir}, standIns(t, "everything", "changing"))
		p.Prepare(t.Context(), time.Minute, isNew)
		before := specs(p.Tools(false, nil))
		if calls {
			p.want("mcp__changing__stays", `{}`, false, "ok")
		} else if !isNew && strings.Contains(p.logged(), "MCP server started") {
			t.Errorf("a server was started for what is remembered:\n%s", p.logged())
		}
		if specs(p.Tools(false, nil)) != before {
			t.Error("the tools have changed in the life of a pool")
		}
		if n, ok := p.Remembered("everything"); !ok || n != 7 {
			t.Errorf("%d tools are remembered, %v", n, ok)
		}
		return before
	}
	first := offered(true, false)
	if offered(false, false) != first {
		t.Error("after a restart the tools are others")
	}
	// A call starts the server, which now has other tools. The run keeps its own, and the next one has the new ones.
	if offered(false, true) != first || offered(false, false) != first {
		t.Error("the run has other tools than before")
	}
	next := offered(true, false)
	if next == first || offered(false, false) != next {
		t.Error("the next run does not have the new tools")
	}
	// Another definition is another server.
	other := standIns(t, "everything")
	other[0].Text = "changed"
	if _, ok := open(t, Options{Cache: cache, Dir: dir}, other).Remembered("everything"); ok {
		t.Error("the tools of another definition are taken")
	}
}

// What is damaged is asked for again.
func TestDamagedMemory(t *testing.T) {
	t.Parallel()
	cache, dir := t.TempDir(), t.TempDir()
	for range 2 {
		p := open(t, Options{Cache: cache, Dir: dir}, standIns(t, "everything"))
		p.Prepare(t.Context(), time.Minute, true)
		p.want("mcp__everything__echo", `{"message":"x"}`, false, "Echo: x")
		require.NoError(t, os.WriteFile(p.server("everything").file(), []byte(`{"offered":`), 0o600))
	}
}

// The tools of a server that has very many are found and called by two tools, and the prompt stays small.
func TestManyTools(t *testing.T) {
	p := prepared(t, "everything", "huge")
	all := p.Tools(false, nil)
	text := specs(all)
	if len(text) > maxOffered+2<<10 || !slices.Contains(names(all), "mcp__everything__echo") || slices.Contains(names(all), "mcp__huge__tool_00001") {
		t.Fatalf("%d bytes: %s", len(text), strings.Join(names(all), " "))
	}
	if !strings.Contains(text, "Servers: huge (512 tools).") {
		t.Error(text)
	}
	p.want("search_tools", `{"query":"tool 00123"}`, false, "- mcp__huge__tool_00123: ")
	p.want("search_tools", `{"query":"zzz"}`, false, "No tool has these words.")
	p.want("call_tool", `{"name":"mcp__huge__tool_00123","input":{}}`, false, "ok")
	p.want("call_tool", `{"name":"mcp__huge__tool_00123","input":"{}"}`, false, "ok")
	p.want("call_tool", `{"name":"mcp__everything__echo","input":{"message":"x"}}`, false, "Echo: x")
	p.want("call_tool", `{"name":"mcp__huge__tool_0012","input":{}}`, true, "There is no tool")
	p.want("call_tool", `{"name":"mcp__huge__tool_00123","input":[]}`, true, "call_tool takes the name of a tool")
	for _, name := range []string{"search_tools", "call_tool", "list_resources", "read_resource"} {
		if about := p.tool(name).Spec().Description; !strings.HasPrefix(about, prompt.Tool(name)) {
			t.Errorf("%s is described as %q", name, about)
		}
	}
	spec := p.tool("call_tool").Spec()
	for input, reads := range map[string]bool{`{"name":"mcp__everything__echo"}`: true, `{"name":"mcp__everything__write"}`: false, `x`: false} {
		if spec.OnlyReads(json.RawMessage(input)) != reads {
			t.Errorf("%s: reads is not %v", input, reads)
		}
	}
}

// A definition chooses among the tools of its server.
func TestChosenTools(t *testing.T) {
	var c catalogue
	c.addTools([]*sdk.Tool{{Name: "set"}, {Name: "get_env"}, {Name: "get_a"}, {Name: "get_a"}},
		Server{Tools: []string{"get_*"}, Exclude: []string{"*_env"}})
	if len(c.Tools) != 1 || c.Tools[0].Name != "get_a" {
		t.Errorf("offered are %+v", c.Tools)
	}
}

// Two tools never share a name, and every name is one that providers take.
func TestNames(t *testing.T) {
	p := &Pool{}
	for _, name := range []string{"a", "a b", "a_b", "A_B"} {
		p.servers = append(p.servers, &server{Server: Server{Name: name}, known: &catalogue{Tools: []Tool{{Name: "x"}, {Name: "x y"},
			{Name: "x_y"}, {Name: strings.Repeat("long", 40)}, {Name: strings.Repeat("long", 40) + "!"}, {Name: "süß"}}}})
	}
	all := p.nameAll()
	seen := map[string]bool{}
	for _, n := range all {
		if len(n.shown) > maxName || sanitize(n.shown) != n.shown || seen[strings.ToLower(n.shown)] || !strings.HasPrefix(n.shown, "mcp__") {
			t.Errorf("the name %q", n.shown)
		}
		seen[strings.ToLower(n.shown)] = true
	}
	if len(all) != 24 || fmt.Sprint(all) != fmt.Sprint(p.nameAll()) {
		t.Errorf("%d names, or another order", len(all))
	}
}

// Progress is shown, and a call that is cancelled is cancelled at the server.
func TestProgressAndCancellation(t *testing.T) {
	p := prepared(t, "everything")
	ctx, cancel := context.WithCancelCause(t.Context())
	shown := ""
	_, err := p.tool("mcp__everything__slow").Run(ctx, llm.Call{Input: json.RawMessage("{}")}, func(line string) {
		shown = line
		cancel(os.ErrClosed)
	})
	if !errors.Is(err, os.ErrClosed) || shown != "25% a quarter[2J" {
		t.Errorf("shown %q, error %v", shown, err)
	}
	wait.For(t, "the server to be told", func() bool { return strings.Contains(p.logged(), "says=cancelled") })
	p.want("mcp__everything__echo", `{"message":"still there"}`, false, "still there")
}

// One server is shared, and serves many calls at once.
func TestManyCallsAtOnce(t *testing.T) {
	p := prepared(t, "everything")
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			text := fmt.Sprint("call ", i)
			r, err := p.Tools(false, nil)[0].Run(t.Context(), llm.Call{Input: json.RawMessage(`{"message":"` + text + `"}`)}, func(string) {})
			if err != nil || r.Text() != "Echo: "+text {
				t.Errorf("%q, %v", r.Text(), err)
			}
		})
	}
	calls.Wait()
	if n := strings.Count(p.logged(), "MCP server started"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// Secrets of a definition are hidden in what is told and logged.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	servers := standIns(t, "never")
	servers[0].Command = []string{"sh", "-c", "echo wrong token tok-4711-abcdef >&2; exit 1"}
	p := open(t, Options{Secrets: redact.New("tok-4711-abcdef")}, servers)
	p.Prepare(t.Context(), time.Minute, true)
	if told := p.lines(); strings.Contains(told+p.logged(), "4711") || !strings.Contains(told, "wrong token [secret]") {
		t.Errorf("told %s\nlogged %s", told, p.logged())
	}
}
