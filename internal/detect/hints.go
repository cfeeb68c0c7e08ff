package detect

import (
	"path"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// hint is a command with which the project itself checks its work.
type hint struct {
	command string
	file    string // where it stands
}

// note returns the hint as a sentence.
func (h hint) note() string { return h.file + " runs " + h.command }

// The files for agents and for people, and the CI's: what they say is looked at in this order.
var guideFiles = []string{"AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", ".gitlab-ci.yml"}

// maxHints is how many hints are kept.
const maxHints = 6

// hintText matches the commands that are taken as hints, in which the shell does nothing but to split words.
var hintText = lazyregexp.New(`^[A-Za-z0-9 _./:=@,+-]{1,100}$`)

// hintCommand matches commands that check something.
var hintCommand = lazyregexp.New(`^((make|just|task) [a-z:_-]*(test|check|verify|ci)[a-z:_-]*` +
	`|(npm|pnpm|yarn|bun)( run)? [a-z:_-]*(test|check|verify|ci:)[a-z:_-]*|go (-C \S+ )?test( .*)?` +
	`|cargo (test|nextest run)( .*)?` +
	`|(uv run |poetry run |pdm run )(--\S+ )*(python3? -m )?pytest( .*)?|(uvx? )?(tox|nox)( .*)?` +
	`|(\./)?(gradlew?|mvnw?) (.* )?(test|check|verify|build)( .*)?|dotnet test( .*)?)$`)

// hintPrefix matches what stands before a command in a list, a workflow, a script or a block of code.
var hintPrefix = lazyregexp.New("^\\s*(?:- )?(?:name: \\S+ )?(?:run: *|script: *)?(?:\\$ )?[\"'`]?")

// codeSpan matches code in a line of Markdown.
var codeSpan = lazyregexp.New("`([^`]+)`")

// hints returns the commands with which the project says that it checks its work, each once.
func (l *looker) hints() (all []hint) {
	files := slices.Clone(guideFiles)
	var workflows []string
	for _, file := range l.Files {
		if ext := path.Ext(file); path.Dir(file) == ".github/workflows" && (ext == ".yml" || ext == ".yaml") {
			workflows = append(workflows, file)
		}
	}
	slices.Sort(workflows)
	for _, file := range append(files, workflows...) {
		dir, name := path.Split(file)
		for line := range strings.Lines(l.read(strings.TrimSuffix(dir, "/"), name)) {
			candidates := []string{line}
			if path.Ext(file) == ".md" {
				for _, m := range codeSpan().FindAllStringSubmatch(line, -1) {
					candidates = append(candidates, m[1])
				}
			}
			for _, c := range candidates {
				c = strings.TrimRight(strings.TrimSpace(hintPrefix().ReplaceAllString(c, "")), "\"'`")
				c, _, _ = strings.Cut(c, " #")
				isNew := !slices.ContainsFunc(all, func(h hint) bool { return h.command == c })
				if isNew && len(all) < maxHints && hintText().MatchString(c) && hintCommand().MatchString(c) {
					all = append(all, hint{c, file})
				}
			}
		}
	}
	return all
}

// follow replaces the test of the only project by the command with which the project itself checks its work, if it is
// one of the same tool, or of the makefile. It returns notes about the other hints.
func (l *looker) follow(u *unit, hints []hint) (notes []string) {
	// The project's own command knows of flags, tags and services that nothing else tells. The first one counts: files
	// for agents come before those of the CI, which also has commands for releases.
	at := slices.IndexFunc(u.checks, func(s Step) bool { return s.Name == "test" })
	isTaken := at < 0
	for _, h := range hints {
		if !isTaken && l.fits(*u, h) {
			u.checks[at].Command, isTaken = h.command, true
			u.checks[at].Reason = h.file + " says that it checks this project"
			continue
		}
		if !slices.ContainsFunc(u.checks, func(s Step) bool { return s.Command == h.command }) {
			notes = append(notes, h.note())
		}
	}
	return notes
}

// fits reports whether a hint can be the test of a unit.
func (l *looker) fits(u unit, h hint) bool {
	first, rest, _ := strings.Cut(h.command, " ")
	switch {
	case first == "make":
		file, ok := l.has("", "GNUmakefile", "Makefile", "makefile")
		return ok && !strings.Contains(rest, " ") && strings.Contains("\n"+l.read("", file), "\n"+rest+":")
	case u.kind == kindNode:
		script := strings.TrimPrefix(rest, "run ")
		return first == u.manager && l.nodePackage("").Scripts[script] != "" && strings.HasPrefix(script, "test")
	case u.kind == kindPython:
		return first == u.manager && u.manager != "pip"
	}
	return first == u.manager
}
