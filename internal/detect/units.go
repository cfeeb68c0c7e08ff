package detect

import (
	"path"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// kind is a kind of project, by its tools.
type kind string

// The kinds of projects that more is asked of than stacks tells.
const (
	kindGo     kind = "go"
	kindNode   kind = "node"
	kindPython kind = "python"
)

// stack is a kind of project that one file makes, in its plainest form.
type stack struct {
	kind  kind
	file  string // a pattern of the file's name
	holds string // a text that the file has to hold, or ""
	check string
	why   string // what the file does, as the end of a sentence
	// A wrapper in the directory takes the place of the first word of the check. Where there is the file lock, locked
	// is added to the check.
	wrapper, lock, locked string
	// isAlone says that a directory below it with such a file is a project of its own.
	isAlone bool
}

// stacks are the known ones. Of one kind the first counts. They have no set-up: they get by
// themselves what they need.
var stacks = []stack{
	{kind: kindGo, file: "go.work", check: "go test $(go list -m -f '{{.Dir}}/...')",
		why: "names the modules that belong together"},
	{kind: kindGo, file: "go.mod", check: "go test ./...", why: "makes it a Go module", isAlone: true},
	{kind: "rust", file: "Cargo.toml", holds: "[workspace]", check: "cargo test --workspace", why: "has a workspace",
		lock: "Cargo.lock", locked: " --locked"},
	{kind: "rust", file: "Cargo.toml", check: "cargo test", why: "makes it a Cargo package", lock: "Cargo.lock",
		locked: " --locked"},
	// A daemon would live on after the check, in the directory of another one.
	{kind: "gradle", file: "settings.gradle*", check: "gradle --no-daemon check", wrapper: "gradlew",
		why: "makes it a Gradle build"},
	{kind: "gradle", file: "build.gradle*", check: "gradle --no-daemon check", wrapper: "gradlew",
		why: "makes it a Gradle build"},
	{kind: "maven", file: "pom.xml", check: "mvn -B -ntp verify", why: "makes it a Maven project", wrapper: "mvnw"},
	{kind: "dotnet", file: "*.sln*", check: "dotnet test", why: "makes it a .NET project"},
	{kind: "dotnet", file: "*.[cf]sproj", check: "dotnet test", why: "makes it a .NET project"},
}

// unit is one project in a repository: a directory with files that one tool builds.
type unit struct {
	kind    kind
	dir     string // "" is the root
	manager string // npm, uv, cargo, ./gradlew: the first word of the commands
	// The commands run in dir. Those of setup are all needed, in this order; those of checks stand for themselves.
	setup  []Step
	checks []Step
	// hasMembers says that directories below belong to it: a workspace.
	hasMembers bool
}

// name returns what the checks of the unit are called by where there are several.
func (u unit) name() string {
	if u.dir == "" {
		return string(u.kind)
	}
	return path.Base(u.dir)
}

// units returns the projects of the repository, those in upper directories first. What belongs to another one above it
// is left out.
func (l *looker) units() (all []unit) {
	for _, dir := range l.dirs {
		add := func(u unit, ok bool) {
			if u.dir = dir; ok {
				all = append(all, u)
			}
		}
		for _, s := range stacks {
			over, _ := above(all, s.kind, dir)
			isKnown := slices.ContainsFunc(all, func(u unit) bool { return u.kind == s.kind && u.dir == dir })
			if !isKnown && !over.hasMembers {
				add(l.stackUnit(dir, s))
			}
		}
		add(l.nodeUnit(dir, all))
		add(l.pythonUnit(dir, all))
	}
	// A makefile beside another tool mostly calls that tool. It counts then only if the project says so; see follow.
	if len(all) == 0 {
		for _, runner := range runners {
			if file, target := l.runnerFile(runner); target != "" {
				return []unit{{kind: kind(runner), manager: runner, checks: []Step{{Name: "test",
					Command: runner + " " + target, Reason: file + " has the target " + target}}}}
			}
		}
	}
	return all
}

// stackUnit returns the project in a directory, if it is one of that stack.
func (l *looker) stackUnit(dir string, s stack) (u unit, ok bool) {
	file := ""
	for name := range l.byDir[dir] {
		if ok, _ := path.Match(s.file, name); ok && (file == "" || name < file) { // the patterns above are right
			file = name
		}
	}
	if file == "" || !strings.Contains(l.read(dir, file), s.holds) {
		return u, false
	}
	command, reason := s.check, path.Join(dir, file)+" "+s.why
	u.manager, _, _ = strings.Cut(command, " ")
	if _, ok := l.has(dir, s.wrapper); ok {
		command = strings.Replace(command, u.manager, "./"+s.wrapper, 1)
		u.manager = "./" + s.wrapper
	}
	if _, ok := l.has(dir, s.lock); ok {
		command, reason = command+s.locked, reason+", and "+s.lock+" pins what it needs"
	}
	u.kind, u.hasMembers = s.kind, !s.isAlone
	u.checks = []Step{{Name: "test", Command: command, Reason: reason}}
	return u, true
}

// above returns the unit of the kind that a directory lies in.
func above(all []unit, k kind, dir string) (u unit, ok bool) {
	for _, u := range slices.Backward(all) {
		if u.kind == k && u.dir != dir && isBelow(u.dir, dir+"/") {
			return u, true
		}
	}
	return u, false
}

// runners are the programs that run the rules of a file.
var runners = []string{"make", "just"}

// rule matches a rule of a makefile or a justfile that checks the work.
var rule = lazyregexp.New(`(?m)^(check|test|tests)(?:\s[^:\n]*)?:([^=]|$)`)

// runnerFile returns the file at the root with the rules of a runner, and the rule in it that checks the work.
func (l *looker) runnerFile(runner string) (file, target string) {
	file, _ = l.has("", map[string][]string{"make": {"GNUmakefile", "Makefile", "makefile"},
		"just": {"justfile", "Justfile", ".justfile"}}[runner]...)
	if m := rule().FindStringSubmatch(l.read("", file)); m != nil {
		target = m[1]
	}
	return file, target
}
