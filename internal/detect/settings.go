package detect

import (
	"fmt"
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// Settings returns the proposal as the text of muster.yaml, with comments that explain it.
func (p Proposal) Settings() string {
	// The comments stay in the file: whoever reads it later sees why each command is there.
	var b strings.Builder
	b.WriteString("# How muster works in this repository. Change it as you like; docs/set-up.md says more.\n")
	if command := p.SetupCommand(); command != "" {
		b.WriteString("\n# Set-up makes a fresh checkout ready to work in. " +
			"It runs once for each state of the files it depends on.\n")
		writeReasons(&b, p.Setup, "")
		if p.WholeTree {
			b.WriteString("# It may depend on every file, so it is made anew for each tree. " +
				"If you know the files that it depends on:\n# setup_files: package.json package-lock.json\n")
		}
		fmt.Fprintf(&b, "setup: %s\n", quoteYAML(command))
	}
	if checks := p.NamedChecks(); len(checks) > 0 {
		b.WriteString("\n# The checks prove the merged tree: nothing lands that turns one of them red. " +
			"They run side by side.\n# An advisory one is only reported: work lands while it is red.\n")
		writeReasons(&b, p.Checks, "")
		b.WriteString("checks:\n")
		for _, c := range checks {
			fmt.Fprintf(&b, "  - name: %s\n    command: %s\n", quoteName(c.Name), quoteYAML(c.Command))
			if c.Advisory {
				b.WriteString("    advisory: true\n")
			}
		}
	} else if command := p.CheckCommand(); command != "" {
		b.WriteString("\n# The check proves the merged tree: nothing lands that turns it red.\n")
		writeReasons(&b, p.Checks, " (left out: it says nothing about whether the work is right)")
		fmt.Fprintf(&b, "check: %s\n", quoteYAML(command))
	} else {
		b.WriteString("\n# The check proves the merged tree. " +
			"Nothing was found that could be it: without one nothing is verified.\n# check: make test\n")
	}
	if len(p.Notes) > 0 {
		b.WriteString("\n# What was seen besides:\n")
		for _, note := range p.Notes {
			fmt.Fprintf(&b, "# - %s\n", flat(note))
		}
	}
	return b.String()
}

// writeReasons writes the reasons of steps as comments, and what else is to say of those that are advisory.
func writeReasons(b *strings.Builder, steps []Step, ofAdvisory string) {
	for _, s := range steps {
		left := ""
		if s.Advisory {
			left = ofAdvisory
		}
		fmt.Fprintf(b, "# - %s: %s%s\n", flat(s.Command), flat(s.Reason), left)
	}
}

// flat returns a text on one line. The blanks in a command count and stay.
func flat(s string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(text.Clean(s)) }

// plainYAML matches texts that are the same string without quotes: several words of letters.
var plainYAML = lazyregexp.New(`^[A-Za-z./][A-Za-z0-9./_=-]*( [A-Za-z0-9./_=-]+)+$`)

// plainName matches names that are the same string without quotes: no number, and no word of YAML's.
var plainName = lazyregexp.New(`^(test|types|lint|build|compile|[A-Za-z]+(-[A-Za-z0-9]+)+)$`)

// quoteName returns the name of a check as a YAML string.
func quoteName(s string) string {
	if plainName().MatchString(s) {
		return s
	}
	return "'" + s + "'"
}

// quoteYAML returns a text as a YAML string on one line.
func quoteYAML(s string) string {
	if s = flat(s); plainYAML().MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
