package detect

import (
	"path"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
)

// hint is a command with which the project itself checks its work, and the file that says so.
type hint struct{ command, file string }

// note returns the hint as a sentence.
func (h hint) note() string { return h.file + " runs " + h.command }

// maxHints is how many hints are kept.
const maxHints = 6

// hintText matches the commands that are taken as hints, in which the shell does nothing but to split words, and
// hintCommand those that check something.
var (
	hintText    = lazyregexp.New(`^[A-Za-z0-9 _./:=@,+-]{1,100}$`)
	hintCommand = lazyregexp.New(`^((make|just|task) [a-z:_-]*(test|check|verify|ci)[a-z:_-]*` +
		`|(npm|pnpm|yarn|bun)( run)? [a-z:_-]*(test|check|verify|ci:)[a-z:_-]*|go (-C \S+ )?test( .*)?` +
		`|cargo (test|nextest run)( .*)?` +
		`|(uv run |poetry run )(--\S+ )*(python3? -m )?pytest( .*)?|(uvx? )?(tox|nox)( .*)?` +
		`|(\./)?(gradlew?|mvnw?) (.* )?(test|check|verify|build)( .*)?|dotnet test( .*)?)$`)
)

// hintLine matches a command with what is around it in a list, a workflow, a script or a block of code.
var hintLine = lazyregexp.New("^\\s*(?:- )?(?:name: \\S+ )?(?:run: *|script: *)?(?:\\$ )?[\"'`]?(.*?)" +
	"[\"'`]?\\s*(?: #.*)?$")

// codeSpan matches code in a line of Markdown.
var codeSpan = lazyregexp.New("`([^`]+)`")

// hints returns the commands with which the project says that it checks its work, each once: those in the files for
// agents and for people before those of the CI, which also has commands for releases.
func (l *looker) hints() (all []hint) {
	files := []string{"AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", ".gitlab-ci.yml"}
	for _, file := range l.Files { // they are sorted
		if ok, _ := path.Match(".github/workflows/*.y*ml", file); ok {
			files = append(files, file)
		}
	}
	for _, file := range files {
		for line := range strings.Lines(l.read(strings.TrimSuffix(path.Dir(file), "."), path.Base(file))) {
			candidates := [][]string{hintLine().FindStringSubmatch(strings.TrimRight(line, "\r\n"))}
			if path.Ext(file) == ".md" {
				candidates = append(candidates, codeSpan().FindAllStringSubmatch(line, -1)...)
			}
			for _, c := range candidates {
				isKnown := slices.ContainsFunc(all, func(h hint) bool { return h.command == c[1] })
				if !isKnown && len(all) < maxHints && hintText().MatchString(c[1]) && hintCommand().MatchString(c[1]) {
					all = append(all, hint{c[1], file})
				}
			}
		}
	}
	return all
}

// follow replaces the test of the only project by the first command with which the project itself checks its work, if
// it is one of the same tool, or of the makefile: it knows of flags, tags and services that nothing else tells. follow
// returns notes about the other hints.
func (l *looker) follow(u *unit, hints []hint) (notes []string) {
	at := slices.IndexFunc(u.checks, func(s Step) bool { return s.Name == "test" })
	isTaken := at < 0
	for _, h := range hints {
		if !isTaken && l.fits(*u, h) {
			u.checks[at].Command, isTaken = h.command, true
			u.checks[at].Reason = h.file + " says that it checks this project"
		} else if !slices.ContainsFunc(u.checks, func(s Step) bool { return s.Command == h.command }) {
			notes = append(notes, h.note())
		}
	}
	return notes
}

// fits reports whether a hint can be the test of a unit.
func (l *looker) fits(u unit, h hint) bool {
	first, rest, _ := strings.Cut(h.command, " ")
	switch {
	case slices.Contains(runners, first):
		file, _ := l.runnerFile(first)
		text := "\n" + l.read("", file)
		return strings.Contains(text, "\n"+rest+":") || strings.Contains(text, "\n"+rest+" ")
	case u.kind == kindNode:
		script := strings.TrimPrefix(rest, "run ")
		return first == u.manager && strings.HasPrefix(script, "test") && l.nodePackage("").Scripts[script] != ""
	}
	return first == u.manager && first != "pip"
}
