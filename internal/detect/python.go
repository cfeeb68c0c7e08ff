package detect

import (
	"path"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// pythonUnit returns the Python project in a directory. Its packages come into a virtual environment of the checkout,
// never into one that happens to be active.
func (l *looker) pythonUnit(dir string, all []unit) (u unit, ok bool) {
	file, ok := l.has(dir, "pyproject.toml", "uv.lock", "poetry.lock", "pdm.lock", "setup.py", "setup.cfg")
	_, isBelowOne := above(all, kindPython, dir)
	requirements := l.requirements(dir)
	switch {
	case !ok && len(requirements) == 0:
		return u, false
	case isBelowOne && (!ok || l.isUVMember(dir, all)):
		return u, false
	}
	u = unit{kind: kindPython}
	project := l.read(dir, "pyproject.toml")
	_, hasUV := l.has(dir, "uv.lock")
	_, hasPoetry := l.has(dir, "poetry.lock")
	_, hasPDM := l.has(dir, "pdm.lock")
	// A lockfile says which tool the project uses. Without any, pip does what all of them can. A poetry environment
	// would lie in the user's cache, one for each path, and be left there; in the checkout it goes with that.
	run := ""
	switch {
	case hasUV:
		u.manager, u.hasMembers, run = "uv", strings.Contains(project, "[tool.uv.workspace]"), "uv run --no-sync "
		u.setup = []Step{{Command: "uv sync --frozen", Reason: path.Join(dir, "uv.lock") + " pins what uv installs"}}
	case hasPoetry:
		u.manager, run = "poetry", "poetry run "
		u.setup = []Step{{Command: "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction",
			Reason: path.Join(dir, "poetry.lock") + " pins what poetry installs"}}
	case hasPDM:
		u.manager, run = "pdm", "pdm run "
		u.setup = []Step{{Command: "pdm sync", Reason: path.Join(dir, "pdm.lock") + " pins what pdm installs"}}
	case strings.Contains(project, "[tool.poetry]"):
		u.manager, run = "poetry", "poetry run "
		u.setup = []Step{{Command: "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction",
			Reason: path.Join(dir, "pyproject.toml") + " is one of poetry's, and no lockfile pins what it installs"}}
	default:
		u.manager, run = "pip", ".venv/bin/"
		if u.setup = l.pipSetup(dir, file, requirements); u.setup == nil {
			run = "" // nothing makes a virtual environment
		}
	}
	u.checks = l.pythonChecks(dir, run)
	return u, true
}

// isUVMember reports whether a directory lies in the workspace of uv above it.
func (l *looker) isUVMember(dir string, all []unit) bool {
	over, ok := above(all, kindPython, dir)
	return ok && over.hasMembers
}

// requirementsFile matches the files of requirements that may come into a command.
var requirementsFile = lazyregexp.New(`^(dev-|test-)?requirements([-_.](dev|test|tests|testing|ci))?\.txt$`)

// requirements returns the files of requirements that a developer needs, in order.
func (l *looker) requirements(dir string) (files []string) {
	for name := range l.byDir[dir] {
		if requirementsFile().MatchString(name) {
			files = append(files, name)
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		if d := len(a) - len(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return files
}

// pythonExtra matches the extra of a pyproject.toml that developers need.
var pythonExtra = lazyregexp.New(`(?m)^(dev|test|tests|testing)\s*=\s*\[`)

// pipSetup returns the steps that install with pip into a virtual environment in the checkout.
func (l *looker) pipSetup(dir, file string, requirements []string) []Step {
	// The programs are named by their paths, so that the environment need not be activated and another one, which may
	// be active, is not used.
	command, reason := "python3 -m venv .venv && .venv/bin/pip install", ""
	for _, r := range requirements {
		command += " -r " + r
	}
	project := l.read(dir, "pyproject.toml")
	if len(requirements) > 0 {
		reason = path.Join(dir, requirements[0]) + " says what pip installs"
	}
	isInstalled := strings.Contains(project, "[project]") || strings.Contains(project, "[build-system]") ||
		file == "setup.py" || file == "setup.cfg"
	_, after, hasExtras := strings.Cut(project, "[project.optional-dependencies]")
	switch m := pythonExtra().FindStringSubmatch(after); {
	case !isInstalled:
	case hasExtras && m != nil:
		command += " -e '.[" + m[1] + "]'"
	default:
		command += " -e ."
	}
	if reason == "" {
		reason = path.Join(dir, file) + " says what pip installs, and no lockfile pins it"
	}
	if l.usesPytest(dir) && !l.declaresPytest(dir, requirements) {
		command += " pytest"
	}
	if strings.HasSuffix(command, "pip install") {
		return nil // a file for tools only
	}
	return []Step{{Command: command, Reason: reason}}
}

// declaresPytest reports whether what is installed has pytest.
func (l *looker) declaresPytest(dir string, requirements []string) bool {
	return slices.ContainsFunc(append(slices.Clone(requirements), "pyproject.toml", "setup.py", "setup.cfg"),
		func(name string) bool {
			text := l.read(dir, name)
			if name == "pyproject.toml" {
				text = strings.ReplaceAll(text, "[tool.pytest", "")
			}
			return contains(text, "pytest")
		})
}

// usesPytest reports whether the tests of a project are run by pytest.
func (l *looker) usesPytest(dir string) bool {
	if _, ok := l.has(dir, "pytest.ini", "conftest.py", "tox.ini"); ok || l.declaresPytest(dir, l.requirements(dir)) ||
		strings.Contains(l.read(dir, "pyproject.toml"), "[tool.pytest") {
		return true
	}
	return slices.ContainsFunc([]string{"tests", "test"}, func(sub string) bool {
		_, ok := l.has(path.Join(dir, sub), "conftest.py")
		return ok
	})
}

// pythonChecks returns the check of a Python project; run is what stands before a program of its environment.
func (l *looker) pythonChecks(dir, run string) []Step {
	python := run + "python"
	if run == "" {
		python = "python3"
	}
	if _, ok := l.has(dir, "manage.py"); ok && !l.usesPytest(dir) {
		return []Step{{Name: "test", Command: python + " manage.py test",
			Reason: path.Join(dir, "manage.py") + " is one of Django's"}}
	}
	if l.usesPytest(dir) {
		return []Step{{Name: "test", Command: python + " -m pytest -q",
			Reason: "the tests of " + pythonProject(dir) + " are run by pytest"}}
	}
	for _, file := range l.Files {
		base := path.Base(file)
		if isBelow(dir, file) && strings.HasPrefix(base, "test") && strings.HasSuffix(base, ".py") {
			return []Step{{Name: "test", Command: python + " -m unittest discover", Reason: file + " has tests"}}
		}
	}
	return []Step{{Name: "compile", Command: python + " -m compileall -q -x '[.]venv' .",
		Reason: "there are no tests in " + pythonProject(dir)}}
}

// pythonProject returns what people call the project in a directory.
func pythonProject(dir string) string {
	if dir == "" {
		return "this project"
	}
	return dir
}
