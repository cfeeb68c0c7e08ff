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
	file, ok := l.has(dir, "pyproject.toml", "uv.lock", "poetry.lock", "setup.py", "setup.cfg")
	over, isBelowOne := above(all, kindPython, dir)
	requirements := l.requirements(dir)
	if !ok && (isBelowOne || len(requirements) == 0) || over.hasMembers {
		return u, false
	}
	u = unit{kind: kindPython}
	project := l.read(dir, "pyproject.toml")
	_, hasUV := l.has(dir, "uv.lock")
	_, hasPoetry := l.has(dir, "poetry.lock")
	// A lockfile says which tool the project uses. Without any, pip does what all of them can. A poetry environment
	// would lie in the user's cache, one for each path, and be left there; in the checkout it goes with that.
	python := "python3"
	switch {
	case hasUV:
		u.manager, python = "uv", "uv run --no-sync python"
		u.hasMembers = strings.Contains(project, "[tool.uv.workspace]")
		u.setup = []Step{{Command: "uv sync --frozen", Reason: path.Join(dir, "uv.lock") + " pins what uv installs"}}
	case hasPoetry || strings.Contains(project, "[tool.poetry]"):
		u.manager, python = "poetry", "poetry run python"
		reason := path.Join(dir, "poetry.lock") + " pins what poetry installs"
		if !hasPoetry {
			reason = path.Join(dir, "pyproject.toml") + " is one of poetry's, and no lockfile pins what it installs"
		}
		u.setup = []Step{{Command: "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction", Reason: reason}}
	default:
		u.manager = "pip"
		if u.setup = l.pipSetup(dir, file, requirements); u.setup != nil {
			python = ".venv/bin/python"
		}
	}
	u.checks = []Step{l.pythonCheck(dir, python)}
	return u, true
}

// requirementsFiles are the files of requirements that a developer needs.
var requirementsFiles = []string{"requirements.txt", "requirements-dev.txt", "requirements_dev.txt",
	"dev-requirements.txt", "requirements-test.txt", "requirements-tests.txt", "test-requirements.txt"}

// requirements returns those of a directory.
func (l *looker) requirements(dir string) (files []string) {
	for _, name := range requirementsFiles {
		if l.byDir[dir][name] {
			files = append(files, name)
		}
	}
	return files
}

// pythonExtra matches the extra of a pyproject.toml that developers need.
var pythonExtra = lazyregexp.New(`(?s)\[project\.optional-dependencies\].*?\n(dev|test|tests|testing)\s*=\s*\[`)

// pipSetup returns the step that installs with pip into a virtual environment in the checkout, or nothing.
func (l *looker) pipSetup(dir, file string, requirements []string) []Step {
	var what []string
	for _, r := range requirements {
		what, file = append(what, "-r "+r), requirements[0]
	}
	project := l.read(dir, "pyproject.toml")
	_, isOld := l.has(dir, "setup.py", "setup.cfg")
	if m := pythonExtra().FindStringSubmatch(project); m != nil {
		what = append(what, "-e '.["+m[1]+"]'")
	} else if isOld || strings.Contains(project, "[project]") || strings.Contains(project, "[build-system]") {
		what = append(what, "-e .")
	}
	if l.usesPytest(dir) && !l.hasPytest(dir) {
		what = append(what, "pytest")
	}
	if what == nil {
		return nil // a file for tools only
	}
	reason := path.Join(dir, file) + " says what pip installs"
	if len(requirements) == 0 {
		reason += ", and no lockfile pins it"
	}
	// The programs are named by their paths, so that the environment need not be activated and another one, which may
	// be active, is not used.
	command := "python3 -m venv .venv && .venv/bin/pip install " + strings.Join(what, " ")
	return []Step{{Command: command, Reason: reason}}
}

// pytestName matches pytest as the name of a package.
var pytestName = lazyregexp.New(`\bpytest\b`)

// hasPytest reports whether what is installed has pytest.
func (l *looker) hasPytest(dir string) bool {
	files := append(l.requirements(dir), "pyproject.toml", "setup.py", "setup.cfg")
	return slices.ContainsFunc(files, func(name string) bool {
		return pytestName().MatchString(strings.ReplaceAll(l.read(dir, name), "[tool.pytest", ""))
	})
}

// usesPytest reports whether the tests of a project are run by pytest.
func (l *looker) usesPytest(dir string) bool {
	_, ok := l.has(dir, "pytest.ini", "conftest.py", "tox.ini")
	return ok || l.hasPytest(dir) || strings.Contains(l.read(dir, "pyproject.toml"), "[tool.pytest") ||
		l.byDir[path.Join(dir, "tests")]["conftest.py"] || l.byDir[path.Join(dir, "test")]["conftest.py"]
}

// pythonCheck returns the check of a Python project.
func (l *looker) pythonCheck(dir, python string) Step {
	project := dir // what people call it
	if dir == "" {
		project = "this project"
	}
	if l.usesPytest(dir) {
		return Step{Name: "test", Command: python + " -m pytest -q",
			Reason: "the tests of " + project + " are run by pytest"}
	}
	if _, ok := l.has(dir, "manage.py"); ok {
		return Step{Name: "test", Command: python + " manage.py test",
			Reason: path.Join(dir, "manage.py") + " is one of Django's"}
	}
	for _, file := range l.Files {
		if ok, _ := path.Match("test*.py", path.Base(file)); ok && isBelow(dir, file) {
			return Step{Name: "test", Command: python + " -m unittest discover", Reason: file + " has tests"}
		}
	}
	return Step{Name: "compile", Command: python + " -m compileall -q -x '[.]venv' .",
		Reason: "there are no tests in " + project}
}
