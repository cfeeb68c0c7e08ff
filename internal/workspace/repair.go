package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/roster"
	"muster/internal/view"
)

// repairer gathers what a repair does. Each of its methods does one kind of repair, any number of times: what a killed
// repair has left is done by the next.
type repairer struct {
	Findings
	w     *Workspace
	hosts []roster.HostRecord // processes of the team that are alive
}

// Repair restores what can be restored, and returns what it has done. It keeps what it replaces. What would disturb a
// living team is refused. A Check after it tells what is left.
func (w *Workspace) Repair(ctx context.Context) Findings {
	r := &repairer{w: w}
	if !w.HasState() {
		r.Add("repair", Healthy, "there is no team here, and nothing to repair", "")
		return r.Findings
	}
	err := w.PrepareChange(ctx)
	if err == nil {
		r.hosts, err = w.Roster(ctx).Hosts(ctx)
	}
	if err != nil {
		r.AddError("repair", err)
		return r.Findings
	}
	// First the temporary files: they take the space that the other repairs may need. An error of one repair does not
	// keep the next one from what it can do.
	r.removeTemporaries()
	for _, repair := range []func(context.Context) error{r.repairHosts, r.repairConfig, r.repairBoard, r.repairLanes} {
		if err := repair(ctx); err != nil {
			r.AddError("repair", err)
		}
	}
	if len(r.Findings) == 0 {
		r.Add("repair", Healthy, "nothing had to be repaired", "")
	}
	return r.Findings
}

// mended adds what was mended.
func (r *repairer) mended(format string, args ...any) {
	r.Add("repair", Mended, fmt.Sprintf(format, args...), "")
}

// refuse says what is not repaired because it would disturb a living team.
func (r *repairer) refuse(what, why string) {
	var pids []string
	for _, h := range r.hosts {
		pids = append(pids, strconv.Itoa(h.PID))
	}
	r.Add("repair", Broken, fmt.Sprintf("%s: %s; not while the team lives (pid %s)", what, why,
		strings.Join(pids, ", ")), "stop it (Ctrl-C where it runs), then: "+repairCommand)
}

// removeTemporaries removes what killed processes left half written. A file that was not renamed was never promised
// to anybody.
func (r *repairer) removeTemporaries() {
	files := durable.New(durable.OS{})
	all := temporaries(r.w.Paths())
	for _, path := range all {
		if err := files.Remove(path); err != nil {
			r.AddError("repair", err)
			return
		}
	}
	if len(all) > 0 {
		r.mended("%s of killed processes removed: nothing had been promised of them",
			view.Count(len(all), "temporary file"))
	}
}

// repairHosts writes the documents of hosts anew that cannot be read. It disturbs no host that is alive.
func (r *repairer) repairHosts(ctx context.Context) error {
	slots, err := r.w.Roster(ctx).MendHosts(ctx)
	for _, s := range slots {
		r.mended(".team/hosts/%s.json written anew; what it was is in .team/%s", s, corruption.Table)
	}
	return err
}

// repairConfig writes config.json anew from the members when it cannot be read, and when a repair was killed after it
// had put the damaged one aside.
func (r *repairer) repairConfig(ctx context.Context) error {
	path := filepath.Join(r.w.Paths().Team(), "config.json")
	_, err := os.Stat(path)
	isMissing := errors.Is(err, os.ErrNotExist)
	kept := ""
	// The names have the time, so the greatest is that of the file that was replaced last.
	if all, _ := filepath.Glob(filepath.Join(r.w.Paths().Team(), corruption.Table, "config.json.*")); len(all) > 0 {
		kept = slices.Max(all)
	}
	// Missing without a kept one means that the team never had it, and a roster writes it when it is needed.
	if isMissing && kept == "" || !isMissing && readTwice(path, readObject) == nil {
		return nil
	}
	// A living team writes the file whenever a member changes, also between two steps of this repair.
	if len(r.hosts) > 0 {
		if !isMissing { // a living team writes a missing one by itself
			r.refuse(".team/config.json", "it cannot be read")
		}
		return nil
	}
	if !isMissing {
		// It fails. It is called because it tells the lead what is damaged.
		_ = r.w.Roster(ctx).Project(ctx)
		kept = filepath.Join(r.w.Paths().Team(), corruption.Table,
			filepath.Base(path)+"."+r.w.options.Clock.Now().UTC().Format("20060102T150405.000000000Z"))
		if err := durable.New(durable.OS{}).Rename(path, kept); err != nil {
			return err
		}
	}
	if err := r.w.Roster(ctx).Project(ctx); err != nil {
		return err
	}
	r.mended(".team/config.json written anew from the members; what it was is %s: "+
		"members that other programs wrote are only there", r.w.Relative(kept))
	return nil
}

// repairBoard lets the board make itself whole, and tells what it has mended.
func (r *repairer) repairBoard(ctx context.Context) error {
	b := r.w.Board()
	// What was mended is the difference between two checks: the board repairs itself without saying what.
	before, err := b.Check(ctx)
	if err != nil {
		return err
	}
	meta := filepath.Join(r.w.Paths().Tasks(), "meta.json")
	wasDamaged := exists(meta) && readTwice(meta, readAs[metaFile]) != nil
	if err := b.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
		return err
	} else if err != nil {
		r.Add("repair", Note, err.Error(), muster.HintOf(err))
	}
	if wasDamaged && readTwice(meta, readAs[metaFile]) == nil {
		r.mended(".tasks/meta.json written anew from the tasks and the events; what it was is in .team/%s",
			corruption.Table)
	}
	after, err := b.Check(ctx)
	for _, f := range before {
		if err == nil && !slices.Contains(after, f) {
			r.mended("task %d, where %s", f.Task, f.Text)
		}
	}
	return err
}

// repairLanes finishes or undoes what a crash has left half done, and finds lanes again from git.
func (r *repairer) repairLanes(ctx context.Context) error {
	lanes, err := r.w.Lanes(ctx)
	if err != nil {
		return err
	}
	removed, _ := lanes.CheckDirs.RemoveAbandoned() // what cannot be removed now is found again
	for _, dir := range removed {
		r.mended("removed %s, which a killed check left", dir)
	}
	// A lane that looks half made may be in the making by a process that is alive.
	if len(r.hosts) > 0 {
		found, err := lanes.Check(ctx)
		for _, f := range found {
			if !f.Busy && f.Fix == "" {
				r.refuse("lane "+string(f.Lane), f.Text)
			}
		}
		return err
	}
	done, err := lanes.Repair(ctx)
	for _, f := range done {
		if f.Lane == "" {
			r.mended("the lanes' index %s", f.Done)
		} else {
			r.mended("lane %s, where %s: %s", f.Lane, f.Text, f.Done)
		}
	}
	return err
}
