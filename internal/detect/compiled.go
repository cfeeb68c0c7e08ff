package detect

import (
	"path"
	"strings"

	"muster/internal/lazyregexp"
)

// goUnit returns the Go module, or the workspace of modules, in a directory. It needs no set-up: go gets what it needs
// by itself, and verifies it.
func (l *looker) goUnit(dir string, all []unit) (u unit, ok bool) {
	u = unit{kind: kindGo, manager: "go"}
	if over, ok := above(all, kindGo, dir); ok && over.hasMembers {
		return u, false
	}
	if _, ok := l.has(dir, "go.work"); ok {
		u.hasMembers = true
		u.checks = []Step{{Name: "test", Command: "go test $(go list -m -f '{{.Dir}}/...')",
			Reason: path.Join(dir, "go.work") + " names the modules that belong together"}}
		return u, true
	}
	if _, ok := l.has(dir, "go.mod"); !ok {
		return u, false
	}
	u.checks = []Step{{Name: "test", Command: "go test ./...",
		Reason: path.Join(dir, "go.mod") + " makes it a Go module"}}
	return u, true
}

// rustUnit returns the Cargo package or workspace in a directory. Cargo gets what it needs by itself, and verifies it.
func (l *looker) rustUnit(dir string, all []unit) (u unit, ok bool) {
	u = unit{kind: kindRust, manager: "cargo"}
	if _, isMember := above(all, kindRust, dir); isMember {
		return u, false
	}
	if _, ok := l.has(dir, "Cargo.toml"); !ok {
		return u, false
	}
	command, reason := "cargo test", path.Join(dir, "Cargo.toml")+" makes it a Cargo package"
	if strings.Contains(l.read(dir, "Cargo.toml"), "[workspace]") {
		command, reason = "cargo test --workspace", path.Join(dir, "Cargo.toml")+" has a workspace"
	}
	if _, isLocked := l.has(dir, "Cargo.lock"); isLocked {
		command, reason = command+" --locked", reason+", and Cargo.lock pins what it needs"
	}
	u.checks = []Step{{Name: "test", Command: command, Reason: reason}}
	return u, true
}

// gradleUnit returns the Gradle build in a directory.
func (l *looker) gradleUnit(dir string, all []unit) (u unit, ok bool) {
	if _, isMember := above(all, kindGradle, dir); isMember {
		return u, false
	}
	file, ok := l.has(dir, "settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle")
	if !ok {
		return u, false
	}
	u = unit{kind: kindGradle, manager: "gradle", hasMembers: true}
	if _, ok := l.has(dir, "gradlew"); ok {
		u.manager = "./gradlew"
	}
	// A daemon would live on after the check, in the directory of another one.
	u.checks = []Step{{Name: "test", Command: u.manager + " --no-daemon check",
		Reason: path.Join(dir, file) + " makes it a Gradle build"}}
	return u, true
}

// mavenUnit returns the Maven project in a directory.
func (l *looker) mavenUnit(dir string, all []unit) (u unit, ok bool) {
	if _, isMember := above(all, kindMaven, dir); isMember {
		return u, false
	}
	if _, ok := l.has(dir, "pom.xml"); !ok {
		return u, false
	}
	u = unit{kind: kindMaven, manager: "mvn", hasMembers: true}
	if _, ok := l.has(dir, "mvnw"); ok {
		u.manager = "./mvnw"
	}
	u.checks = []Step{{Name: "test", Command: u.manager + " -B -q verify",
		Reason: path.Join(dir, "pom.xml") + " makes it a Maven project"}}
	return u, true
}

// dotnetUnit returns the .NET solution or project in a directory.
func (l *looker) dotnetUnit(dir string, all []unit) (u unit, ok bool) {
	if _, isMember := above(all, kindDotnet, dir); isMember {
		return u, false
	}
	// A solution has all projects. Of several projects without one, the first counts: dotnet refuses to choose, and the
	// user sees that in the trial.
	file := ""
	for name := range l.byDir[dir] {
		switch path.Ext(name) {
		case ".sln", ".slnx":
			file = name
		case ".csproj", ".fsproj":
			if file == "" || strings.HasSuffix(file, "proj") && name < file {
				file = name
			}
		}
	}
	if file == "" {
		return u, false
	}
	u = unit{kind: kindDotnet, manager: "dotnet", hasMembers: true}
	reason := path.Join(dir, file) + " makes it a .NET project"
	if locks := l.below(dir, "packages.lock.json"); len(locks) > 0 {
		u.setup = []Step{{Command: "dotnet restore --locked-mode", Reason: locks[0] + " pins what NuGet installs"}}
		u.checks = []Step{{Name: "test", Command: "dotnet test --no-restore", Reason: reason}}
		return u, true
	}
	u.checks = []Step{{Name: "test", Command: "dotnet test", Reason: reason}}
	return u, true
}

// makeTarget matches a rule of a makefile that checks the work.
var makeTarget = lazyregexp.New(`(?m)^(check|test|tests)\s*:([^=]|$)`)

// makeUnit returns the makefile at the root. It counts where nothing else says how the work is checked.
func (l *looker) makeUnit() (u unit, ok bool) {
	file, ok := l.has("", "GNUmakefile", "Makefile", "makefile")
	if !ok {
		return u, false
	}
	m := makeTarget().FindStringSubmatch(l.read("", file))
	if m == nil {
		return u, false
	}
	return unit{kind: kindMake, manager: "make", checks: []Step{{Name: "test", Command: "make " + m[1],
		Reason: file + " has the target " + m[1]}}}, true
}
