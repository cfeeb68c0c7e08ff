package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/durable"
	"muster/internal/view"
)

func (a *App) archiveCommand() *cobra.Command {
	c := a.group("archive [list]", "put an ended or stopped team's state and lanes aside", &cobra.Command{
		Use: "list", Short: "what was put aside", Args: exactly(), RunE: func(c *cobra.Command, _ []string) error { return a.archiveList(c.Context()) }})
	c.Long = "Everything is kept: the state in .team/archive/, each lane as a commit under refs/muster/archive/.\nTask ids go on afterwards."
	c.RunE = func(c *cobra.Command, _ []string) error {
		p, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer p.close()
		if err := p.refuseUnder(c.Context()); err != nil {
			return err
		}
		s, err := p.archive(c.Context())
		if err != nil {
			return err
		}
		return a.print(s, func(w io.Writer, _ view.Paint, _ int) error {
			_, err := fmt.Fprintf(w, "%s and %s are put aside in %s\n", view.Count(s.Tasks, "task"), view.Count(len(s.Lanes), "lane"), shortened(p.home, filepath.Join(p.home.Archive(), s.Name)))
			return err
		})
	}
	return c
}

// shelf is one team that was put aside: archive.json in its directory.
type shelf struct {
	Name   string            `json:"name"` // of the directory: the time
	Team   muster.Name       `json:"team"`
	Goal   string            `json:"goal,omitempty"`
	At     float64           `json:"archived_at"`
	Tasks  int               `json:"tasks"`
	Landed int               `json:"landed"`
	Lanes  map[string]string `json:"lanes,omitempty"` // name -> ref
	NextID muster.TaskID     `json:"next_id"`         // where the new board goes on
	Moving bool              `json:"moving,omitempty"`
}

// moving names the shelf that is being filled, so that an interrupted archive is found at once.
const moving = "moving"

// halfArchived is the name of the shelf that an interrupted archive left half full, "" if there is none.
func (p *place) halfArchived() (string, error) {
	data, err := os.ReadFile(filepath.Join(p.home.Archive(), moving))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// refuseHalf refuses to work on state of which an interrupted archive has moved a part.
func (p *place) refuseHalf() error {
	name, err := p.halfArchived()
	if err != nil || name == "" {
		return err
	}
	return muster.Errorf(muster.Invalid, "putting the last team aside (%s) was interrupted", name).WithHint("muster archive")
}

// archive puts the team aside. First the lanes, each as a commit; then a note of what is to be moved; then everything is
// renamed. Interrupted anywhere, it goes on when it is called again.
func (p *place) archive(ctx context.Context) (s shelf, err error) {
	if !hasState(p.home) {
		return s, nobody
	}
	lease, err := p.store.Leases().Acquire(ctx, "archive")
	if errors.Is(err, muster.ErrHeld) {
		return s, muster.Errorf(muster.Held, "another process is putting the team aside right now").WithHint("muster archive list")
	}
	if err != nil {
		return s, err
	}
	defer lease.Release()
	hosts, err := p.theRoster(ctx).Hosts(ctx)
	if err != nil {
		return s, err
	}
	if len(hosts) > 0 {
		return s, muster.Errorf(muster.Held, "the team is alive (%s, pid %d): it can be put aside when it has stopped", cmp.Or(view.OneLine(hosts[0].About), "muster"), hosts[0].PID).
			WithHint("muster team stop")
	}
	files := durable.New(durable.OS{})
	name, err := p.halfArchived()
	if err != nil {
		return s, err
	}
	if name == "" {
		if s, err = p.newShelf(ctx); err != nil {
			return s, err
		}
		if err := s.save(files, p); err != nil {
			return s, err
		}
		if err := files.Replace(filepath.Join(p.home.Archive(), moving), []byte(s.Name+"\n")); err != nil {
			return s, err
		}
	} else if s, err = p.readShelf(name); err != nil {
		return s, err
	}
	return s, p.fill(ctx, files, s)
}

// newShelf archives the lanes and counts what is to be put aside.
func (p *place) newShelf(ctx context.Context) (s shelf, err error) {
	run, err := p.run(ctx)
	if err != nil {
		return s, err
	}
	all, err := p.theBoard().List(ctx)
	if err != nil {
		return s, err
	}
	members, err := p.theRoster(ctx).List(ctx)
	if err != nil {
		return s, err
	}
	if len(all)+len(members)+len(p.theBoard().Corrupt()) == 0 && run.StartedAt == 0 {
		return s, muster.Errorf(muster.NotFound, "there is nothing to put aside").WithHint("muster archive list")
	}
	now := p.app.Now()
	s = shelf{Name: p.freeName(now.Local().Format("20060102-150405")), Team: p.team(ctx), Goal: run.Goal, At: muster.Stamp(now), Tasks: len(all),
		Lanes: map[string]string{}, Moving: true}
	for _, t := range all {
		if t.Landed != nil {
			s.Landed++
		}
	}
	if s.NextID, err = p.nextID(ctx); err != nil {
		return s, err
	}
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return s, err
	}
	if err := lanes.Recover(ctx); err != nil {
		return s, err
	}
	rows, err := lanes.List(ctx)
	if err != nil {
		return s, err
	}
	for _, l := range rows {
		ref, err := lanes.Archive(ctx, l.Name)
		if err != nil {
			return s, muster.Errorf(muster.Invalid, "nothing is put aside: lane %s cannot be archived: %w", l.Name, err).
				WithHint("muster worktree list")
		}
		s.Lanes[string(l.Name)] = ref
	}
	return s, nil
}

