package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"muster"
	"muster/internal/home"
	"muster/internal/view"
)

// document is a kind of state file: where it lies, how it reads, and what is lost without it.
type document struct {
	pattern string
	read    func([]byte) error
	lost    string
}

// as reads a file as a T.
func as[T any](data []byte) error {
	var v T
	return json.Unmarshal(data, &v)
}

// state reads every document, and names each one that cannot be read.
func (d *doctor) state(ctx context.Context, dir home.Dir) {
	object := as[map[string]json.RawMessage]
	read, bad := 0, 0
	for _, k := range []document{
		{filepath.Join(dir.Tasks(), "task_*.json"), as[muster.Task], "the task is lost then"},
		{filepath.Join(dir.Tasks(), "meta.json"), object, "it is written again when it is needed"},
		{filepath.Join(dir.Members(), "*.json"), as[muster.Member], "the member is unknown then, its conversation stays"},
		{filepath.Join(dir.Requests(), "*.json"), as[muster.Request], "the question is lost then"},
		{filepath.Join(dir.Hosts(), "*.json"), object, "it is written again by the next process"},
		{filepath.Join(dir.Team(), "run.json"), as[muster.Run], "the goal of the last run is forgotten then"},
		{filepath.Join(dir.Team(), "config.json"), object, "it is written again from the members"},
		{dir.Index(), object, "lanes are found again from git"},
	} {
		files, err := filepath.Glob(k.pattern)
		if err != nil {
			d.err("state", err)
			continue
		}
		slices.Sort(files)
		for _, path := range files {
			read++
			if err := readable(path, k.read); err != nil {
				bad++
				short := shortened(dir, path)
				d.say("state", "broken", fmt.Sprintf("%s cannot be read: %v", short, err),
					fmt.Sprintf("mend it, or move it away: mv %[1]s %[1]s.broken  (%[2]s)", short, k.lost))
			}
		}
	}
	if n := d.journal(ctx); n > 0 {
		d.say("events", "note", view.Count(n, "line")+" cannot be read: the others can, and nothing depends on them", "")
	}
	if bad == 0 && read > 0 {
		d.say("state", "ok", view.Count(read, "file")+" can be read", "")
	}
}

// readable reports why a document cannot be read.
func readable(path string, read func([]byte) error) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !utf8.Valid(data) {
		line := 1 + strings.Count(string(data[:invalidAt(data)]), "\n")
		return fmt.Errorf("line %d is not UTF-8", line)
	}
	return read(data)
}

// invalidAt is the place of the first byte that is not UTF-8.
func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return at
}

// journal counts the events that cannot be read.
func (d *doctor) journal(ctx context.Context) (bad int) {
	p, err := d.app.look(ctx)
	if err != nil {
		return 0
	}
	defer p.close()
	for _, err := range p.journal.Read(ctx, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
			bad++
		case err != nil:
			d.err("events", err)
			return bad
		}
	}
	return bad
}

// shortened is a path as it is typed from the repository's root.
func shortened(dir home.Dir, path string) string {
	if rel, err := filepath.Rel(string(dir), path); err == nil {
		return rel
	}
	return path
}
