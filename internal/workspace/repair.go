package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/text"
)

// Repair restores what can be restored, and returns what it has done. It keeps what it replaces. What would disturb a
// living team is refused. A Check after it tells what is left.
func (w *Workspace) Repair(ctx context.Context) Findings {
	d := &doctor{w: w}
	if !w.HasState() {
		d.Add("repair", Healthy, "there is no team here, and nothing to repair", "")
		return d.Findings
	}
	err := w.PrepareChange(ctx)
	if err == nil {
		d.hosts, err = w.Roster(ctx).Hosts(ctx)
	}
	if err != nil {
		d.AddError("repair", err)
		return d.Findings
	}
	// First the temporary files: they take the space that the other repairs may need. An error of one repair does not
	// keep the next one from what it can do.
	d.removeTemporaries()
	for _, repair := range []func(context.Context) error{d.repairConfig, d.repairBoard, d.repairLanes} {
		if err := repair(ctx); err != nil {
			d.AddError("repair", err)
		}
	}
	if len(d.Findings) == 0 {
		d.Add("repair", Healthy, "nothing had to be repaired", "")
	}
	return d.Findings
}

// mended adds what was mended.
func (d *doctor) mended(format string, args ...any) {
	d.Add("repair", Mended, fmt.Sprintf(format, args...), "")
}

// refuse says what is not repaired because it would disturb a living team.
func (d *doctor) refuse(what, why string) {
	var pids []string
	for _, h := range d.hosts {
		pids = append(pids, strconv.Itoa(h.PID))
	}
	d.Add("repair", Broken, fmt.Sprintf("%s: %s; not while the team lives (pid %s)", what, why,
		strings.Join(pids, ", ")), "stop it (muster stop), then: "+repairCommand)
}

// RemoveTemporaries removes what killed processes left half written among the team's files, and returns how many files
// that were. A process that begins to host members calls it.
func RemoveTemporaries(dir paths.Dir) (removed int, err error) {
	files := durable.New(durable.OS{Root: string(dir)})
	for _, path := range temporaries(dir) {
		if err := files.Remove(path); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// removeTemporaries removes what killed processes left half written. A file that was not renamed was never promised
// to anybody.
func (d *doctor) removeTemporaries() {
	n, err := RemoveTemporaries(d.w.Paths())
	if n > 0 {
		d.mended("%s of killed processes removed: nothing depends on them", text.Count(n, "temporary file"))
	}
	if err != nil {
		d.AddError("repair", err)
	}
}

// repairConfig has the roster write a config.json anew that cannot be read.
func (d *doctor) repairConfig(ctx context.Context) error {
	path := filepath.Join(d.w.Paths().Team(), "config.json")
	if !exists(path) || d.read(path, readObject) == nil {
		return nil
	}
	if err := d.w.Roster(ctx).Project(ctx); err != nil {
		return err
	}
	d.mended(".team/config.json written anew from the members; what it was is in .team/%s: "+
		"members that other programs wrote are only there", corruption.Table)
	return nil
}

// repairBoard lets the board make itself whole, and tells what it has mended.
func (d *doctor) repairBoard(ctx context.Context) error {
	b := d.w.Board()
	// What was mended is the difference between two checks: the board repairs itself without saying what.
	before, err := b.Check(ctx)
	if err != nil {
		return err
	}
	meta := filepath.Join(d.w.Paths().Tasks(), "meta.json")
	wasDamaged := exists(meta) && d.read(meta, readAs[metaFile]) != nil
	if err := b.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
		return err
	} else if err != nil {
		d.Add("repair", Note, muster.PlainText(err), muster.HintOf(err))
	}
	if wasDamaged && d.read(meta, readAs[metaFile]) == nil {
		d.mended(".tasks/meta.json written anew from the tasks and the events; what it was is in .team/%s",
			corruption.Table)
	}
	after, err := b.Check(ctx)
	for _, f := range before {
		if err == nil && !slices.Contains(after, f) {
			d.mended("task %d, where %s", f.Task, f.Text)
		}
	}
	return err
}

// repairLanes finishes or undoes what a crash has left half done, and finds lanes again from git.
func (d *doctor) repairLanes(ctx context.Context) error {
	lanes, err := d.w.Lanes(ctx)
	if err != nil {
		return err
	}
	removed, _ := lanes.CheckDirs.RemoveAbandoned() // what cannot be removed now is found again
	for _, dir := range removed {
		d.mended("removed %s, which a killed check left", dir)
	}
	// A lane that looks half made may be in the making by a process that is alive.
	if d.isAlive() {
		found, err := lanes.Check(ctx)
		for _, f := range found {
			if !f.Busy && f.Fix == "" {
				d.refuse("lane "+string(f.Lane), f.Text)
			}
		}
		return err
	}
	done, err := lanes.Repair(ctx)
	for _, f := range done {
		if f.Lane == "" {
			d.mended("the lanes' index %s", f.Done)
		} else {
			d.mended("lane %s, where %s: %s", f.Lane, f.Text, f.Done)
		}
	}
	return err
}
