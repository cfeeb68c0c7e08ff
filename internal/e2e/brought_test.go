//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"muster/internal/demo"
	"muster/internal/testing/tier"
)

// broughtSettings are hooks as people have them in .claude/settings.json.
const broughtSettings = `{
  "permissions": {"allow": ["Bash(go test:*)"]},
  "hooks": {
    "SessionStart": [{"hooks": [{"type": "command", "command": "cat > $(mktemp $BASE/hook.XXXXXX)"}]}],
    "PreToolUse": [{"matcher": "Bash|Edit|Write", "hooks": [{"type": "command", "command": "cat > $(mktemp $BASE/hook.XXXXXX)", "timeout": 20}]},
      {"matcher": "Write", "hooks": [{"type": "command", "command": "! grep -q forbidden || { echo 'never write that file' >&2; exit 2; }"}]}],
    "PostToolUse": [{"matcher": "mcp__words__.*", "hooks": [{"type": "command", "command": "cat > $(mktemp $BASE/hook.XXXXXX)"}]}],
    "TaskCompleted": [{"hooks": [{"type": "command", "command": "cat > $(mktemp $BASE/hook.XXXXXX)"}]}]
  }
}
`

// broughtServer is a server of tools in a shell, and broughtServers how people name it in .mcp.json.
const (
	broughtServer = `while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"words","version":"1"}}' ;;
  *'"tools/list"'*) result='{"tools":[{"name":"count","description":"Counts the words of a text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}' ;;
  *'"tools/call"'*) n=$(printf '%s' "$line" | sed 's/.*"text":"\([^"]*\)".*/\1/' | wc -w); result='{"content":[{"type":"text","text":"'$n' words"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`
	broughtServers = `{"mcpServers": {"words": {"command": "sh", "args": [".claude/words.sh"], "env": {"LANG": "C"}}}}`
)

// broughtWords are what the lead says and does in the demo before the rest.
const broughtWords = `
    - do:
        - load_skill: {name: Commit Messages}
        - mcp__words__count: {text: four words are here}
        - save_memory: {name: the-report, description: How the report is built, type: project, content: Each fact is one Fact in report.go.}
        - write_file: {path: forbidden, content: x}
`

// TestBroughtAlong runs the demo in a repository that has, as they are published, skills, agents, commands, a server of
// tools and hooks. Without trust the run goes on without what starts processes. With it all of them do their part, and a
// recording of the run can be played again.
func TestBroughtAlong(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	w.root = filepath.Join(w.base, "demo")
	d, err := demo.Make(t.Context(), w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"skills", "roles", "commands"} {
		data, err := os.ReadFile(filepath.Join("..", kind, "testdata", "published.txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(data).Files {
			if strings.HasPrefix(f.Name, ".claude/") {
				w.write(f.Name, string(f.Data))
			}
		}
	}
	w.write(".claude/settings.json", broughtSettings)
	w.write(".claude/words.sh", broughtServer)
	w.write(".mcp.json", broughtServers)
	w.git("add", ".")
	w.git("commit", "-q", "-m", "what people bring along")
	script := strings.Replace(w.read(filepath.Join(".git", "muster-demo.yaml")), "\n  lead:\n", "\n  lead:"+broughtWords, 1)
	run := []string{"run", d.Goal, "--team", d.Team, "--check", d.Check, "--teammates", "3", "--model"}

	// Nothing counts that starts a process, and the run says so, a line for each file.
	out := w.muster(0, append(run, w.words("speakers: {lead: [{say: There is nothing to do.}]}"))...)
	w.has("stderr", out.stderr, "muster: .claude/settings.json sets ", "muster: .mcp.json sets mcp_servers.words", "muster trust")
	if ran := w.hooks(); len(ran) > 0 {
		t.Errorf("hooks have run that nobody trusts: %v", ran)
	}

	w.has("trust", w.muster(0, "trust", "--yes").stdout, "hooks.PreToolUse", "mcp_servers.words")
	recording := filepath.Join(w.base, "all.rec")
	out = w.muster(0, append(run, w.words(script), "--record", recording)...)
	w.has("stdout", out.stdout, "7 of 7 tasks landed on muster/demo in ", "remembered: the-report")
	w.lacks("stderr", out.stderr, "does not count", "do not count")

	said := w.transcripts("lead")
	w.has("the lead's conversation", said, "Read the diff first.", "4 words", "never write that file", "code-reviewer", "Commit Messages")
	events := w.hooks()
	for _, want := range []string{"SessionStart ", "PreToolUse Write", "PreToolUse Edit", "PostToolUse mcp__words__count", "TaskCompleted "} {
		if events[want] == 0 {
			t.Errorf("no hook has run at %q, of %v", want, events)
		}
	}
	w.has("memory", w.muster(0, "memory").stdout, "the-report")
	w.has("roles", w.muster(0, "roles").stdout, ".claude/agents/code-reviewer.md")
	w.has("skills", w.muster(0, "skills").stdout, ".claude/skills/commit-messages")

	w.has("replay", w.muster(0, "replay", "--speed", "0", recording).stdout, "it came as recorded: ", "7 landings, the same files")
	w.untouched()
}

// hooks returns how often hooks have run, by the event and the tool.
func (w *world) hooks() map[string]int {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.base, "hook.*"))
	if err != nil {
		w.t.Fatal(err)
	}
	events := map[string]int{}
	for _, f := range files {
		var e struct {
			Event string `json:"hook_event_name"`
			Tool  string `json:"tool_name"`
		}
		data, err := os.ReadFile(f)
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if err != nil {
			w.t.Fatalf("%v: %s", err, data)
		}
		events[e.Event+" "+e.Tool]++
	}
	return events
}

// transcripts returns what is stored of a member's conversations.
func (w *world) transcripts(member string) (text string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.root, ".transcripts", member, "*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("%s has no transcript: %v", member, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		text += string(data)
	}
	return text
}
