package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/bench/habits/replay"
	"muster/bench/habits/session"
)

// replayed are the results of all sessions.
type replayed struct {
	unavailable map[string]int // sessions, by the reason
	sessions    int
	gits        map[string]bool // the repositories
	commands    int             // that were not run
	verdicts    map[string]map[replay.Verdict]int
	refusals    map[string]int
	others      map[string]int   // tools whose calls were done with another meaning
	distances   map[string][]int // by agent
}

// replay replays the sessions of the corpus and prints what became of their calls.
func (c corpus) replay(ctx context.Context, gits string, w io.Writer) error {
	r := replayed{unavailable: map[string]int{}, gits: map[string]bool{}, verdicts: map[string]map[replay.Verdict]int{},
		refusals: map[string]int{}, others: map[string]int{}, distances: map[string][]int{}}
	for _, s := range c.sources {
		if err := r.session(ctx, s, filepath.Join(gits, s.repository, "repo")); err != nil {
			return fmt.Errorf("%s, session %s: %w", s.repository, s.ID, err)
		}
	}
	r.print(w)
	return nil
}

// session replays a session in a directory of its own.
func (r *replayed) session(ctx context.Context, s source, gitDir string) error {
	if s.start.IsZero() {
		r.unavailable["the export does not say when it began"]++
		return nil
	}
	if _, err := os.Stat(gitDir); err != nil {
		r.unavailable["the repository could not be fetched"]++
		return nil
	}
	dir, err := os.MkdirTemp("", "habits-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	report, err := replay.Session(ctx, s.Session, agent(s), s.start, gitDir, dir)
	if replay.IsNone(err) {
		r.unavailable["the stored history has no commit from before the session"]++
		return nil
	}
	if err != nil {
		return err
	}
	r.sessions++
	r.gits[s.repository] = true
	r.commands += report.Commands
	r.distances[agent(s)] = append(r.distances[agent(s)], report.Distances...)
	for _, o := range report.Outcomes {
		does := o.Call.Does.String()
		if r.verdicts[does] == nil {
			r.verdicts[does] = map[replay.Verdict]int{}
		}
		r.verdicts[does][o.Verdict]++
		if o.Verdict == replay.Other {
			r.others[agent(s)+" | `"+o.Call.Tool+"` with "+strings.Join(slices.Sorted(maps.Keys(o.Call.Args)), ", ")]++
		}
		if o.Verdict == replay.Refused {
			kind := replay.Kind(o.Said)
			if strings.HasPrefix(kind, "no tool") {
				kind += ": `" + o.Call.Tool + "`"
			}
			r.refusals[does+" | "+kind]++
		}
	}
	return nil
}

// print prints the results.
func (r *replayed) print(w io.Writer) {
	fmt.Fprintf(w, "%d sessions of %d repositories were replayed; %d commands in them were not run. Not available:\n\n",
		r.sessions, len(r.gits), r.commands)
	for _, why := range most(r.unavailable) {
		fmt.Fprintf(w, "- %d sessions: %s\n", r.unavailable[why], why)
	}
	shown := []replay.Verdict{replay.Same, replay.Cut, replay.Done, replay.Other, replay.Refused, replay.AsBefore,
		replay.Drifted, replay.NoArguments, replay.Unplaced}
	fmt.Fprint(w, "\n| call")
	for _, v := range shown {
		fmt.Fprintf(w, " | %s", v)
	}
	fmt.Fprintf(w, " | n |\n|---%s|\n", strings.Repeat("|---", len(shown)+1))
	for _, does := range []session.Action{session.Read, session.Search, session.Edit, session.Write} {
		counts, n := r.verdicts[does.String()], 0
		fmt.Fprintf(w, "| %v", does)
		for _, v := range shown {
			fmt.Fprintf(w, " | %d", counts[v])
			n += counts[v]
		}
		fmt.Fprintf(w, " | %d |\n", n)
	}
	fmt.Fprint(w, "\n| refused call | why | calls |\n|---|---|---|\n")
	for _, kind := range most(r.refusals) {
		fmt.Fprintf(w, "| %s | %d |\n", kind, r.refusals[kind])
	}
	if len(r.others) > 0 {
		fmt.Fprint(w, "\n| agent | done with another meaning | calls |\n|---|---|---|\n")
		for _, tool := range most(r.others) {
			fmt.Fprintf(w, "| %s | %d |\n", tool, r.others[tool])
		}
	}
	fmt.Fprint(w, "\n| tokens of results from the last read of a file to its edit, with the read | median | 75% | 90% ",
		"| 95% | 99% | n |\n|---|---|---|---|---|---|---|\n")
	var all []int
	for _, name := range []string{"Claude Code", "Cursor", "Copilot", "Codex", "Gemini"} {
		all = append(all, r.distances[name]...)
		fmt.Fprint(w, spread(name, r.distances[name]))
	}
	fmt.Fprint(w, spread("all", all))
}
