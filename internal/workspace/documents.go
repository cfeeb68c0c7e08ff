package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/text"
)

// documentKind is a kind of state file: where it lies, how it reads, and what is lost without it. The last is empty
// for what can be made again from the others.
type documentKind struct {
	dir, pattern string
	read         func([]byte) error
	lost         string
}

// metaFile is what the board reads of meta.json: its types decide whether the board can use the file.
type metaFile struct {
	NextID int               `json:"next_id"`
	Edges  int               `json:"edges"`
	Adding []json.RawMessage `json:"adding"`
}

// readAs reads a file as a T.
func readAs[T any](data []byte) error {
	var v T
	return json.Unmarshal(data, &v)
}

var readObject = readAs[map[string]json.RawMessage]

// documentKinds returns the kinds of documents, in the order in which they are reported.
func documentKinds(dir paths.Dir) []documentKind {
	return []documentKind{
		{dir.Tasks(), "task_*.json", readAs[muster.Task], "the task is lost then"},
		{dir.Tasks(), "meta.json", readAs[metaFile], ""},
		{dir.Members(), "*.json", readAs[muster.Member],
			"the member is unknown then, its conversation stays"},
		{dir.Requests(), "*.json", readAs[muster.Request], "the question is lost then"},
		{dir.Team(), "run.json", readAs[muster.Run], "the goal of the last run is forgotten then"},
		{dir.Team(), "config.json", readObject, ""},
	}
}

// documents reads every document, and names each one that cannot be read.
func (d *doctor) documents() {
	total, before := 0, len(d.Findings)
	for _, kind := range documentKinds(d.w.Paths()) {
		files := durable.Glob(kind.dir, kind.pattern)
		total += len(files)
		for _, path := range files {
			err := d.read(path, kind.read)
			if err == nil {
				continue
			}
			name := Relative(d.w, path)
			// What can be made again from other documents is repaired. What cannot is left for people, who may know
			// what it said: the repair never decides that something is lost.
			fix := repairCommand + "  (it is kept, and written anew)"
			switch {
			case errors.Is(err, os.ErrPermission):
				fix = "it belongs to another user: make it yours (chown, as root)"
			case kind.lost != "":
				fix = fmt.Sprintf("mend it, or move it away: mv %[1]s %[1]s.broken  (%[2]s)", name, kind.lost)
			}
			const text = "%s cannot be read: %s; everything else goes on"
			d.Add("state", Broken, fmt.Sprintf(text, name, muster.PlainText(err)), fix)
		}
	}
	if len(d.Findings) == before && total > 0 {
		d.Add("state", Healthy, text.Count(total, "file")+" can be read", "")
	}
}

// read returns why a document cannot be read.
func (d *doctor) read(path string, read func([]byte) error) error {
	data, _, err := stateFiles(d.w).ReadFile(path)
	// The name of the file is in the finding already.
	if p, is := errors.AsType[*os.PathError](err); is {
		return p.Err
	}
	if err != nil {
		return err
	}
	if line := text.BadLine(data); line > 0 {
		return fmt.Errorf("line %d is not UTF-8", line)
	}
	return read(muster.TrimBOM(data))
}

// temporaries returns the files that killed processes left half written.
func temporaries(dir paths.Dir) (all []string) {
	excluded := filepath.Join(string(dir), ".git", "info") // where info/exclude is written
	for _, root := range []string{dir.Tasks(), dir.Team(), dir.Transcripts(), dir.Worktrees(), excluded} {
		// What cannot be looked at is skipped: the walk function returns no error but SkipDir.
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if e.IsDir() && (path == dir.Scratch() || path == dir.Outputs() || filepath.Dir(path) == dir.Worktrees()) {
				return fs.SkipDir // the members' own files
			}
			if e.Type().IsRegular() && durable.IsTemporary(e.Name()) {
				if fi, err := e.Info(); err == nil && durable.IsAbandoned(e.Name(), fi.ModTime()) {
					all = append(all, path)
				}
			}
			return nil
		})
	}
	return all
}
