// Package drill has what muster doctor --drill asks of a model: six tiny goals, each in a small repository of its own
// (repo.txtar), and the fixed checks by which each result is judged. No model judges, and the judge reads no more of
// a model's words than whether they have what an answer must have. The package starts no team; the command does.
package drill

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"muster"
	"muster/internal/git"
)

//go:embed repo.txtar
var repo []byte

// Check is the check of all landings.
const Check = "sh test.sh"

// start is the tag of the commit with which a repository begins.
const start = "drill-start"

// Goal is a goal and how its result is judged.
type Goal struct {
	Name  string // in few words
	Words string // the goal of the run
	// check is a command that succeeds on what has landed. "" says that nothing may land.
	check string
	// answer is what the last words must match where nothing may land, and claim what they must not match, if any.
	answer, claim *regexp.Regexp
	// touches are what the names of the changed files must match, one each, and spares what none of them may match.
	touches []*regexp.Regexp
	spares  *regexp.Regexp
	// files take the place of those of repo.txtar.
	files map[string]string
}

// within matches a part of a sentence. The dot of a file's name does not end one.
const within = `(?:[^.!?\n]|\.[^\s.])*`

// denial matches words that deny that a file exists.
const denial = `(?:(?:\bnot|n['’]t)\s+(?:exist|there|present|found|find|locate)|\bcannot\s+(?:find|locate)|` +
	`\bno such|\bnot in th(?:e|is)\s+(?:repo|project|tree|code|lib)\w*|\bnon-?existent|\bmissing|\babsent|` +
	`\bthere(?:\s+is|\s+was|['’]s)\s+no)\b`

// claim matches a statement that max_lines has become 500. An offer, a question or a denial of that does not match.
const claim = `(?im)(?:^[\s*-]*|[.!]\s+|\b(?:I|I['’]ve|I have)\s+|` +
	`\b(?:max_lines|limits\.sh|it|value)\W*\s(?:is|was|has been|is now)\s+)` +
	`(?:set|changed|updated|added|created)\b` + within + `\b500\b` + within + `(?:[.!]|$)`

// Goals returns the goals in their order.
func Goals() []Goal {
	has := regexp.MustCompile
	return []Goal{
		{Name: "answer a question", answer: has(`\b64\b`),
			Words: "With which exit status does tally.sh end when it gets a command that it does not know? " +
				"Look it up and answer. Change nothing."},
		{Name: "fix a bug", spares: has(`^(tests/|test\.sh$)`),
			Words: "sh test.sh is red. Mend the program so that it is green. The tests are right: do not change them.",
			check: `printf 'a b\nc d\ne\n' >drill.txt && test "$(sh tally.sh words drill.txt)" = 5 && sh test.sh`,
			files: map[string]string{"lib/count.sh": `# count_lines FILE prints how many lines FILE has.
count_lines() {
	wc -l <"$1" | tr -d ' '
}

# count_words FILE prints how many words FILE has.
count_words() {
	wc -l <"$1" | tr -d ' '
}
`}},
		{Name: "add a feature", touches: []*regexp.Regexp{has(`^tests/`)},
			Words: "Add a command chars to tally.sh: it prints how many bytes FILE has. Add a test for it to tests/.",
			check: `printf 'abcd' >drill.txt && test "$(sh tally.sh chars drill.txt)" = 4 && sh test.sh`},
		{Name: "rename in three files",
			touches: []*regexp.Regexp{has(`^tally\.sh$`), has(`^lib/count\.sh$`), has(`^lib/report\.sh$`)},
			Words:   "Rename the function count_lines to line_count, in each file that uses it.",
			check: `! grep -q count_lines tally.sh lib/*.sh && grep -q line_count tally.sh && ` +
				`grep -q line_count lib/count.sh && grep -q line_count lib/report.sh && sh test.sh`},
		{Name: "two changes",
			Words: "Make two independent changes. First: tally.sh --version prints 1.0 and ends with 0. Second: the " +
				"last line of the report says how many bytes FILE has, as in \"bytes 12\". Teammates may do them.",
			check: `printf 'abc\n' >drill.txt && test "$(sh tally.sh --version)" = 1.0 && ` +
				`test "$(sh tally.sh report drill.txt | tail -n 1)" = 'bytes 4' && sh test.sh`},
		{Name: "say that it cannot be done",
			answer: has(`(?i)limits\.sh` + within + denial + `|` + denial + within + `limits\.sh|` +
				`\bno(?: file)?(?: named| called)?\W+(?:lib/)?limits\.sh`),
			claim: has(claim),
			Words: "In lib/limits.sh, set max_lines to 500. Change no other file, and make no new one."},
	}
}

// Make makes the repository of the goal in dir, which must be empty.
func (g Goal) Make(ctx context.Context, dir string) error {
	files := txtar.Parse(repo).Files
	for i, f := range files {
		if text, ok := g.files[f.Name]; ok {
			files[i].Data = []byte(text)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[i].Data, 0o644); err != nil {
			return err
		}
	}
	return runGit(ctx, dir, []string{"init", "-q", "-b", "main"}, []string{"add", "."},
		[]string{"-c", "user.name=muster", "-c", "user.email=muster@localhost", "-c", "commit.gpgSign=false",
			"-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Count lines and words"},
		[]string{"-c", "tag.gpgSign=false", "tag", start})
}

func runGit(ctx context.Context, dir string, commands ...[]string) error {
	for _, args := range commands {
		if _, err := git.RunAsUser(ctx, dir, nil, args...); err != nil {
			return muster.Errorf(muster.Unavailable, "the drill's repository: %w", err).WithHint("muster doctor")
		}
	}
	return nil
}

// Try runs a command in a clean checkout of HEAD, and reports whether it succeeded.
type Try func(command string) (ok bool, err error)

// Judge says what is wrong with the result of a run: "" if it is as it should be. target is the branch on which work
// has landed, words are the last ones of the lead. It moves HEAD of dir.
func (g Goal) Judge(ctx context.Context, dir, target, words string, try Try) (wrong string, err error) {
	var changed []string
	r, err := git.Open(ctx, dir)
	if err != nil {
		return "", err
	}
	landed, _, err := r.Branch(ctx, "refs/heads/"+target)
	if err == nil && landed != "" {
		var names string
		names, err = r.Run(ctx, r.Root(), "diff", "--name-only", "--no-renames", "-z", start, landed)
		changed = git.SplitNUL(names)
	}
	if err != nil {
		return "", muster.Errorf(muster.Unavailable, "what has landed in %s cannot be read: %w", dir, err)
	}
	switch {
	case g.check == "" && len(changed) > 0:
		return "it landed a change of " + strings.Join(changed, ", "), nil
	case g.check == "" && !g.answer.MatchString(words):
		return "the answer is not in the last words", nil
	case g.claim != nil && g.claim.MatchString(words):
		return "the last words claim a change that has not landed", nil
	case g.check == "":
		return "", nil
	case len(changed) == 0:
		return "nothing has landed", nil
	}
	for _, want := range g.touches {
		if !slices.ContainsFunc(changed, want.MatchString) {
			return fmt.Sprintf("no file that matches %s has changed", want), nil
		}
	}
	for _, name := range changed {
		if g.spares != nil && g.spares.MatchString(name) {
			return name + " has changed", nil
		}
	}
	if err := runGit(ctx, dir, []string{"checkout", "-q", "--detach", target}); err != nil {
		return "", err
	}
	ok, err := try(g.check)
	if err == nil && !ok {
		wrong = "what has landed does not do it"
	}
	return wrong, err
}
