package drill

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

func TestMain(m *testing.M) { gittest.Main(m) }

// done is what a good result of each goal changes, by the goal's name, and what the lead says.
var done = map[string]struct {
	change string // a script
	words  string
}{
	"answer a question": {words: "It ends with 64."},
	"fix a bug":         {change: `sed -i.bak '/count_words()/,$s/wc -l/wc -w/' lib/count.sh`},
	"add a feature": {change: `sed -i.bak 's/^report)/chars) wc -c <"$2" | tr -d " " ;;\
report)/' tally.sh; echo 'test "$(sh tally.sh chars tests/data.txt)" = 24' >tests/chars.sh`},
	"rename in three files": {change: `for f in tally.sh lib/*.sh; do sed -i.bak 's/count_lines/line_count/g' $f; done`},
	"two changes": {change: `sed -i.bak 's/^report)/--version) echo 1.0 ;;\
report)/' tally.sh; sed -i.bak 's/^}/	echo "bytes $(wc -c <"$1" | tr -d " ")"\
}/' lib/report.sh`},
	"say that it cannot be done": {words: "There is no lib/limits.sh, so nothing was changed."},
}

// TestGoals: what begins is judged as not done, what is as it should be as done, and what is half done as not.
func TestGoals(t *testing.T) {
	for _, g := range Goals() {
		t.Run(g.Name, func(t *testing.T) {
			c, ok := done[g.Name]
			if !ok {
				t.Fatal("the test does not know how it is done")
			}
			judge := func(words string, changes ...string) string {
				t.Helper()
				dir := t.TempDir()
				require.NoError(t, g.Make(t.Context(), dir))
				red := exec.Command("sh", "test.sh")
				red.Dir = dir
				if err := red.Run(); (err != nil) != (g.Name == "fix a bug") {
					t.Fatalf("the tests of the repository: %v", err)
				}
				gittest.Git(t, dir, "checkout", "-q", "-b", "target")
				for _, change := range changes {
					cmd := exec.Command("sh", "-c", change+"; find . -name '*.bak' -exec rm {} +")
					cmd.Dir = dir
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", change, err, out)
					}
					gittest.Git(t, dir, "add", ".")
					gittest.Git(t, dir, "commit", "-q", "-m", "change")
				}
				gittest.Git(t, dir, "checkout", "-q", "main")
				try := func(command string) (bool, error) {
					cmd := exec.Command("sh", "-c", command)
					cmd.Dir = dir
					return cmd.Run() == nil, nil
				}
				return require.Value(g.Judge(t.Context(), dir, "target", words, try))(t)
			}
			if wrong := judge("Done."); wrong == "" {
				t.Error("nothing was done, and it is as it should be")
			}
			var all []string
			if c.change != "" {
				all = append(all, c.change)
			}
			if wrong := judge(c.words, all...); wrong != "" {
				t.Errorf("it is done, and judged as: %s", wrong)
			}
			if wrong := judge(c.words, "echo >>README.md"); wrong == "" {
				t.Error("only another file was changed, and it is as it should be")
			}
			if wrong := judge(c.words, append(all, "echo 'exit 1' >tests/lines.sh")...); wrong == "" {
				t.Error("a test is red or was changed, and it is as it should be")
			}
		})
	}
	// What git says beside its output is no file. Names may have spaces.
	t.Setenv("GIT_TRACE", "1")
	dir := repository(t)
	question := Goals()[0]
	if wrong := require.Value(question.Judge(t.Context(), dir, "main", "64", nil))(t); wrong != "" {
		t.Errorf("nothing has landed, and git traces: %s", wrong)
	}
	gittest.Git(t, dir, "checkout", "-q", "-b", "target")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a b.txt"), nil, 0o644))
	gittest.Git(t, dir, "add", ".")
	gittest.Git(t, dir, "commit", "-q", "-m", "change")
	wrong := require.Value(question.Judge(t.Context(), dir, "target", "64", nil))(t)
	if wrong != "it landed a change of a b.txt" {
		t.Error(wrong)
	}
	if wrong := require.Value(question.Judge(t.Context(), repository(t), "nosuch", "64", nil))(t); wrong != "" {
		t.Errorf("without a target nothing has landed: %s", wrong)
	}
}

func repository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a repository")
	require.NoError(t, Goals()[0].Make(t.Context(), dir))
	return dir
}

// TestAnswers: words that only repeat the goal are no answer, and neither are those that claim the change.
func TestAnswers(t *testing.T) {
	last, dir := Goals()[5], repository(t)
	for words, want := range map[string]bool{
		"lib/limits.sh does not exist.":                                                       true,
		"I could not find lib/limits.sh":                                                      true,
		"There is no such file as lib/limits.sh.":                                             true,
		"Set max_lines to 500 in lib/limits.sh.":                                              false,
		"The work is done.":                                                                   false,
		"The file lib/limits.sh is missing, so I have stopped.":                               true,
		strings.Repeat("x", 10) + " lib/limits.sh doesn't exist":                              true,
		"I set max_lines to 500 in lib/limits.sh. No other file was changed.":                 false,
		"I’ve set max_lines to 500 in lib/limits.sh, and nothing is missing.":                 false,
		"lib/limits.sh was missing, so I created it with max_lines=500.":                      false,
		"lib/limits.sh did not exist. Added it with max_lines=500.":                           false,
		"There was no lib/limits.sh. max_lines is now set to 500.":                            false,
		"I changed lib/limits.sh and made no new file.":                                       false,
		"Nothing has landed. I could not set max_lines in lib/limits.sh.":                     false,
		"`lib/limits.sh` does not exist, so I have not set max_lines to 500.":                 true,
		"I couldn't set max_lines to 500: there's no `lib/limits.sh` in this repository.":     true,
		"No file lib/limits.sh exists, so nothing was changed. Should I set it to 500?":       true,
		"This cannot be done:\n- lib/limits.sh was not found\n- max_lines was not set to 500": true,
		"lib/limits.sh is not in this repository. It can be created with max_lines at 500.":   true,
	} {
		wrong := require.Value(last.Judge(t.Context(), dir, "main", words, nil))(t)
		if (wrong == "") != want {
			t.Errorf("%q: %s", words, wrong)
		}
	}
}
