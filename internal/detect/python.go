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
	if l.isRunByPytest(dir) && !l.hasPytest(dir) {
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

// isRunByPytest reports whether pytest runs the tests of a project: it is set up for that, or they are none that
// unittest finds.
func (l *looker) isRunByPytest(dir string) bool {
	_, isDjango := l.has(dir, "manage.py")
	return l.usesPytest(dir) || !isDjango && l.onlyForPytest(dir)
}

// pytestOnly matches what only pytest runs in a file of tests: functions and classes of their own.
var pytestOnly = lazyregexp.New(`(?m)^(?:(?:async )?def test|class Test\w*(?:\(\))?:|import pytest\b|from pytest\b)`)

// maxTestFiles is how many files of tests are read.
const maxTestFiles = 50

// testFiles returns the Python files of a directory that have the names of tests, as pytest knows them.
func (l *looker) testFiles(dir string) (files []string) {
	for _, file := range l.Files {
		base := path.Base(file)
		isTest := path.Ext(base) == ".py" && (strings.HasPrefix(base, "test") || strings.HasSuffix(base, "_test.py"))
		if isTest && isBelow(dir, file) {
			files = append(files, file)
		}
	}
	return files
}

// onlyForPytest reports whether a project has tests that unittest does not run. It loads no file whose name does not
// begin with test, and skips what is no unittest.TestCase without a word.
func (l *looker) onlyForPytest(dir string) bool {
	files := l.testFiles(dir)
	isForUnittest := func(file string) bool { return strings.HasPrefix(path.Base(file), "test") }
	if len(files) > 0 && !slices.ContainsFunc(files, isForUnittest) {
		return true
	}
	_, isPlain := l.unittestRoots(dir)
	return !isPlain || slices.ContainsFunc(files[:min(len(files), maxTestFiles)], func(file string) bool {
		return pytestOnly().MatchString(l.content(file))
	})
}

// maxRoots is how many directories unittest is started in.
const maxRoots = 4

// unittestRoots returns the directories, relative to the project, in which unittest has to begin so that it finds all
// files of tests: it looks only into packages, which have an __init__.py. isPlain is false where it would not, or where
// there are too many.
func (l *looker) unittestRoots(dir string) (roots []string, isPlain bool) {
	for _, file := range l.testFiles(dir) {
		at := strings.TrimSuffix(path.Dir(file), ".")
		for at != dir && at != "" && l.byDir[at]["__init__.py"] {
			at = strings.TrimSuffix(path.Dir(at), ".")
		}
		root := strings.TrimPrefix(strings.TrimPrefix(at, dir), "/")
		if root != "" && !plainDir().MatchString(root) {
			return nil, false
		}
		if !slices.Contains(roots, root) && strings.HasPrefix(path.Base(file), "test") {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	return roots, len(roots) <= maxRoots
}

// pythonCheck returns the check of a Python project.
func (l *looker) pythonCheck(dir, python string) Step {
	project := dir // what people call it
	if dir == "" {
		project = "this project"
	}
	if l.isRunByPytest(dir) {
		return Step{Name: "test", Command: python + " -m pytest -q",
			Reason: "the tests of " + project + " are run by pytest"}
	}
	if _, ok := l.has(dir, "manage.py"); ok {
		return Step{Name: "test", Command: python + " manage.py test",
			Reason: path.Join(dir, "manage.py") + " is one of Django's"}
	}
	if files := l.testFiles(dir); len(files) > 0 {
		var commands []string
		reason := files[0] + " has tests"
		roots, _ := l.unittestRoots(dir)
		for _, root := range roots {
			command := python + " -m unittest discover"
			if root != "" {
				command += " -s " + root
				reason = files[0] + " has tests, and " + path.Join(dir, root) + " is no package for unittest"
			}
			commands = append(commands, command)
		}
		return Step{Name: "test", Command: strings.Join(commands, " && "), Reason: reason}
	}
	return Step{Name: "compile", Command: python + " -m compileall -q -x '[.]venv' .",
		Reason: "there are no tests in " + project}
}
