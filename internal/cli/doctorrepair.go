package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/internal/board"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/roster"
	"muster/internal/view"
)

// repair restores what can be, and says what it did. What it replaces it keeps. The findings after it say what is left.
func (d *doctor) repair(ctx context.Context, dir paths.Dir) {
	if !hasState(dir) {
		d.say("repair", "ok", "there is no team here, and nothing to repair", "")
		return
	}
	p, err := d.app.change(ctx)
	if err != nil {
		d.err("repair", err)
		return
	}
	defer p.close()
	hosts, err := p.theRoster(ctx).Hosts(ctx)
	if err != nil {
		d.err("repair", err)
		return
	}
	before := len(d.findings)
	d.sweep(dir)
	d.mendHosts(ctx, p)
	d.mendConfig(ctx, p, hosts)
	d.mendBoard(ctx, p)
	d.mendLanes(ctx, p, hosts)
	if len(d.findings) == before {
		d.say("repair", "ok", "nothing had to be repaired", "")
	}
}

// lives is the refusal of what would disturb a living team.
func (d *doctor) lives(what, why string, hosts []roster.Process) {
	var pids []string
	for _, h := range hosts {
		pids = append(pids, fmt.Sprint(h.PID))
	}
	d.say("repair", "broken", fmt.Sprintf("%s: %s; not while the team lives (pid %s)", what, why, strings.Join(pids, ", ")),
		"stop it (Ctrl-C where it runs), then: "+repairIt)
}

func (d *doctor) sweep(dir paths.Dir) {
	files := durable.New(durable.OS{})
	n := 0
	for _, path := range temporaries(dir) {
		if err := files.Remove(path); err != nil {
			d.err("repair", err)
			return
		}
		n++
	}
	if n > 0 {
		d.say("repair", "mended", view.Count(n, "temporary file")+" of killed processes removed: nothing had been promised of them", "")
	}
}

func (d *doctor) mendHosts(ctx context.Context, p *place) {
	slots, err := p.theRoster(ctx).MendHosts(ctx)
	for _, s := range slots {
		d.say("repair", "mended", ".team/hosts/"+s+".json written anew; what it was is in .team/"+corruption.Table, "")
	}
	if err != nil {
		d.err("repair", err)
	}
}

// mendConfig writes config.json anew from the members: when it cannot be read, and when a repair was killed after it had put the
// damaged one aside.
func (d *doctor) mendConfig(ctx context.Context, p *place, hosts []roster.Process) {
	path := filepath.Join(p.home.Team(), "config.json")
	_, err := os.Stat(path)
	missing := errors.Is(err, os.ErrNotExist)
	kept := keptBefore(p.home, path)
	if missing && kept == "" || !missing && readable(path, object) == nil {
		return
	}
	if len(hosts) > 0 {
		if !missing { // a living team writes it
			d.lives(".team/config.json", "it cannot be read", hosts)
		}
		return
	}
	if !missing {
		_ = p.theRoster(ctx).Project(ctx) // fails, and says what is damaged
		kept = keptAs(p.home, path)
		if err := durable.New(durable.OS{}).Rename(path, kept); err != nil {
			d.err("repair", err)
			return
		}
	}
	if err := p.theRoster(ctx).Project(ctx); err != nil {
		d.err("repair", err)
		return
	}
	d.say("repair", "mended", fmt.Sprintf(".team/config.json written anew from the members; what it was is %s: members that other programs wrote are only there", shortened(p.home, kept)), "")
}

// keptBefore is where a file went that was replaced last; "": none was.
func keptBefore(dir paths.Dir, path string) string {
	all, err := filepath.Glob(filepath.Join(dir.Team(), corruption.Table, filepath.Base(path)+".*"))
	if err != nil || len(all) == 0 {
		return ""
	}
	return slices.Max(all) // the names have the time
}

// keptAs is where a file goes that is replaced.
func keptAs(dir paths.Dir, path string) string {
	return filepath.Join(dir.Team(), corruption.Table, filepath.Base(path)+"."+time.Now().UTC().Format("20060102T150405.000000000Z"))
}

// mendBoard lets the board make itself whole.
func (d *doctor) mendBoard(ctx context.Context, p *place) {
	b, err := p.settling(ctx)
	if err != nil {
		d.err("repair", err)
		return
	}
	before, err := tangles(ctx, p)
	if err != nil {
		d.err("repair", err)
		return
	}
	meta := filepath.Join(p.home.Tasks(), "meta.json")
	_, e := os.Stat(meta)
	damaged := e == nil && readable(meta, as[metaFile]) != nil
	if err := b.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
		d.err("repair", err)
		return
	} else if err != nil {
		d.say("repair", "note", err.Error(), hintOf(err))
	}
	if damaged && readable(meta, as[metaFile]) == nil {
		d.say("repair", "mended", ".tasks/meta.json written anew from the tasks and the events; what it was is in .team/"+corruption.Table, "")
	}
	after, err := tangles(ctx, p)
	if err != nil {
		d.err("repair", err)
		return
	}
	for _, t := range before {
		if !slices.Contains(after, t) {
			d.say("repair", "mended", fmt.Sprintf("task %d, where %s", t.id, t.text), "")
		}
	}
}

// mendLanes finishes or undoes what was cut off, and finds lanes again from git.
func (d *doctor) mendLanes(ctx context.Context, p *place, hosts []roster.Process) {
	lanes, err := p.theLanes(ctx)
	if err != nil {
		d.err("repair", err)
		return
	}
	if removed, err := lanes.CheckDirs.RemoveAbandoned(); err == nil {
		for _, dir := range removed {
			d.say("repair", "mended", "removed "+dir+", which a killed check left", "")
		}
	}
	if len(hosts) > 0 {
		found, err := lanes.Check(ctx)
		if err != nil {
			d.err("repair", err)
		}
		for _, f := range found {
			if !f.Busy && f.IsRepairable() {
				d.lives("lane "+string(f.Lane), f.Text, hosts)
			}
		}
		return
	}
	done, err := lanes.Repair(ctx)
	if err != nil {
		d.err("repair", err)
		return
	}
	for _, r := range done {
		if r.Lane == "" {
			d.say("repair", "mended", "the lanes' index "+r.Done, "")
		} else {
			d.say("repair", "mended", fmt.Sprintf("lane %s, where %s: %s", r.Lane, r.Text, r.Done), "")
		}
	}
}
