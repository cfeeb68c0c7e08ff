package main

import (
	"regexp"
	"slices"
	"strings"

	"muster/internal/shellcommands"
)

// The shapes of commands. A path is taken for absolute if it begins with a usual directory or with a drive: patterns of
// awk and routes of servers begin with a slash, too.
var (
	absolute = regexp.MustCompile(`(?:^|[\s"'=(:<>,])(?:/(?:Users|home|root|tmp|usr|opt|var|etc|mnt|srv|private|` +
		`Volumes|Applications|Library|workspaces?|work|app|data|[a-z])/[^\s"']|[A-Za-z]:[\\/][^\\/\s])`)
	belowTmp     = regexp.MustCompile(`(?:^|[\s"'=(:<>,])(?:/private)?/tmp/`)
	cdAbsolute   = regexp.MustCompile(`^\s*(?:cd|Set-Location|pushd)\s+(?:/d\s+)?["']?(?:/|[A-Za-z]:[\\/])`)
	beginsWithCd = regexp.MustCompile(`^\s*(?:cd|Set-Location|pushd)\s`)
)

// leaving is a kind of command that leaves files behind.
type leaving string

// The kinds.
const (
	redirected leaving = "redirection to a file"
	inTmp      leaving = "redirection to a file below /tmp"
	made       leaving = "mkdir, touch, cp, mv, tee, ln, unzip, tar -x"
	fetched    leaving = "curl -o, wget, git clone, git worktree add"
	installed  leaving = "packages installed (npm, pip, uv, cargo, go get, ...)"
	built      leaving = "build (npm run build, make, cargo build, go build, ...)"
	tested     leaving = "test run (pytest, go test, npm test, cargo test, ...)"
	python     leaving = "another Python program"
)

// leavings are the kinds in the order of the table.
var leavings = []leaving{redirected, inTmp, made, fetched, installed, built, tested, python}

// makers are the programs that only make files.
var makers = []string{"mkdir", "touch", "cp", "mv", "tee", "ln", "unzip", "New-Item", "Copy-Item", "Move-Item"}

// leaves returns the kinds of files that a command may leave behind. A script is no command of its own here: what it
// leaves is not seen.
func leaves(command string) (kinds []leaving) {
	script := shellcommands.Parse(command)
	for _, w := range script.Writes {
		switch text := w.Text; {
		case strings.HasPrefix(text, "/dev/") || strings.HasPrefix(text, "&"):
		case strings.HasPrefix(text, "/tmp/") || strings.HasPrefix(text, "/private/tmp/"):
			kinds = append(kinds, inTmp)
		default:
			kinds = append(kinds, redirected)
		}
	}
	for _, c := range script.Commands {
		if len(c.Words) == 0 || c.Possible {
			continue
		}
		name, _ := c.Words[0].Base()
		var words []string
		for _, w := range c.Words[1:] {
			words = append(words, w.Text)
		}
		if kind := leftBy(name, words); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// leftBy returns the kind of one simple command, or "".
func leftBy(name string, words []string) leaving {
	first := ""
	if len(words) > 0 {
		first = words[0]
	}
	has := func(any ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(any, w) })
	}
	switch name {
	case "npm", "pnpm", "yarn", "bun":
		switch {
		case slices.Contains([]string{"install", "i", "ci", "add", "create"}, first) || first == "" && name != "bun":
			return installed
		case has("test", "t", "vitest", "jest"):
			return tested
		case has("build", "dev", "start", "export"):
			return built
		}
	case "npx", "bunx":
		switch {
		case has("vitest", "jest", "playwright"):
			return tested
		case has("build") || has("tsc") && !has("--noEmit"):
			return built
		}
	case "pytest", "jest", "vitest", "phpunit", "rspec", "tox":
		return tested
	case "pip", "pip3", "poetry", "bundle", "composer", "brew", "apt", "apt-get", "gem", "pod":
		if has("install", "add", "update", "require") {
			return installed
		}
	case "uv":
		switch {
		case has("pytest"):
			return tested
		case has("sync", "add", "install", "venv"):
			return installed
		case has("run"):
			return python
		}
	case "python", "python3", "py":
		switch {
		case has("pytest", "unittest"):
			return tested
		case has("pip", "venv"):
			return installed
		case has("-c", "--version", "-V") || first == "" || first == "-":
			return ""
		}
		return python
	case "go", "cargo", "mvn", "mvnw", "gradle", "gradlew", "dotnet", "swift", "mix", "make", "cmake", "ninja",
		"xcodebuild", "flutter", "tsc", "docker", "next", "vite":
		return leftByBuilder(name, first, has)
	case "curl":
		if has("-o", "-O", "--output") {
			return fetched
		}
	case "wget":
		return fetched
	case "git":
		if first == "clone" || first == "worktree" && has("add") {
			return fetched
		}
	case "tar":
		if strings.Contains(first, "x") {
			return made
		}
	default:
		if slices.Contains(makers, name) {
			return made
		}
	}
	return ""
}

// leftByBuilder returns the kind of a command of a build tool.
func leftByBuilder(name, first string, has func(...string) bool) leaving {
	switch {
	case has("test", "check", "test:unit") || strings.HasPrefix(first, "test"):
		return tested
	case name == "go" && (first == "get" || first == "install" || first == "mod"), name == "mix" && first == "deps.get",
		name == "cargo" && (first == "add" || first == "install"),
		name == "dotnet" && (first == "restore" || first == "add"):
		return installed
	case name == "tsc" && has("--noEmit"), name == "docker" && !has("build", "up"),
		name == "go" && !slices.Contains([]string{"build", "run", "generate"}, first),
		name == "mix" && !slices.Contains([]string{"compile", "run", "phx.server"}, first),
		name == "cargo" && slices.Contains([]string{"fmt", "tree", "metadata"}, first), has("--version"):
		return ""
	}
	return built
}
