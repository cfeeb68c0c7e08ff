package docs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"muster/internal/testing/require"
	"muster/llm/llmtest"
	"muster/llm/script"
)

// vendor is a stand-in for the vendor's server: the commands of a page speak to it over the real wire. It refuses the
// key "wrong", and a model whose name is misspelt.
func vendor(t *testing.T, words string) []string {
	t.Helper()
	parsed := require.Value(script.Parse([]byte(words)))(t)
	model := llmtest.Handler(parsed.Model())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.Header.Get("x-api-key") == "wrong":
			refuse(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
		case bytes.Contains(body, []byte(`"claude-sonet-5"`)):
			refuse(w, http.StatusNotFound, "not_found_error", "model: claude-sonet-5")
		default:
			model.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return []string{"ANTHROPIC_BASE_URL=" + server.URL}
}

func refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, text)
}

// vendors are what the models of a page say.
var vendors = map[string]string{"README.md": repair, "docs/getting-started.md": half, "docs/cost.md": parts}

// parts is the team of the page about costs. Its work goes on long enough for a budget to end it.
const parts = `
speakers:
  lead:
    - do:
        - task_create: {subject: part one}
        - task_create: {subject: part two, blocked_by: [part one]}
        - spawn_teammate: {name: ann, role: coder, prompt: You write files.}
    - do: [{wait: {}}]
      until: All done
    - say: Both parts are written.
scenes:
  - cue: 'Task #\d+: part'
    turns:
      - do: [{write_file: {path: "a${task}.txt", content: "a\n"}}]
      - do: [{write_file: {path: "b${task}.txt", content: "b\n"}}]
      - do: [{write_file: {path: "c${task}.txt", content: "c\n"}}]
      - do: [{write_file: {path: "d${task}.txt", content: "d\n"}}]
      - do: [{write_file: {path: "e${task}.txt", content: "e\n"}}]
      - do: [{complete_task: {task_id: "${task}", summary: Writes it.}}]
`

// half is the team of the page for new users.
const half = `
speakers:
  lead:
    - do:
        - read_file: {path: half.go}
    - do:
        - task_create: {subject: Half returns the half, description: Half(4) must be 2.}
        - spawn_teammate: {name: ann, role: coder, prompt: You write Go.}
    - do: [{wait: {}}]
      until: All done
    - say: Half is mended, and the tests pass.
scenes:
  - cue: 'Task #\d+: Half'
    turns:
      - do:
          - edit_file: {path: half.go, old_text: n * 2, new_text: n / 2}
          - bash: {command: go test ./...}
      - do: [{complete_task: {task_id: "${task}", summary: Half divides.}}]
`

const repair = `
speakers:
  lead:
    - do:
        - task_create: {subject: mend half}
        - claim_task: {task_id: 1}
    - do:
        - edit_file: {path: half.go, old_text: n * 2, new_text: n / 2}
        - complete_task: {task_id: 1, summary: Half is half.}
    - say: The tests pass.
`

// yours is a repository whose tests fail, as the README takes for granted.
const yours = `cd .. && mkdir your-repository && cd your-repository && git init -q -b main && printf 'module half\n\ngo 1.26\n' > go.mod &&
printf 'package half\n\nfunc Half(n int) int { return n * 2 }\n' > half.go &&
printf 'package half\n\nimport "testing"\n\nfunc TestHalf(t *testing.T) {\n\tif Half(4) != 2 {\n\t\tt.Fatal(Half(4))\n\t}\n}\n' > half_test.go &&
git add . && git commit -q -m start && cd ..`
