//go:build linux

package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// landingTask is a task of a landing run: what its owner does in its lane, as commands of the shell. Every task adds the
// function taskNN once, so that what is lost or doubled shows.
type landingTask struct {
	n    int
	edit string
	mend string // what helps when it has merged cleanly and the check is red; nothing while there is nothing to mend
}

// landingTasks are 40 tasks for the library. 18 add lines at the same place as another one: six at one place, and six pairs.
// Ten merge cleanly with one another and then break the check, in pairs: two declare a name twice, two call a
// function that was renamed, and one has tests that contradict each other. The order is mixed, the same each time.
func landingTasks() (all []landingTask) {
	add := func(edit, mend string) {
		n := len(all) + 1
		fill := strings.NewReplacer("NN", fmt.Sprintf("%02d", n))
		all = append(all, landingTask{n: n, edit: fill.Replace(edit), mend: fill.Replace(mend)})
	}
	const own = `printf 'package cobra\n\nfunc taskNN() string { return "NN" }\n' > taskNN.go`
	for _, file := range []string{"cobra", "cobra", "cobra", "args", "active_help", "flag_groups", "completions", "zsh_completions", "fish_completions"} {
		for range 2 {
			add(`printf '\nfunc taskNN() string { return "NN" }\n' >> `+file+`.go`, "")
		}
	}
	for _, name := range []string{"helperA", "helperB"} {
		for range 2 {
			add(own+`; printf '\nfunc `+name+`() {}\n' >> taskNN.go`,
				`[ $(cat *.go | grep -c 'func `+name+`()') = 1 ] || sed -i 's/func `+name+`/func `+name+`NN/' taskNN.go`)
		}
	}
	for _, name := range []string{"isFlagArg", "findFlag"} {
		rename := `sed -i 's/\b` + name + `\b/` + name + `Now/g' *.go`
		mend := `! grep -q 'func ` + name + `Now(' *.go || ` + rename
		add(own+"; "+rename, mend)
		add(own+`; printf '\nvar _ = `+name+`\n' >> taskNN.go`, mend)
	}
	for range 2 {
		add(own+`; touch single_NN.txt; printf 'package cobra\n\nimport (\n\t"path/filepath"\n\t"testing"\n)\n\nfunc TestSingleNN(t *testing.T) {\n\t`+
			`if all, _ := filepath.Glob("single_*.txt"); len(all) != 1 {\n\t\tt.Errorf("there are %%d", len(all))\n\t}\n}\n' > single_NN_test.go`,
			`[ $(ls single_*.txt | wc -l) != 2 ] || sed -i 's/!= 1/!= 2/' single_*_test.go`)
	}
	for len(all) < 40 {
		add(own, "")
	}
	rand.New(rand.NewPCG(20, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func goodTasks(n int) (all []landingTask) {
	for i := range n {
		all = append(all, landingTask{n: i + 1,
			edit: fmt.Sprintf(`printf 'package cobra\n\nfunc task%02[1]d() string { return "%02[1]d" }\n' > task%02[1]d.go`, i+1)})
	}
	return all
}

// keepBoth resolves the conflicts of a directory's files: both sides stay, without the base that stands between them
// in some styles.
const keepBoth = `for f in $(grep -l '^<<<<<<< ' * 2>/dev/null); do
	awk '/^<<<<<<< / { open = 1; next } /^>>>>>>> / { open = 0; next } open && /^\|\|\|\|\|\|\|/ { base = 1; next }
		open && /^=======$/ { base = 0; next } !base' "$f" > "$f.new" && mv "$f.new" "$f" && git add "$f"
done
`

// writeWork writes a script for each task, NN.sh, which is called in a lane with "edit", or with "mend" when the task came
// back.
func (w *world) writeWork(tasks []landingTask) {
	w.tb.Helper()
	dir := filepath.Join(w.base, "work")
	must(w.tb, os.MkdirAll(dir, 0o755))
	for _, t := range tasks {
		text := fmt.Sprintf("grep -qs 'func task%02d()' *.go || { %s; }\n", t.n, t.edit) +
			"if [ $1 = mend ]; then\n" + keepBoth + t.mend + "\necho 'Fixed it.'\nfi\n"
		must(w.tb, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.sh", t.n)), []byte(text), 0o644))
	}
}

func (w *world) work(n, what string) string {
	return "sh " + filepath.Join(w.base, "work", n+".sh") + " " + what
}

// landingScript is a script for a lead that creates the tasks and so many teammates, and for teammates who do them. One
// whose task comes back resolves the conflict or mends what is red, and completes it again.
func (w *world) landingScript(tasks []landingTask, teammates int) string {
	const rounds = 25 // how often one task may come back
	var b strings.Builder
	b.WriteString("speakers:\n  lead:\n    - do:\n")
	for _, t := range tasks {
		fmt.Fprintf(&b, "        - task_create: {subject: landing task %02d}\n", t.n)
	}
	for i := range teammates {
		fmt.Fprintf(&b, "        - spawn_teammate: {name: t%d, role: coder, prompt: Take the tasks as they come.}\n", i)
	}
	b.WriteString("    - {do: [{wait: {}}], until: All done}\n    - say: All has landed.\n")
	b.WriteString("  coder:\n    - say: Ready.\nscenes:\n  - cue: '(?m)^Task #(?P<id>\\d+): landing task (?P<n>\\d+)'\n    who: [coder]\n    turns:\n")
	fmt.Fprintf(&b, "      - do: [{bash: {command: %q}}]\n", w.work("${n}", "edit"))
	const complete = "do: [{complete_task: {task_id: \"${number:id}\", summary: Adds the function.}}]"
	b.WriteString("      - " + complete + "\n")
	for range rounds {
		fmt.Fprintf(&b, "      - {cue: '(?i)complete_task again|is not resolved', do: [{bash: {command: %q}}]}\n", w.work("${n}", "mend"))
		b.WriteString("      - {cue: Fixed it, " + complete + "}\n")
	}
	b.WriteString("      - say: Done.\n")
	return b.String()
}

func (w *world) checkTasksOnce(commit string, tasks []landingTask) {
	w.tb.Helper()
	found := map[string]int{}
	for line := range strings.Lines(w.output(w.command("git", "grep", "-ohE", "func task[0-9]+", commit))) {
		found[strings.TrimSpace(line)]++
	}
	for _, t := range tasks {
		if n := found[fmt.Sprintf("func task%02d", t.n)]; n != 1 {
			w.tb.Errorf("the work of task %d is there %d times", t.n, n)
		}
	}
}
