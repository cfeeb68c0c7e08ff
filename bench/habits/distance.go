package main

import (
	"path"
	"strconv"
	"strings"
	"time"

	"muster/bench/habits/session"
	"muster/internal/compact"
	"muster/internal/shellcommands"
)

// sameTurn is the longest time between the results of two calls that are taken to be of one turn, if nothing was said
// between them. An export does not say which calls came together.
const sameTurn = time.Second

// unchanged begins a result of a read that does not have the file.
const unchanged = "File unchanged since last read"

// distance is how much lies between the last read of a file and its edit.
type distance struct {
	results int // tokens of the results of calls between the two
	own     int // of the result of the read
	all     int // of results, words, and what the export has of the arguments
	turns   int
	timed   bool // turns is known
	first   bool // no edit of the file came between the two
	before  int  // of all, from the beginning or the last summary to the edit
}

// origin says how the model can know a file that it edits.
type origin int

// The origins, from the best. Each is that of an edit to which none before it applies.
const (
	byRead    origin = iota // a read, since the last summary
	byCommand               // a command such as cat or sed
	byOwnEdit               // it wrote the file itself, and has not read it
	bySummary               // a read before the last summary
	byNothing               // nothing that the export shows
	origins
)

// reading is a read of a file.
type reading struct {
	file              string
	results, own      int // tokens before it, and its own
	all, turns, phase int
	edited            bool
}

// talk is what is known of a conversation up to an event.
type talk struct {
	results, all, turns, phase int
	timed                      bool
	last                       session.Event
	reads, shown, written      []reading
	distances                  []distance
	origins                    [origins]int
	perTurn                    []int // calls of each turn
	firstEdit                  int   // turns before the first edit; -1: none
	callsBefore, readsBefore   int   // calls and reads before the first edit
	largest                    int   // tokens of results between two summaries, at most
	sizes                      []int // tokens of each read
}

// follow goes through the events of the agent's conversation. Those of subagents are left out.
func follow(s session.Session) *talk {
	t := &talk{timed: true, firstEdit: -1}
	for _, e := range s.Events {
		if !e.Side {
			t.event(e)
		}
	}
	return t
}

// event takes the next event.
func (t *talk) event(e session.Event) {
	defer func() { t.last = e }()
	if e.IsSummary() {
		t.phase++
		t.results, t.all = 0, 0
	}
	if e.Kind != session.Use {
		t.all += compact.TextTokens(e.Text)
		return
	}
	together := t.last.Kind == session.Use && !e.Time.IsZero() && e.Time.Sub(t.last.Time).Abs() <= sameTurn
	if e.Time.IsZero() {
		t.timed = false
	}
	if !together {
		t.turns++
		t.perTurn = append(t.perTurn, 0)
	}
	t.perTurn[len(t.perTurn)-1]++
	t.call(e.Call)
}

// call takes a call.
func (t *talk) call(c *session.Call) {
	at := reading{results: t.results, own: tokens(c), all: t.all, turns: t.turns, phase: t.phase}
	switch c.Does {
	case session.Read:
		if c.HasResult && !c.Failed && !strings.HasPrefix(strings.TrimSpace(c.Result), unchanged) {
			t.sizes = append(t.sizes, at.own)
			for _, file := range c.Paths {
				at.file = file
				t.reads = append(t.reads, at)
			}
		}
	case session.Shell:
		for _, file := range shownFiles(c.Command) {
			at.file = file
			t.shown = append(t.shown, at)
		}
	case session.Edit, session.Write:
		if t.firstEdit < 0 {
			t.firstEdit = t.turns - 1
		}
		if !c.Failed && !c.Refused {
			for _, file := range c.Paths {
				at.file = file
				t.edit(at, c.Does)
				t.written = append(t.written, at)
			}
		}
	}
	if t.firstEdit < 0 {
		t.callsBefore++
		t.readsBefore += count(c.Does == session.Read)
	}
	t.results += at.own
	t.all += at.own + compact.TextTokens(c.Command)
	for _, value := range c.Args {
		t.all += compact.TextTokens(value)
	}
	t.largest = max(t.largest, t.results)
}

// edit notes how far back the last read of a file is. A file that is written as a whole counts if it was read.
func (t *talk) edit(now reading, does session.Action) {
	read, shown, written := newest(t.reads, now.file), newest(t.shown, now.file), newest(t.written, now.file)
	if does == session.Write && read == nil {
		return
	}
	switch {
	case read != nil && read.phase == now.phase:
		t.origins[byRead]++
		t.distances = append(t.distances, distance{results: now.results - read.results - read.own, own: read.own,
			all: now.all - read.all - read.own, turns: now.turns - read.turns, timed: t.timed,
			first: !read.edited, before: now.all})
		read.edited = true
	case shown != nil && shown.phase == now.phase:
		t.origins[byCommand]++
	case written != nil && written.phase == now.phase:
		t.origins[byOwnEdit]++
	case read != nil:
		t.origins[bySummary]++
	default:
		t.origins[byNothing]++
	}
}

// tokens returns about how many tokens the model got as the result.
func tokens(c *session.Call) int {
	if n, ok := c.Cut(); ok {
		if n, err := strconv.Atoi(n); err == nil {
			return n
		}
	}
	return compact.TextTokens(c.Result)
}

// newest returns the newest reading of a file. Exports name a file sometimes below the working directory and sometimes
// by its whole path.
func newest(all []reading, file string) *reading {
	for i := len(all) - 1; i >= 0; i-- {
		if same(all[i].file, file) {
			return &all[i]
		}
	}
	return nil
}

// same reports whether two paths can name one file: the shorter one is the end of the other one.
func same(a, b string) bool {
	a, b = plain(a), plain(b)
	return a != "" && b != "" && (a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a))
}

// plain returns a path with slashes, without a dot at its beginning.
func plain(p string) string {
	return strings.TrimPrefix(path.Clean(strings.ReplaceAll(p, `\`, "/")), "./")
}

// showing are the programs that print the files which they are given.
var showing = map[string]bool{"cat": true, "sed": true, "head": true, "tail": true, "nl": true, "less": true,
	"bat": true, "awk": true, "type": true, "Get-Content": true}

// shownFiles returns what may be files in the commands that print files.
func shownFiles(command string) (files []string) {
	if command == "" {
		return nil
	}
	for _, c := range shellcommands.Parse(command).Commands {
		if len(c.Words) == 0 {
			continue
		}
		if name, ok := c.Words[0].Base(); !ok || !showing[name] {
			continue
		}
		for _, w := range c.Words[1:] {
			if w.IsKnown() && strings.ContainsAny(w.Text, "./") && !strings.HasPrefix(w.Text, "-") {
				files = append(files, w.Text)
			}
		}
	}
	return files
}
