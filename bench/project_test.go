//go:build linux

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// project is a small repository whose check needs what git does not have: installed packages, or an environment.
type project struct {
	name, what string
	make       func(*world) // makes its files, and what lies outside
	setup      string       // a command of the shell
	check      string
	task       string // what a task does; NN is its number
	bad        string // what one does whose work makes the check red
	verify     string // the check where nothing is installed that could hide the merged tree; "": the check
}

// landedProjects are the projects of BenchmarkProject.
var landedProjects = []project{
	{name: "npm", what: "with a package from the npm registry, by a lock file", make: makeNPM,
		setup: "npm ci --no-audit --no-fund", check: "node test.js",
		task: installed + `printf '// func taskNN\nmodule.exports = "1.0." + Number("NN")\n' > taskNN.js`,
		bad:  installed + `printf '// func taskNN\nmodule.exports = "none"\n' > taskNN.js`},
	{name: "python", what: "with a virtual environment that has the user's checkout in editable form", make: makePython,
		check: "python test.py", verify: "PYTHONPATH=src python test.py",
		task: `printf '# func taskNN\nVALUE = "NN"\n' > src/demo/taskNN.py`,
		bad:  `printf '# func taskNN\nraise RuntimeError("task NN is not ready")\n' > src/demo/taskNN.py`},
}

// installed uses the package in a lane, after the set-up where that was not put there: in lanes that are older than the
// first check.
const installed = `[ -e node_modules ] || npm ci --no-audit --no-fund; node -e 'require("semver")' || exit 1; `

// makeNPM makes a project of npm with a dependency that its lock file names.
func makeNPM(w *world) {
	for _, kv := range os.Environ() { // where the registry is
		if strings.HasPrefix(strings.ToLower(kv), "npm_config_") {
			w.env = append(w.env, kv)
		}
	}
	w.files(map[string]string{
		"package.json": `{"name": "demo", "version": "1.0.0", "private": true, "dependencies": {"semver": "7.6.3"}}` + "\n",
		".gitignore":   "node_modules\n",
		"test.js": `const semver = require('semver'), fs = require('fs')
for (const f of fs.readdirSync('.').filter(f => /^task\d+\.js$/.test(f)))
  if (!semver.valid(require('./' + f))) { console.log('not ok 1 - ' + f); process.exit(1) }
`})
	w.output(w.command("npm", "install", "--package-lock-only", "--no-audit", "--no-fund"))
	// An npm that counts. A script in package.json could, but then the set-up might depend on any file.
	npm := fmt.Sprintf("#!/bin/sh\n[ $1 != ci ] || echo >> %s/setups\nexec %s \"$@\"\n", w.base, need(exec.LookPath("npm"))(w.tb))
	must(w.tb, os.Mkdir(filepath.Join(w.base, "bin"), 0o755))
	must(w.tb, os.WriteFile(filepath.Join(w.base, "bin", "npm"), []byte(npm), 0o755))
	w.env = append(w.env, "PATH="+filepath.Join(w.base, "bin")+":"+os.Getenv("PATH"))
}

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
func (p project) newWorld(tb testing.TB) *world {
	tb.Helper()
	base := need(filepath.EvalSymlinks(tb.TempDir()))(tb)
	w := &world{tb: tb, base: base, root: filepath.Join(base, "repo"), env: environment(base)}
	for _, d := range []string{"repo", "home", "tmp"} {
		must(tb, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	p.make(w)
	w.commitAll()
	return w
}

// tasks are so many tasks; the work of the third breaks the check at first.
func (p project) tasks(n int) (all []landingTask) {
	for i := 1; i <= n; i++ {
		fill := strings.NewReplacer("NN", fmt.Sprintf("%02d", i))
		t := landingTask{n: i, edit: fill.Replace(p.task)}
		if i == 3 {
			t.edit, t.mend = fill.Replace(p.bad), fill.Replace(p.task)
		}
		all = append(all, t)
	}
	return all
}

// plainly lands the tasks by plain git in batches, in directories that are set up before.
func (p project) plainly(tb testing.TB, tasks []landingTask) (cost landingCost) {
	tb.Helper()
	w := p.newWorld(tb)
	check := p.check
	if p.verify != "" {
		check = p.verify
	}
	g, all := newPlainGit(w, w.checkScript("", check), tasks, p.setup)
	start := time.Now()
	g.inBatches(all)
	cost.wall = time.Since(start).Seconds()
	cost.checks, cost.cpu = w.checksRun()
	w.checkTasksOnce(g.tip, tasks)
	return cost
}

// landWell lands the tasks of a project by a team, and fails unless all that holds which a landing promises.
func (p project) landWell(tb testing.TB, tasks []landingTask) (cost landingCost, setups int) {
	tb.Helper()
	w := p.newWorld(tb)
	r := &landingRun{world: w, tasks: tasks, teammates: 3, check: w.checkScript("", p.check)}
	if p.setup != "" {
		r.args = []string{"--setup", p.setup}
	}
	base := w.commit("HEAD")
	cost = r.run()
	data, _ := os.ReadFile(filepath.Join(w.base, "setups"))
	setups = strings.Count(string(data), "\n")
	if n := cost.returned[3]; len(cost.returned) != 1 || n != 1 {
		tb.Errorf("the third task has to come back once, and no other: %v", cost.returned)
	}
	verify := p.check
	if p.verify != "" {
		verify = p.verify
	}
	if n := r.verify(base, p.setup, verify); n == 0 {
		tb.Error("no commit says that its check is green")
	}
	return cost, setups
}

// BenchmarkProject is teams of three that land eight tasks in projects whose checks need more than git has.
func BenchmarkProject(b *testing.B) {
	for _, p := range landedProjects {
		b.Run(p.name, func(b *testing.B) {
			tasks := p.tasks(8)
			plain := p.plainly(b, tasks)
			cost, setups := p.landWell(b, tasks)
			what := "8 tasks by 3 teammates, " + p.what
			cost.report(b, what, len(tasks), plain, "plain git in batches, all branches ready, set up before", 0, 0)
			if p.setup != "" { // once for the checks, and in the lanes that are older than that
				report(b, "setups", figure{what: "... how often it was set up, " + what, unit: "times", ours: float64(setups), limit: 1 + 3,
					beside: float64(cost.checks + len(tasks)), is: "for each check and lane"})
			}
		})
	}
}

// TestProjects has a team land tasks in each project. The one with npm needs its registry.
func TestProjects(t *testing.T) {
	for _, p := range landedProjects {
		t.Run(p.name, func(t *testing.T) {
			if p.name == "npm" {
				t.Skip("without a registry there is nothing to install: go -C bench test -run '^$' -bench Project")
			}
			tasks := p.tasks(4)
			if cost, _ := p.landWell(t, tasks); cost.landed != len(tasks) || cost.attention > 0 {
				t.Errorf("%+v", cost)
			}
		})
	}
}
