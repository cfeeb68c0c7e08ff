// Command habits prints what coding agents do in public sessions, in numbers and shapes:
//
//	go -C bench run ./habits DIRECTORY
//
// DIRECTORY has one directory for each repository, with the files of its .specstory/history. With -replay GITS the
// calls are sent through muster's tools instead: GITS/NAME/repo is the bare git directory of the repository whose
// sessions are in DIRECTORY/NAME. README.md says what the figures mean and what they were.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/bench/habits/session"
)

func main() {
	gits := flag.String("replay", "", "directory with the git directories of the repositories")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: habits [-replay GITS] DIRECTORY")
		os.Exit(2)
	}
	all, err := load(flag.Arg(0))
	switch {
	case err != nil:
	case *gits != "":
		err = all.replay(context.Background(), *gits, os.Stdout)
	default:
		all.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "habits:", err)
		os.Exit(1)
	}
}

// source is a session with the repository that has it.
type source struct {
	session.Session
	repository string
	start      time.Time // the zero time if neither the export nor its name has it
}

// corpus is what was read.
type corpus struct {
	files    int // with or without calls
	repeated int // sessions that another file or another repository has too
	sources  []source
	known    map[string]int // the index of each source, by its id
}

// load reads the exports below a directory.
func load(dir string) (c corpus, err error) {
	c.known = map[string]int{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		c.files++
		repository, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		s := source{Session: session.Parse(string(data)), repository: repository}
		if s.start = s.Start; s.start.IsZero() {
			s.start = startIn(filepath.Base(path))
		}
		c.add(s)
		return nil
	})
	return c, err
}

// nameTime is the time at which a session began, in the name of its file.
var nameTime = regexp.MustCompile(`\d{4}-\d\d-\d\d_\d\d-\d\d(-\d\d)?Z`)

// startIn returns the time in the name of a file.
func startIn(name string) time.Time {
	for _, layout := range []string{"2006-01-02_15-04-05Z", "2006-01-02_15-04Z"} {
		if t, err := time.Parse(layout, nameTime.FindString(name)); err == nil {
			return t
		}
	}
	return time.Time{}
}

// add adds a session that has calls. Of two exports of one session the longer one counts: some were made before the
// session had ended. A session whose export has no id is known by its first call.
func (c *corpus) add(s source) {
	calls := s.calls()
	if len(calls) == 0 {
		return
	}
	id := s.ID
	if id == "" {
		id = fmt.Sprintf("%q %q %q", s.Events[0].Text, calls[0].Paths, calls[0].Command+calls[0].Result)
	}
	i, ok := c.known[id]
	if !ok {
		c.known[id] = len(c.sources)
		c.sources = append(c.sources, s)
		return
	}
	c.repeated++
	if len(calls) > len(c.sources[i].calls()) {
		c.sources[i] = s
	}
}

// calls returns the calls of a session.
func (s source) calls() (calls []*session.Call) {
	for _, e := range s.Events {
		if e.Call != nil {
			calls = append(calls, e.Call)
		}
	}
	return calls
}

// repositories returns the number of repositories with a session that ok accepts.
func (c corpus) repositories(ok func(source) bool) int {
	var names []string
	for _, s := range c.sources {
		if ok(s) {
			names = append(names, s.repository)
		}
	}
	slices.Sort(names)
	return len(slices.Compact(names))
}
