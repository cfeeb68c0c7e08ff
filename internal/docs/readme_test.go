package docs

import (
	"testing"

	"muster/llm/llmtest"
	"muster/llm/script"
)

// vendor is a stand-in for the vendor's server: the README's commands speak to it over the real wire.
func vendor(t *testing.T) []string {
	t.Helper()
	words, err := script.Parse([]byte(repair))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"ANTHROPIC_BASE_URL=" + llmtest.Anthropic(t, words.Model()).URL}
}

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
