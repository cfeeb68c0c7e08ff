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

// printTurns prints how many calls a turn has, and what comes before the first edit.
func (c corpus) printTurns(w io.Writer) {
	fmt.Fprint(w, "\n| agent | calls in a turn, at least | turns with one | with two | with three or more | n |\n",
		"|---|---|---|---|---|---|\n")
	names, groups := c.byAgent()
	for _, name := range names {
		var turns, calls, one, two int
		for _, s := range groups[name] {
			if t := follow(s.Session); t.timed {
				for _, n := range t.perTurn {
					turns, calls, one, two = turns+1, calls+n, one+count(n == 1), two+count(n == 2)
				}
			}
		}
		if turns > 0 {
			fmt.Fprintf(w, "| %s | %.2f | %s | %s | %s | %d |\n", name, float64(calls)/float64(turns),
				percent(one, turns), percent(two, turns), percent(turns-one-two, turns), turns)
		}
	}
	fmt.Fprint(w, "\n| before the first edit | median | 75% | 90% | 95% | 99% | n |\n|---|---|---|---|---|---|---|\n")
	for _, name := range names {
		var turns, calls, reads []int
		for _, s := range groups[name] {
			t := follow(s.Session)
			if t.firstEdit < 0 {
				continue
			}
			calls, reads = append(calls, t.callsBefore), append(reads, t.readsBefore)
			if t.timed {
				turns = append(turns, t.firstEdit)
			}
		}
		fmt.Fprint(w, spread(name+": turns", turns), spread(name+": calls", calls), spread(name+": reads", reads))
	}
}

// printShell prints what the commands have in common.
func (c corpus) printShell(w io.Writer) {
	fmt.Fprint(w, "\n| agent | absolute path | ... other than below /tmp | begins with `cd` | ... to an absolute path ",
		"| median of repositories: absolute path | ... begins with `cd` to one | fails | n |\n",
		"|---|---|---|---|---|---|---|---|---|\n")
	names, groups := c.byAgent()
	left, all := map[leaving]int{}, 0
	for _, name := range names {
		var n, abs, other, cd, cdAbs, failed, known int
		absIn, cdIn := shares{}, shares{}
		for _, s := range groups[name] {
			for _, call := range s.calls() {
				if call.Does != session.Shell || call.Command == "" {
					continue
				}
				n++
				absIn.count(s.repository, absolute.MatchString(call.Command))
				cdIn.count(s.repository, cdAbsolute.MatchString(call.Command))
				abs += count(absolute.MatchString(call.Command))
				other += count(absolute.MatchString(belowTmp.ReplaceAllString(call.Command, " ")))
				cd += count(beginsWithCd.MatchString(call.Command))
				cdAbs += count(cdAbsolute.MatchString(call.Command))
				failed, known = failed+count(call.Failed), known+count(call.HasResult)
				for _, kind := range leaves(call.Command) {
					left[kind]++
				}
			}
		}
		if all += n; n > 0 {
			fails := "not in the export"
			if failed > 0 {
				fails = fmt.Sprintf("%s of %d", percent(failed, known), known)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %d |\n", name, percent(abs, n), percent(other, n),
				percent(cd, n), percent(cdAbs, n), absIn.median(), cdIn.median(), fails, n)
		}
	}
	fmt.Fprintf(w, "\n| commands that leave files | of %d commands |\n|---|---|\n", all)
	for _, kind := range leavings {
		fmt.Fprintf(w, "| %s | %s |\n", kind, percent(left[kind], all))
	}
}

// leastCommands is how many commands a repository must have for the median of the repositories.
const leastCommands = 20

// shares counts, for each repository, how often something is so.
type shares map[string][2]int

// count counts a case of a repository.
func (s shares) count(repository string, ok bool) {
	n := s[repository]
	s[repository] = [2]int{n[0] + count(ok), n[1] + 1}
}

