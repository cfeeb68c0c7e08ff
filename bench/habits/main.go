// Command habits prints what coding agents do in public sessions, in numbers and shapes:
//
//	go -C bench run ./habits DIRECTORY
//
// DIRECTORY has one directory for each repository, with the files of its .specstory/history. README.md says what the
// figures mean and what they were.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/bench/habits/session"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: habits DIRECTORY")
		os.Exit(2)
	}
	all, err := load(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "habits:", err)
		os.Exit(1)
	}
	all.print(os.Stdout)
}

// source is a session with the repository that has it.
type source struct {
	session.Session
	repository string
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
		c.add(source{session.Parse(string(data)), repository})
		return nil
	})
	return c, err
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
