package detect

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// nodePackage is what is read of a package.json.
type nodePackage struct {
	Scripts         map[string]string `json:"scripts"`
	Dependencies    map[string]any    `json:"dependencies"`
	DevDependencies map[string]any    `json:"devDependencies"`
	PackageManager  string            `json:"packageManager"`
	Workspaces      any               `json:"workspaces"`
}

// nodePackage reads the package.json in a directory. One that is broken says nothing.
func (l *looker) nodePackage(dir string) (p nodePackage) {
	_ = json.Unmarshal([]byte(l.read(dir, "package.json")), &p)
	return p
}

// nodeLocks are the lockfiles, with the manager that writes each.
var nodeLocks = []struct{ file, manager string }{
	{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
	{"package-lock.json", "npm"}, {"npm-shrinkwrap.json", "npm"},
}

// nodeUnit returns the package of a package manager for JavaScript in a directory.
func (l *looker) nodeUnit(dir string, all []unit) (u unit, ok bool) {
	if _, ok := l.has(dir, "package.json"); !ok {
		return u, false
	}
	p := l.nodePackage(dir)
	lock, manager := l.nodeLock(dir, p)
	over, isBelowOne := above(all, kindNode, dir)
	if isBelowOne && (lock == "" || over.hasMembers) {
		return u, false // it belongs to the one above
	}
	u = unit{kind: kindNode, manager: manager}
	if _, ok := l.has(dir, "pnpm-workspace.yaml"); ok || p.Workspaces != nil {
		u.hasMembers = true
	}
	// A package without dependencies needs no set-up: it would only make an empty node_modules.
	if lock != "" || len(p.Dependencies)+len(p.DevDependencies) > 0 || u.hasMembers {
		u.setup = []Step{l.nodeSetup(dir, lock, manager)}
	}
	u.checks = l.nodeChecks(dir, manager, p, u.hasMembers)
	if port, script := nodePort(p); port > 0 {
		u.notes = append(u.notes, fmt.Sprintf(
			"the script %s in %s serves port %d: commands in a lane have a PORT of their own",
			script, path.Join(dir, "package.json"), port))
	}
	return u, len(u.setup)+len(u.checks) > 0
}

// nodeLock returns the lockfile in a directory, and the package manager. The field packageManager decides where there
// are several lockfiles.
func (l *looker) nodeLock(dir string, p nodePackage) (lock, manager string) {
	named, _, _ := strings.Cut(p.PackageManager, "@")
	if !slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, named) {
		named = ""
	}
	// Where a package came from another manager, its old lockfile often stays. The order of the list is that in which
	// people leave them: npm's, which all began with, comes last.
	for _, x := range nodeLocks {
		if _, ok := l.has(dir, x.file); ok && (named == "" || x.manager == named) {
			return x.file, x.manager
		}
	}
	if named == "" {
		named = "npm"
	}
	return "", named
}

// nodeSetup returns the command that installs just what a lockfile says.
func (l *looker) nodeSetup(dir, lock, manager string) Step {
	if lock == "" {
		return Step{Command: manager + " install",
			Reason: path.Join(dir, "package.json") + " has dependencies, and no lockfile pins them"}
	}
	command := map[string]string{"npm": "npm ci", "pnpm": "pnpm install --frozen-lockfile",
		"bun": "bun install --frozen-lockfile", "yarn": "yarn install --frozen-lockfile"}[manager]
	if _, hasRC := l.has(dir, ".yarnrc.yml"); manager == "yarn" &&
		(hasRC || strings.Contains(l.read(dir, lock), "__metadata:")) {
		command = "yarn install --immutable" // yarn 2 and later
	}
	return Step{Command: command, Reason: path.Join(dir, lock) + " pins what " + manager + " installs"}
}

// The names that the scripts for types and for style have, the usual one first.
var (
	typeScripts = []string{"typecheck", "type-check", "check-types", "types", "tsc"}
	lintScripts = []string{"lint"}
)

// nodeChecks returns the checks that the scripts of a package are.
func (l *looker) nodeChecks(dir, manager string, p nodePackage, isWorkspace bool) (checks []Step) {
	file := path.Join(dir, "package.json")
	add := func(name string, isAdvisory bool, scripts ...string) {
		for _, s := range scripts {
			if text := p.Scripts[s]; text != "" && !strings.Contains(text, "no test specified") {
				checks = append(checks, Step{Name: name, Command: nodeRun(manager, s, text), Advisory: isAdvisory,
					Reason: file + " has the script " + s})
				return
			}
		}
	}
	// Types come before tests: they are quicker, and say more exactly what is wrong. What is only style must not keep
	// work from landing.
	add("types", false, typeScripts...)
	add("test", false, "test")
	hasTest := slices.ContainsFunc(checks, func(s Step) bool { return s.Name == "test" })
	if !hasTest && isWorkspace {
		if member := l.memberWithTest(dir); member != "" {
			command := map[string]string{"npm": "npm test --workspaces --if-present", "pnpm": "pnpm -r test",
				"bun": "bun run --filter '*' test", "yarn": "yarn workspaces run test"}[manager]
			checks = append(checks, Step{Name: "test", Command: command, Reason: member + " has the script test"})
			hasTest = true
		}
	}
	if !hasTest { // at least it must be possible to build it
		add("build", false, "build")
	}
	add("lint", true, lintScripts...)
	return checks
}

// memberWithTest returns the package.json of a member of a workspace that has tests.
func (l *looker) memberWithTest(dir string) string {
	for _, file := range l.below(dir, "package.json") {
		member := strings.TrimSuffix(strings.TrimSuffix(file, "package.json"), "/")
		if text := l.nodePackage(member).Scripts["test"]; member != dir && text != "" &&
			!strings.Contains(text, "no test specified") {
			return file
		}
	}
	return ""
}

// nodeRun returns the command that runs a script once. Some runners wait for changes unless they are told.
func nodeRun(manager, script, text string) string {
	command := manager + " run " + script
	if script == "test" && manager != "bun" {
		command = manager + " test"
	}
	switch {
	case strings.Contains(text, "react-scripts test"):
		command = "CI=true " + command
	case strings.Contains(text, "jest") && strings.Contains(text, "--watch"):
		command += " -- --watchAll=false"
	case strings.HasPrefix(text, "ng test"):
		command += " -- --watch=false --browsers=ChromeHeadless"
	case strings.HasPrefix(text, "vitest") && !strings.Contains(text, "run"):
		command = "CI=true " + command
	}
	return command
}

// servedPort matches the port that a script serves.
var servedPort = lazyregexp.New(`(?:--port[= ]|-p |PORT=)([0-9]{4,5})\b`)

// nodePort returns the port that a script of a package serves, and the script; 0 if there is none.
func nodePort(p nodePackage) (port int, script string) {
	usual := []struct {
		word string
		port int
	}{{"vite", 5173}, {"next dev", 3000}, {"next start", 3000}, {"react-scripts start", 3000}, {"ng serve", 4200},
		{"nuxt dev", 3000}, {"astro dev", 4321}}
	for _, script := range []string{"dev", "start", "serve"} {
		text := p.Scripts[script]
		if m := servedPort().FindStringSubmatch(text); m != nil {
			_, _ = fmt.Sscan(m[1], &port) // the expression lets only digits through
			return port, script
		}
		for _, u := range usual {
			if rest, ok := strings.CutPrefix(text, u.word); ok && (rest == "" || rest[0] == ' ') && rest != " build" {
				return u.port, script
			}
		}
	}
	return 0, ""
}