// median returns the median of the shares of the repositories, and how many these are.
func (s shares) median() string {
	var thousandths []int
	for _, n := range s {
		if n[1] >= leastCommands {
			thousandths = append(thousandths, n[0]*1000/n[1])
		}
	}
	if len(thousandths) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f%% of %d", float64(quantile(thousandths, 0.5))/10, len(thousandths))
}

// printPaths prints how many paths of file tools are absolute. Exports of Claude Code have shortened them.
func (c corpus) printPaths(w io.Writer) {
	fmt.Fprint(w, "\n| agent | absolute paths in calls of file tools | n |\n|---|---|---|\n")
	names, groups := c.byAgent()
	for _, name := range names {
		var abs, n int
		for _, s := range groups[name] {
			for _, call := range s.calls() {
				for _, path := range call.Paths {
					n++
					abs += count(strings.HasPrefix(path, "/") || len(path) > 2 && path[1] == ':')
				}
			}
		}
		if n > 0 && name != "Claude Code" {
			fmt.Fprintf(w, "| %s | %s | %d |\n", name, percent(abs, n), n)
		}
	}
}

// printOutcomes prints how many edits fail, and why.
func (c corpus) printOutcomes(w io.Writer) {
	fmt.Fprint(w, "\n| agent | call | fails | refused by the user | n | outcome not in the export |\n",
		"|---|---|---|---|---|---|\n")
	names, groups := c.byAgent()
	whys := map[session.Action]map[reason]int{session.Edit: {}, session.Read: {}}
	for _, name := range names {
		for _, does := range []session.Action{session.Edit, session.Write, session.Read} {
			o := outcomesOf(groups[name], does)
			for why, n := range o.reasons {
				if whys[does] != nil {
					whys[does][why] += n
				}
			}
			if n := o.done + o.failed + o.refused; n > 0 {
				fmt.Fprintf(w, "| %s | %v | %s | %s | %d | %d |\n", name, does, percent(o.failed, n),
					percent(o.refused, n), n, o.unknown)
			}
		}
	}
	for _, does := range []session.Action{session.Edit, session.Read} {
		n := 0
		for _, m := range whys[does] {
			n += m
		}
		fmt.Fprintf(w, "\n| why a call to %v fails | of %d |\n|---|---|\n", does, n)
		for _, why := range most(whys[does]) {
			fmt.Fprintf(w, "| %s | %s |\n", why, percent(whys[does][why], n))
		}
	}
}

// most returns the keys, those with the largest numbers first.
func most[K cmp.Ordered](counts map[K]int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// The tools of the table are those of several repositories: others have names that only one project knows.
const (
	leastRepositories = 3
	leastCalls        = 30
)

// printTools prints the names of tools and of their arguments.
func (c corpus) printTools(w io.Writer) {
	calls, arguments, repositories := map[string]int{}, map[string]map[string]int{}, map[string]map[string]bool{}
	for _, s := range c.sources {
		for _, call := range s.calls() {
			name := agent(s) + " | `" + call.Tool + "`"
			if arguments[name] == nil {
				arguments[name], repositories[name] = map[string]int{}, map[string]bool{}
			}
			calls[name]++
			repositories[name][s.repository] = true
			for _, argument := range call.Names {
				arguments[name][argument]++
			}
		}
	}
	fmt.Fprintf(w, "\n| agent | tool, in at least %d repositories and %d calls | calls "+
		"| arguments that the export names |\n|---|---|---|---|\n", leastRepositories, leastCalls)
	for _, name := range most(calls) {
		if len(repositories[name]) < leastRepositories || calls[name] < leastCalls {
			continue
		}
		var names []string
		for _, argument := range most(arguments[name]) {
			if arguments[name][argument]*50 >= calls[name] {
				names = append(names, "`"+argument+"`")
			}
		}
		fmt.Fprintf(w, "| %s | %d | %s |\n", name, calls[name], strings.Join(names, ", "))
	}
}