func (p *place) freeName(name string) string {
	for n, free := 2, name; ; n++ {
		if _, err := os.Stat(filepath.Join(p.home.Archive(), free)); err != nil {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// nextID is the id that the next task would have.
func (p *place) nextID(ctx context.Context) (muster.TaskID, error) {
	next := muster.TaskID(1)
	doc, err := p.store.Table(muster.TableTasks).Get(ctx, "meta")
	if err == nil {
		var m struct {
			Next muster.TaskID `json:"next_id"`
		}
		if json.Unmarshal(doc.Data, &m) == nil {
			next = max(next, m.Next)
		}
	} else if !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
		return 0, err
	}
	names, err := filepath.Glob(filepath.Join(p.home.Tasks(), "task_*.json"))
	for _, n := range names {
		var id muster.TaskID
		if _, err := fmt.Sscanf(filepath.Base(n), "task_%d.json", &id); err == nil {
			next = max(next, id+1)
		}
	}
	return next, err
}

func (s shelf) save(files *durable.Files, p *place) error {
	data, err := muster.Encode(s)
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(p.home.Archive(), s.Name, "archive.json"), data)
}

func (p *place) readShelf(name string) (s shelf, err error) {
	data, err := os.ReadFile(filepath.Join(p.home.Archive(), name, "archive.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, muster.Errorf(muster.Corrupt, "the archive %s cannot be read: %w", name, err)
	}
	s.Name = name
	return s, nil
}

// fill moves what is still there. What stays: locks and hosts (leases are counted on), scratch checkouts (they hold
// nothing that lands) and the archive itself.
func (p *place) fill(ctx context.Context, files *durable.Files, s shelf) error {
	to := filepath.Join(p.home.Archive(), s.Name)
	stay := []string{"locks", "hosts", "scratch", "archive"}
	entries, err := os.ReadDir(p.home.Team())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "cache" { // of what is put aside; it is made again
			if err := os.RemoveAll(filepath.Join(p.home.Team(), "cache")); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(stay, e.Name()) {
			if err := shelve(files, filepath.Join(p.home.Team(), e.Name()), filepath.Join(to, "team", e.Name())); err != nil {
				return err
			}
		}
	}
	for from, name := range map[string]string{p.home.Transcripts(): "transcripts", p.home.Tasks(): "tasks",
		filepath.Join(p.home.Worktrees(), "events.jsonl"): "lane_events.jsonl"} {
		if err := shelve(files, from, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	meta, err := muster.Encode(map[string]any{"next_id": s.NextID})
	if err != nil {
		return err
	}
	if err := files.Replace(filepath.Join(p.home.Tasks(), "meta.json"), meta); err != nil {
		return err
	}
	s.Moving = false
	if err := s.save(files, p); err != nil {
		return err
	}
	return files.Remove(filepath.Join(p.home.Archive(), moving))
}

// shelve moves one thing, beside what an interrupted archive has moved there before.
func shelve(files *durable.Files, from, to string) error {
	free := to
	for n := 2; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			break
		}
		free = fmt.Sprintf("%s-%d", to, n)
	}
	if err := files.Rename(from, free); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (a *App) archiveList(ctx context.Context) error {
	all := []shelf{}
	p, err := a.look(ctx)
	if err != nil && !errors.Is(err, nobody) {
		return err
	}
	if err == nil {
		defer p.close()
		dirs, err := os.ReadDir(p.home.Archive())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, d := range dirs {
			if !d.IsDir() {
				continue
			}
			s, err := p.readShelf(d.Name())
			if err != nil {
				explain(a.Stderr, err.Error(), "")
				continue
			}
			all = append(all, s)
		}
	}
	return a.print(all, func(w io.Writer, pt view.Paint, width int) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(w, "nothing was put aside yet")
			return err
		}
		t := view.Table{Titles: []string{"NAME", "TEAM", ">TASKS", ">LANDED", ">LANES", "GOAL"}, Wide: 5}
		for _, s := range all {
			goal := view.Text(view.OneLine(s.Goal))
			if s.Moving {
				goal = view.Cell{Text: "interrupted: muster archive goes on", Tone: view.Bad}
			}
			t.Row(view.Text(s.Name), view.Text(string(s.Team)), view.Text(fmt.Sprint(s.Tasks)), view.Text(fmt.Sprint(s.Landed)), view.Text(fmt.Sprint(len(s.Lanes))), goal)
		}
		return t.Write(w, pt, width)
	})
}
