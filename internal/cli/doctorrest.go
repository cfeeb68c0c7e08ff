package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/view"
)

const repairIt = "muster doctor --repair"

// thenRepair is what only the user can do, and then the repair.
func thenRepair(fix string) string {
	if strings.Contains(fix, repairIt) {
		return fix
	}
	return fix + ", then: " + repairIt
}

// lanes compares the index with git.
func (d *doctor) lanes(ctx context.Context, p *place, living bool) {
	lanes, err := p.theLanes(ctx)
	if err != nil {
		d.err("lanes", err)
		return
	}
	all, err := lanes.Check(ctx)
	if err != nil {
		d.err("lanes", err)
		return
	}
	bad := 0
	for _, t := range all {
		if living && t.Busy {
			continue
		}
		bad++
		if t.Fix != "" {
			if d.first == nil {
				d.first = map[muster.Name]string{}
			}
			d.first[t.Lane] = t.Fix
			d.say("lanes", "broken", fmt.Sprintf("%s: %s", t.Lane, t.Text), thenRepair(t.Fix))
		} else if t.Lane == "" {
			d.say("lanes", "broken", t.Text+"; the lanes themselves are git's and whole", repairIt+"  (finds them again from git)")
		} else {
			d.say("lanes", "broken", fmt.Sprintf("%s: %s", t.Lane, t.Text), repairIt)
		}
	}
	if list, err := lanes.ListStored(ctx); err == nil && bad == 0 && len(list) > 0 {
		d.say("lanes", "ok", view.Count(len(list), "lane")+", as git has them", "")
	}
}

// tangle is what of one task does not fit the others.
type tangle struct {
	id   muster.TaskID
	text string
	lane muster.Name // that the rest is about; "": none
}

// tangles compares each task with the graph, and finds effects that are still to settle.
func tangles(ctx context.Context, p *place) (all []tangle, err error) {
	tasks, err := p.theBoard().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		stored, err := p.theBoard().Get(ctx, t.ID)
		if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !sameIDs(stored.BlockedBy, t.BlockedBy) {
			all = append(all, tangle{t.ID, fmt.Sprintf("blockedBy says %v, by dependsOn it is %v", ids(stored.BlockedBy), ids(t.BlockedBy)), ""})
		}
		if len(stored.Effects) > 0 {
			all = append(all, tangle{t.ID, fmt.Sprintf("what follows its completion was not done: %v", stored.Effects), stored.Worktree})
		}
	}
	return all, nil
}

func ids(list []muster.TaskID) []muster.TaskID {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func sameIDs(a, b []muster.TaskID) bool { return slices.Equal(ids(a), ids(b)) }

// graph says what tangles finds. A living team mends that by itself.
func (d *doctor) graph(ctx context.Context, p *place, living bool) {
	if living {
		return
	}
	all, err := tangles(ctx, p)
	if err != nil {
		d.err("board", err)
	}
	for _, t := range all {
		fix := repairIt
		if first := d.first[t.lane]; first != "" {
			fix = thenRepair(first)
		}
		d.say("board", "broken", fmt.Sprintf("task %d: %s", t.id, t.text), fix)
	}
}

// orphans says which tasks are held by somebody who cannot work on them.
func (d *doctor) orphans(ctx context.Context, p *place, living bool) {
	tasks, err := p.theBoard().List(ctx)
	if err != nil {
		return // said by graph
	}
	for _, t := range tasks {
		if t.Owner == "" || t.Owner == muster.Lead || t.Owner == muster.User || t.Status != muster.InProgress && t.Status != muster.Landing {
			continue
		}
		m, err := p.theRoster(ctx).Get(ctx, t.Owner)
		release := fmt.Sprintf("muster task release %d", t.ID)
		switch {
		case errors.Is(err, muster.ErrNotFound):
			if known, _, err := p.theRoster(ctx).Known(ctx, t.Owner); err == nil && !known {
				d.say("board", "note", fmt.Sprintf("task %d is held by %s, who is not in the team", t.ID, view.OneLine(string(t.Owner))), release)
			}
		case err != nil:
		case m.Status == muster.Shutdown:
			d.say("board", "note", fmt.Sprintf("task %d is held by %s, who has shut down", t.ID, m.Name), release)
		case m.Host != "" && !living:
			d.say("board", "note", fmt.Sprintf("task %d is held by %s, whose process is dead and was followed by none", t.ID, m.Name), "muster resume, or: "+release)
		}
	}
}

// aside lists what was set aside, with its place.
func (d *doctor) aside(dir paths.Dir) {
	for _, pattern := range []string{filepath.Join(dir.Inbox(), "*.rejected.jsonl"), filepath.Join(dir.Inbox(), "*.torn"),
		filepath.Join(dir.Tasks(), "*.torn"), filepath.Join(dir.Team(), "*.torn"), filepath.Join(dir.Worktrees(), "*.torn"), filepath.Join(dir.Transcripts(), "*", "*.torn")} {
		files, _ := filepath.Glob(pattern) // the patterns are ours
		for _, path := range files {
			if data, _, err := durable.New(durable.OS{}).ReadFile(path); err == nil && len(data) > 0 {
				n := bytes.Count(data, []byte("\n"))
				was := "was"
				if n > 1 {
					was = "were"
				}
				d.say("aside", "note", fmt.Sprintf("%s has %s that %s set aside", shortened(dir, path), view.Count(n, "line"), was), "")
			}
		}
	}
	kept, err := os.ReadDir(filepath.Join(dir.Team(), corruption.Table))
	if err == nil && len(kept) > 0 {
		d.say("aside", "note", view.Count(len(kept), "damaged file")+" that muster replaced lie in .team/"+corruption.Table, "")
	}
}

// young is how long a temporary file may belong to a process that lives.
const young = time.Minute

// temporaries are the files that killed processes left half written.
func temporaries(dir paths.Dir) (all []string) {
	for _, root := range []string{dir.Tasks(), dir.Team(), dir.Transcripts(), dir.Worktrees()} {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case e.IsDir() && (path == dir.Scratch() || path == dir.Outputs() || filepath.Dir(path) == dir.Worktrees()):
				return fs.SkipDir // the members' own files
			case e.Type().IsRegular() && durable.IsTemporary(e.Name()):
				if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) > young {
					all = append(all, path)
				}
			}
			return nil
		})
	}
	return all
}

// leftovers says how many of them there are.
func (d *doctor) leftovers(dir paths.Dir) {
	all := temporaries(dir)
	if len(all) == 0 {
		return
	}
	var places []string
	for _, path := range all {
		places = append(places, shortened(dir, filepath.Dir(path)))
	}
	slices.Sort(places)
	d.say("leftovers", "note", view.Count(len(all), "temporary file")+" of killed processes in "+strings.Join(slices.Compact(places), ", "), repairIt)
}
