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
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/roster"
	"muster/internal/view"
)

// document is a kind of state file: where it lies, how it reads, and what is lost without it ("": nothing, it can be
// made again).
type document struct {
	pattern string
	read    func([]byte) error
	lost    string
}

// object reads a file as any JSON object.
var object = as[map[string]json.RawMessage]

// metaFile is what the board reads of meta.json.
type metaFile struct {
	NextID int               `json:"next_id"`
	Edges  int               `json:"edges"`
	Adding []json.RawMessage `json:"adding"`
}

// as reads a file as a T.
func as[T any](data []byte) error {
	var v T
	return json.Unmarshal(data, &v)
}

// state reads every document, and names each one that cannot be read.
func (d *doctor) state(ctx context.Context, dir paths.Dir) {
	read, bad := 0, 0
	for _, k := range []document{
		{filepath.Join(dir.Tasks(), "task_*.json"), as[muster.Task], "the task is lost then"},
		{filepath.Join(dir.Tasks(), "meta.json"), as[metaFile], ""},
		{filepath.Join(dir.Members(), "*.json"), as[muster.Member], "the member is unknown then, its conversation stays"},
		{filepath.Join(dir.Requests(), "*.json"), as[muster.Request], "the question is lost then"},
		{filepath.Join(dir.Hosts(), "*.json"), as[roster.Process], ""},
		{filepath.Join(dir.Team(), "run.json"), as[muster.Run], "the goal of the last run is forgotten then"},
		{filepath.Join(dir.Team(), "config.json"), object, ""},
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
				fix := repairIt + "  (it is kept, and written anew)"
				switch {
				case errors.Is(err, os.ErrPermission):
					fix = "it belongs to another user: make it yours (chown, as root)"
				case k.lost != "":
					fix = fmt.Sprintf("mend it, or move it away: mv %[1]s %[1]s.broken  (%[2]s)", short, k.lost)
				}
				d.say("state", "broken", fmt.Sprintf("%s cannot be read: %v; everything else goes on", short, err), fix)
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

// readable reports why a document cannot be read. One that another program may be writing is looked at twice.
func readable(path string, read func([]byte) error) error {
	err := readOnce(path, read)
	if err != nil {
		time.Sleep(corruption.HalfWritten)
		err = readOnce(path, read)
	}
	return err
}

func readOnce(path string, read func([]byte) error) error {
	data, _, err := durable.New(durable.OS{}).ReadFile(path)
	if err != nil {
		if p, is := errors.AsType[*os.PathError](err); is {
			err = p.Err
		}
		return err
	}
	if !utf8.Valid(data) {
		line := 1 + strings.Count(string(data[:invalidAt(data)]), "\n")
		return fmt.Errorf("line %d is not UTF-8", line)
	}
	return read(muster.Unmarked(data))
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
func shortened(dir paths.Dir, path string) string {
	if rel, err := filepath.Rel(string(dir), path); err == nil {
		return rel
	}
	return path
}
