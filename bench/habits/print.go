package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"muster/bench/habits/session"
)

// print prints the figures as tables of Markdown.
func (c corpus) print(w io.Writer) {
	c.printCorpus(w)
	c.printDistances(w)
	c.printTurns(w)
	c.printShell(w)
	c.printPaths(w)
	c.printOutcomes(w)
	c.printTools(w)
}

// percent returns a share for people.
func percent(part, all int) string {
	if all == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(all))
}

// quantile returns the value below which the share q of the values is. It sorts them.
func quantile(values []int, q float64) int {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// spread returns the row of a distribution, or "" if it has no values.
func spread(name string, values []int) string {
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |\n", name, quantile(values, 0.5), quantile(values, 0.75),
		quantile(values, 0.9), quantile(values, 0.95), quantile(values, 0.99), len(values))
}

// byAgent groups the sessions by their agent, most calls first.
func (c corpus) byAgent() (names []string, groups map[string][]source) {
	groups, calls := map[string][]source{}, map[string]int{}
	for _, s := range c.sources {
		groups[agent(s)] = append(groups[agent(s)], s)
		calls[agent(s)] += len(s.calls())
	}
	names = slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), strings.Compare(a, b))
	})
	return names, groups
}

// agent returns the agent of a session by one name for all versions of the export.
func agent(s source) string {
	switch a := strings.ToLower(s.Agent); {
	case strings.HasPrefix(a, "claude"):
		return "Claude Code"
	case strings.HasPrefix(a, "codex"):
		return "Codex"
	case strings.HasPrefix(a, "gemini"):
		return "Gemini"
	case a == "cursor cli":
		return "Cursor CLI"
	case strings.HasPrefix(a, "cursor"):
		return "Cursor"
	case strings.HasPrefix(a, "vs"):
		return "Copilot"
	}
	return s.Agent
}

// printCorpus prints what was read, and what of it could not be.
func (c corpus) printCorpus(w io.Writer) {
	names, groups := c.byAgent()
	fmt.Fprintf(w, "%d files; %d sessions with calls, of %d repositories; %d more are copies of one of them.\n\n",
		c.files, len(c.sources), c.repositories(func(source) bool { return true }), c.repeated)
	fmt.Fprint(w, "| agent | repositories | sessions | calls | with arguments | with a result | unknown tool | broken ",
		"| copies |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range names {
		var calls, args, results, unknown, broken, copies int
		for _, s := range groups[name] {
			broken, copies = broken+s.Broken, copies+s.Copies
			for _, call := range s.calls() {
				calls++
				args += count(len(call.Args)+len(call.Paths) > 0 || call.Command != "")
				results += count(call.HasResult)
				unknown += count(call.Does == session.Other)
			}
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %s | %s | %s | %d | %d |\n", name,
			c.repositories(func(s source) bool { return agent(s) == name }), len(groups[name]), calls,
			percent(args, calls), percent(results, calls), percent(unknown, calls), broken, copies)
	}
}

// count returns 1 for true.
func count(ok bool) int {
	if ok {
		return 1
	}
	return 0
}
