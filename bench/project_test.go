//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A project whose check needs what git does not have: a virtual environment.
const (
	projectCheck = "python test.py"
	// projectVerify is the check where nothing is installed that could hide the merged tree.
	projectVerify = "PYTHONPATH=src python test.py"
	// projectTask is what a task does, and projectBad what one does whose work makes the check red; NN is its number.
	projectTask = `printf '# func taskNN\nVALUE = "NN"\n' > src/demo/taskNN.py`
	projectBad  = `printf '# func taskNN\nraise RuntimeError("task NN is not ready")\n' > src/demo/taskNN.py`
)

// makePython makes a package, and a virtual environment that has it as pip install -e leaves it: a finder that leads to
// the user's checkout.
func makePython(w *world) {
	w.files(map[string]string{
		".gitignore": "__pycache__\n",
		"src/demo/__init__.py": `import importlib, pathlib

def selftest():
    for f in sorted(pathlib.Path(__file__).parent.glob("task*.py")):
        importlib.import_module("demo." + f.stem)
`,
		"test.py": "import demo\ndemo.selftest()\n"})
	venv := filepath.Join(w.base, "venv")
	w.output(w.command("python3", "-m", "venv", "--without-pip", venv))
	site := need(filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages")))(w.tb)[0]
	finder := fmt.Sprintf(`import sys
from importlib.util import spec_from_file_location

MAPPING = {'demo': '%s'}

class _EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            at = MAPPING[fullname]
            return spec_from_file_location(fullname, at + '/__init__.py', submodule_search_locations=[at])

def install():
    sys.meta_path.append(_EditableFinder)
`, filepath.Join(w.root, "src", "demo"))
	must(w.tb, os.WriteFile(filepath.Join(site, "__editable___demo_1_0_finder.py"), []byte(finder), 0o644))
	must(w.tb, os.WriteFile(filepath.Join(site, "__editable__.demo-1.0.pth"),
		[]byte("import __editable___demo_1_0_finder; __editable___demo_1_0_finder.install()\n"), 0o644))
	w.env = append(w.env, "VIRTUAL_ENV="+venv, "PATH="+filepath.Join(venv, "bin")+":"+os.Getenv("PATH"))
}

// files writes files of the repository.
func (w *world) files(all map[string]string) {
	w.tb.Helper()
	for name, text := range all {
		path := filepath.Join(w.root, name)
		must(w.tb, os.MkdirAll(filepath.Dir(path), 0o755))
		must(w.tb, os.WriteFile(path, []byte(text), 0o644))
	}
}

// newProject makes the world of a project.
func newProject(tb testing.TB) *world {
	tb.Helper()
	base := need(filepath.EvalSymlinks(tb.TempDir()))(tb)
	w := &world{tb: tb, base: base, root: filepath.Join(base, "repo"), env: environment(base)}
	for _, d := range []string{"repo", "home", "tmp"} {
		must(tb, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	makePython(w)
	w.commitAll()
	return w
}

// projectTasks are n tasks; the work of the third breaks the check at first.
func projectTasks(n int) (all []landingTask) {
	for i := 1; i <= n; i++ {
		fill := strings.NewReplacer("NN", fmt.Sprintf("%02d", i))
		t := landingTask{n: i, edit: fill.Replace(projectTask)}
		if i == 3 {
			t.edit, t.mend = fill.Replace(projectBad), fill.Replace(projectTask)
		}
		all = append(all, t)
	}
	return all
}

// landProject lands the tasks by a team, and fails unless all that holds which a landing promises.
func landProject(tb testing.TB, tasks []landingTask) landingCost {
	tb.Helper()
	w := newProject(tb)
	r := &landingRun{world: w, tasks: tasks, teammates: 3, check: w.checkScript(projectCheck)}
	base := w.head()
	cost := r.run()
	if n := cost.returned[3]; len(cost.returned) != 1 || n != 1 {
		tb.Errorf("the third task has to come back once, and no other: %v", cost.returned)
	}
	if n := r.verify(base, projectVerify); n == 0 {
		tb.Error("no commit says that its check is green")
	}
	return cost
}

// BenchmarkProject is a team of three that lands eight tasks in a project whose check needs more than git has.
func BenchmarkProject(b *testing.B) {
	tasks := projectTasks(8)
	w := newProject(b)
	g, all := newPlainGit(w, w.checkScript(projectVerify), tasks)
	var plain landingCost
	start := time.Now()
	g.inBatches(all)
	plain.wall = time.Since(start).Seconds()
	plain.checks, plain.cpu = w.checksRun()
	w.checkTasksOnce(g.tip, tasks)
	cost := landProject(b, tasks)
	cost.report(b, "8 tasks by 3 teammates, with a virtual environment that has the user's checkout in editable form", len(tasks), plain,
		"plain git in batches, all branches ready", 0, 0)
}

// TestProject has a team land tasks in the project.
func TestProject(t *testing.T) {
	tasks := projectTasks(4)
	if cost := landProject(t, tasks); cost.landed != len(tasks) || cost.attention > 0 {
		t.Errorf("%+v", cost)
	}
}
