package detect

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"muster/internal/lazyregexp"
)

// The files that installers read, as patterns of path.Match for their names.
var (
	nodeFiles = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
		"bun.lock", "bun.lockb", ".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml", ".pnpmfile.cjs",
		"bunfig.toml", ".nvmrc", ".node-version", ".tool-versions", "*.patch", "*.tgz"}
	pythonFiles = []string{"pyproject.toml", "uv.lock", "uv.toml", "poetry.lock", "poetry.toml", "pdm.lock",
		"setup.py", "setup.cfg", "*requirements*.txt", "*constraints*.txt", ".python-version", ".tool-versions",
		"MANIFEST.in"}
	goFiles     = []string{"go.mod", "go.sum", "go.work", "go.work.sum"}
	cargoFiles  = []string{"Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml"}
	dotnetFiles = []string{"*.csproj", "*.fsproj", "*.sln", "*.slnx", "packages.lock.json", "Directory.*.props",
		"Directory.*.targets", "global.json", "[Nn]u[Gg]et.[Cc]onfig"}
	rubyFiles = []string{"Gemfile", "Gemfile.lock", "*.gemspec", ".ruby-version"}
	phpFiles  = []string{"composer.json", "composer.lock"}
)

// installers lists how the commands begin of which it is known what they read.
var installers = []struct{ words, reads []string }{
	{[]string{"npm ci", "npm install", "npm i", "pnpm install", "pnpm i", "yarn install", "yarn", "bun install"},
		nodeFiles},
	{[]string{"uv sync", "uv venv", "uv pip install", "poetry install", "pdm sync", "pdm install", "pip install",
		"pip3 install", "python -m pip install", "python3 -m pip install", "python -m venv", "python3 -m venv"},
		pythonFiles},
	{[]string{"go mod download", "go mod vendor"}, goFiles},
	{[]string{"cargo fetch", "cargo vendor"}, cargoFiles},
	{[]string{"dotnet restore"}, dotnetFiles},
	{[]string{"bundle install", "bundle config"}, rubyFiles},
	{[]string{"composer install"}, phpFiles},
	{[]string{"cd", "true", "corepack enable", "mkdir -p"}, nil},
}

// commandBreak matches what stands between the simple commands of a command.
var commandBreak = lazyregexp.New(`&&|;|\n`)

// simpleCommand matches a command in which the shell does nothing that could read another file.
var simpleCommand = lazyregexp.New(`^[A-Za-z0-9 _./:=@,+'\[\]-]*$`)

// Inputs returns the tracked files on which a set-up command depends: those that its tools read, and those that match
// one of the patterns. isWhole says that it may depend on any file, because a part of the command is not known and
// there are no patterns that say more.
func Inputs(t Tree, command string, patterns []string) (files []string, isWhole bool) {
	if command == "" {
		return nil, false
	}
	// A part that is not known makes the whole unknown, unless somebody has named its files. A result that is made too
	// often costs time; one that is used where it does not belong makes checks lie.
	names := map[string]bool{}
	for _, part := range commandBreak().Split(command, -1) {
		reads, ok := t.reads(strings.Trim(strings.TrimSpace(part), "() "))
		if !ok && len(patterns) == 0 {
			return nil, true
		}
		for _, name := range reads {
			names[name] = true
		}
	}
	for _, file := range t.Files {
		base := path.Base(file)
		isRead := slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, file) })
		for name := range names {
			if ok, _ := path.Match(name, base); ok || name == file { // the patterns above are right
				isRead = true
				break
			}
		}
		if isRead {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	// An installer without any file of its own says nothing of what it depends on.
	return files, len(files) == 0 && len(patterns) == 0
}

// reads returns the names of the files that one simple command reads; ok is false when that is not known. It decides by
// the words of the command only, because nothing is run.
func (t Tree) reads(command string) (names []string, ok bool) {
	if !simpleCommand().MatchString(command) {
		return nil, false
	}
	words := strings.Fields(command)
	for len(words) > 0 && strings.Contains(words[0], "=") { // NAME=value before it
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, true
	}
	words[0] = strings.TrimPrefix(words[0], ".venv/bin/")
	for _, in := range installers {
		for _, begin := range in.words {
			// yarn alone is an install, and "yarn build" is none.
			rest, isIt := strings.CutPrefix(strings.Join(words, " ")+" ", begin+" ")
			if !isIt || begin == "yarn" && rest != "" && !strings.HasPrefix(rest, "-") {
				continue
			}
			names = slices.Clone(in.reads)
			for i, w := range words[1:] { // what is named after -r and -c
				if slices.Contains([]string{"-r", "-c", "--requirement", "--constraint"}, words[i]) {
					names = append(names, path.Clean(w))
				}
			}
			return names, !t.runsOwnCode(words, in.reads)
		}
	}
	return nil, false
}

// harmlessScript matches scripts of a package.json that depend on no other file of the tree.
var harmlessScript = lazyregexp.New(`^\s*(husky( install)?|simple-git-hooks|lefthook install|patch-package|` +
	`is-ci \|\| husky( install)?|husky( install)? \|\| true|exit 0|true)?\s*$`)

// ownBuilder matches what builds a Python package of more than its own file.
var ownBuilder = lazyregexp.New(`(?i)maturin|cython|extension\(|scikit-build|mesonpy`)

// runsOwnCode reports whether an install runs code of the repository, or builds something of it: the result may then
// depend on every file.
func (t Tree) runsOwnCode(words, reads []string) bool {
	isNode := slices.Equal(reads, nodeFiles) && !slices.Contains(words, "--ignore-scripts")
	isPython := slices.Equal(reads, pythonFiles)
	if isPython && slices.Contains(words, ".") && !slices.Contains(words, "-e") { // a copy of the package is installed
		return true
	}
	return slices.ContainsFunc(t.Files, func(file string) bool {
		switch base := path.Base(file); {
		case isNode && base == "package.json":
			var p nodePackage
			_ = json.Unmarshal([]byte(t.content(file)), &p) // a broken file has no fields
			for _, name := range []string{"preinstall", "install", "postinstall", "prepare", "prepublish"} {
				if !harmlessScript().MatchString(p.Scripts[name]) {
					return true
				}
			}
		case isPython && (base == "pyproject.toml" || base == "setup.py"):
			return ownBuilder().MatchString(t.content(file))
		}
		return false
	})
}
