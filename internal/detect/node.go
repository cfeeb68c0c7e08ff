package detect

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
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
	if strings.Contains(p.Scripts["test"], "no test specified") {
		delete(p.Scripts, "test") // npm init has written it
	}
	return p
}

// nodeManager is a package manager for JavaScript.
type nodeManager struct {
	name, lock string
	install    string // installs just what the lockfile says
	members    string // runs the tests of all members of a workspace
}

// nodeManagers are the known ones. Where a package came from another manager, its old lockfile often stays, so npm's,
// which all began with, comes last.
var nodeManagers = []nodeManager{
	{"pnpm", "pnpm-lock.yaml", "pnpm install --frozen-lockfile", "pnpm -r test"},
	{"yarn", "yarn.lock", "yarn install --frozen-lockfile", "yarn workspaces run test"},
	{"bun", "bun.lock", "bun install --frozen-lockfile", "bun run --filter '*' test"},
	{"bun", "bun.lockb", "bun install --frozen-lockfile", "bun run --filter '*' test"},
	{"npm", "package-lock.json", "npm ci", "npm test --workspaces --if-present"},
	{"npm", "npm-shrinkwrap.json", "npm ci", "npm test --workspaces --if-present"},
}

// nodeManager returns the package manager of a directory: the one that the field packageManager names, or else the
// first with a lockfile there, or npm.
func (l *looker) nodeManager(dir string, p nodePackage) (m nodeManager, hasLock bool) {
	named, _, _ := strings.Cut(p.PackageManager, "@")
	isNamed := func(m nodeManager) bool { return m.name == named }
	isKnown := slices.ContainsFunc(nodeManagers, isNamed)
	for _, m := range nodeManagers {
		if _, ok := l.has(dir, m.lock); ok && (!isKnown || isNamed(m)) {
			_, hasRC := l.has(dir, ".yarnrc.yml")
			if m.name == "yarn" && (hasRC || strings.Contains(l.read(dir, m.lock), "__metadata:")) {
				m.install = "yarn install --immutable" // yarn 2 and later
			}
			return m, true
		}
	}
	if !isKnown {
		named = "npm"
	}
	return nodeManagers[slices.IndexFunc(nodeManagers, isNamed)], false
}

// nodeUnit returns the package of a package manager for JavaScript in a directory.
func (l *looker) nodeUnit(dir string, all []unit) (u unit, ok bool) {
	if _, ok := l.has(dir, "package.json"); !ok {
		return u, false
	}
	p := l.nodePackage(dir)
	m, hasLock := l.nodeManager(dir, p)
	over, isBelowOne := above(all, kindNode, dir)
	if isBelowOne && (!hasLock || over.hasMembers) {
		return u, false // it belongs to the one above
	}
	_, hasMembers := l.has(dir, "pnpm-workspace.yaml")
	u = unit{kind: kindNode, manager: m.name, hasMembers: hasMembers || p.Workspaces != nil}
	// A package without dependencies needs no set-up: it would only make an empty node_modules.
	file := path.Join(dir, "package.json")
	if hasLock {
		u.setup = []Step{{Command: m.install, Reason: path.Join(dir, m.lock) + " pins what " + m.name + " installs"}}
	} else if len(p.Dependencies)+len(p.DevDependencies) > 0 || u.hasMembers {
		u.setup = []Step{{Command: m.name + " install", Reason: file + " has dependencies, and no lockfile pins them"}}
	}
	member := ""
	if u.hasMembers {
		member = l.memberWithTest(dir)
	}
	add := func(name string, isAdvisory bool, scripts ...string) {
		for _, s := range scripts {
			if text := p.Scripts[s]; text != "" {
				step := Step{Name: name, Command: nodeRun(m.name, s, text), Advisory: isAdvisory,
					Reason: file + " has the script " + s}
				if strings.HasPrefix(step.Command, "CI=true ") {
					step.Reason += ", which waits for changes without CI=true"
				}
				u.checks = append(u.checks, step)
				return
			}
		}
	}
	// Types come before tests: they are quicker, and say more exactly what is wrong. What is only style must not keep
	// work from landing.
	add("types", false, "typecheck", "type-check", "check-types", "types", "tsc")
	switch {
	case p.Scripts["test"] != "":
		add("test", false, "test")
	case member != "":
		u.checks = append(u.checks, Step{Name: "test", Command: m.members, Reason: member + " has the script test"})
	default: // at least it must be possible to build it
		add("build", false, "build")
	}
	add("lint", true, "lint")
	return u, len(u.setup)+len(u.checks) > 0
}

// memberWithTest returns the package.json of a member of a workspace that has tests, or "".
func (l *looker) memberWithTest(dir string) string {
	for _, member := range l.dirs {
		if member != dir && isBelow(dir, member+"/") && l.nodePackage(member).Scripts["test"] != "" {
			return path.Join(member, "package.json")
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
	case strings.Contains(text, "react-scripts test"),
		strings.HasPrefix(text, "vitest") && !strings.Contains(text, "run"):
		return "CI=true " + command
	case strings.Contains(text, "jest") && strings.Contains(text, "--watch"):
		return command + " -- --watchAll=false"
	}
	return command
}
