package main

import (
	"fmt"
	"io"
	"slices"
)

// long is how many tokens a conversation has from which on its old results may be cleared.
const long = 50_000

// keptSizes are the sizes of kept results for which the share of edits is printed.
var keptSizes = []int{5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000}

// measured are the distances of an agent.
type measured struct {
	distances   []distance
	repository  []string // of each distance
	origins     [origins]int
	reads, most []int // tokens of each read, and of the results of each conversation
}

// measure goes through the conversations of the sessions. Those of subagents are not counted.
func measure(sources []source) (m measured) {
	for _, s := range sources {
		t := follow(s.Session)
		m.distances = append(m.distances, t.distances...)
		for range t.distances {
			m.repository = append(m.repository, s.repository)
		}
		for i := range m.origins {
			m.origins[i] += t.origins[i]
		}
		m.reads, m.most = append(m.reads, t.sizes...), append(m.most, t.largest)
	}
	return m
}

// of returns the value of each distance that ok accepts.
func (m measured) of(value func(distance) int, ok func(i int, d distance) bool) (values []int) {
	for i, d := range m.distances {
		if ok(i, d) {
			values = append(values, value(d))
		}
	}
	return values
}

// largest returns the repository with the most distances, and how many repositories have one.
func (m measured) largest() (name string, repositories int) {
	n := map[string]int{}
	for _, r := range m.repository {
		if n[r]++; n[r] > n[name] || n[r] == n[name] && r < name {
			name = r
		}
	}
	return name, len(n)
}

// printDistances prints how much lies between the read of a file and its edit, for the agents whose exports have the
// results of reads.
func (c corpus) printDistances(w io.Writer) {
	names, groups := c.byAgent()
	for _, name := range names {
		if m := measure(groups[name]); len(m.distances) > 0 {
			m.print(w, name)
		}
	}
}

// print prints the distances.
func (m measured) print(w io.Writer, agent string) {
	every := func(int, distance) bool { return true }
	whole := func(d distance) int { return d.results + d.own }
	between := func(d distance) int { return d.results }
	largest, repositories := m.largest()
	with := m.of(whole, every)
	fmt.Fprintf(w, "\n%s: between the last read of a file and its edit, in %d repositories\n\n", agent, repositories)
	fmt.Fprint(w, "| | median | 75% | 90% | 95% | 99% | n |\n|---|---|---|---|---|---|---|\n",
		spread("tokens of results between them", m.of(between, every)),
		spread("... with the read itself", with),
		spread("... with the read itself, without the largest repository",
			m.of(whole, func(i int, _ distance) bool { return m.repository[i] != largest })),
		spread(fmt.Sprintf("... with the read itself, after more than %d tokens", long),
			m.of(whole, func(_ int, d distance) bool { return d.before > long })),
		spread("... with the read itself, first edit after the read",
			m.of(whole, func(_ int, d distance) bool { return d.first })),
		spread("tokens of all that the export has between them", m.of(func(d distance) int { return d.all }, every)),
		spread("turns between them", m.of(func(d distance) int { return d.turns },
			func(_ int, d distance) bool { return d.timed })),
		spread("tokens of a read that an edit followed", m.of(func(d distance) int { return d.own }, every)),
		spread("tokens of any read", m.reads),
		spread("tokens of all results of a conversation, or between two summaries of it at most", m.most))
	fmt.Fprintf(w, "\n| tokens of results kept | reads that would be whole at the edit | after more than %d tokens |\n"+
		"|---|---|---|\n", long)
	late := m.of(whole, func(_ int, d distance) bool { return d.before > long })
	for _, kept := range keptSizes {
		fmt.Fprintf(w, "| %d | %s | %s |\n", kept, percent(atMost(with, kept), len(with)),
			percent(atMost(late, kept), len(late)))
	}
	total := 0
	for _, n := range m.origins {
		total += n
	}
	fmt.Fprintf(w, "\nOf %d edits %s follow a read, %s a command that shows the file, %s only the agent's own edit "+
		"of it, %s a read before a summary, and %s nothing that the export shows.\n", total,
		percent(m.origins[byRead], total), percent(m.origins[byCommand], total), percent(m.origins[byOwnEdit], total),
		percent(m.origins[bySummary], total), percent(m.origins[byNothing], total))
}

// atMost returns how many of the values are not larger than the limit. They are sorted.
func atMost(values []int, limit int) int {
	slices.Sort(values)
	n, _ := slices.BinarySearch(values, limit+1)
	return n
}
