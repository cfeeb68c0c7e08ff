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
	"muster/team"
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

// refuseHalf refuses to work on state of which an archive moves a part, or has left a part.
func (p *place) refuseHalf() error {
	// What it asks is on this disk: there is nothing to interrupt.
	return team.RefuseHalf(context.Background(), string(p.home), p.store.Leases())
}

// archive puts the team aside. First a note of where to (home.Dir.Moving), at which every command stops that would change what is moved;
// then the lanes, each as a commit; then everything is renamed. Interrupted anywhere, it goes on when it is called again.
func (p *place) archive(ctx context.Context) (s shelf, err error) {
	if !hasState(p.home) {
		return s, nobody
	}
	lease, err := p.store.Leases().Acquire(ctx, team.ArchiveLease)
	if errors.Is(err, muster.ErrHeld) {
		return s, muster.Errorf(muster.Held, "another process is putting the team aside right now").WithHint("muster archive list")
	}
	if err != nil {
		return s, err
	}
	defer lease.Release()
	if err := p.refuseLiving(ctx); err != nil {
		return s, err
	}
	lead, err := p.store.Leases().Acquire(ctx, team.LeadLease)
	if errors.Is(err, muster.ErrHeld) {
		return s, muster.Errorf(muster.Held, "another process is just bringing the team to life").WithHint("muster team stop")
	}
	if err != nil {
		return s, err
	}
	defer lead.Release()
	files := durable.New(durable.OS{})
	if s, err = p.theShelf(ctx, files); err != nil {
		return s, err
	}
	err = p.refuseLiving(ctx) // again: who joins from now on sees the note
	if err == nil {
		err = p.shelveLanes(ctx, files, &s)
	}
	if err != nil {
		return s, errors.Join(err, p.undo(files, s))
	}
	return p.fill(ctx, files, s)
}

// refuseLiving refuses to put a team aside that is alive.
func (p *place) refuseLiving(ctx context.Context) error {
	hosts, err := p.theRoster(ctx).Hosts(ctx)
	if err != nil || len(hosts) == 0 {
		return err
	}
	return muster.Errorf(muster.Held, "the team is alive (%s, pid %d): it can be put aside when it has stopped", cmp.Or(view.OneLine(hosts[0].About), "muster"), hosts[0].PID).
		WithHint("muster team stop")
}

// theShelf is the one that an interrupted archive has left, or a new one, and the note names it.
func (p *place) theShelf(ctx context.Context, files *durable.Files) (s shelf, err error) {
	data, _, err := files.ReadFile(p.home.Moving())
	if err == nil {
		return p.readShelf(strings.TrimSpace(string(data)))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, durable.Unreadable(durable.OS{}, p.home.Moving(), err)
	}
	run, err := p.run(ctx)
	if err != nil {
		return s, err
	}
	tasks, err := p.theBoard().List(ctx)
	if err != nil {
		return s, err
	}
	members, err := p.theRoster(ctx).List(ctx)
	if err != nil {
		return s, err
	}
	if len(tasks)+len(members)+len(p.theBoard().Corrupt()) == 0 && run.StartedAt == 0 {
		return s, muster.Errorf(muster.NotFound, "there is nothing to put aside").WithHint("muster archive list")
	}
	now := p.app.Now()
	s = shelf{Name: p.freeName(now.Local().Format("20060102-150405")), Team: p.team(ctx), Goal: run.Goal, At: muster.Stamp(now), Moving: true}
	if err := s.save(files, p); err != nil {
		return s, err
	}
	return s, files.Replace(p.home.Moving(), []byte(s.Name+"\n"))
}

// undo forgets a shelf to which nothing was moved yet.
func (p *place) undo(files *durable.Files, s shelf) error {
	dir := filepath.Join(p.home.Archive(), s.Name)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
		return err
	}
	if err := files.Remove(p.home.Moving()); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// shelveLanes archives the lanes.
func (p *place) shelveLanes(ctx context.Context, files *durable.Files, s *shelf) error {
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return err
	}
	err = lanes.ArchiveAll(ctx, func(name muster.Name, ref string) error {
		if s.Lanes == nil {
			s.Lanes = map[string]string{}
		}
		s.Lanes[string(name)] = ref
		return s.save(files, p)
	})
	if err != nil {
		return fmt.Errorf("nothing is put aside: %w", err)
	}
	return nil
}

func (p *place) freeName(name string) string {
	for n, free := 2, name; ; n++ {
		if _, err := os.Stat(filepath.Join(p.home.Archive(), free)); err != nil {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// shelveTasks moves the board, and begins the next one where its ids end. Who adds a task meanwhile waits, and adds it to
// the next.
func (p *place) shelveTasks(ctx context.Context, files *durable.Files, s *shelf) error {
	unlock, err := files.LockAll(ctx, p.home.TableLocks(muster.TableTasks)) // a writer that saw no note may still be at it
	if err != nil {
		return err
	}
	defer unlock()
	to := filepath.Join(p.home.Archive(), s.Name, "tasks")
	if err := shelve(files, p.home.Tasks(), to); err != nil {
		return err
	}
	boards, err := filepath.Glob(to + "*") // more than one when it was interrupted
	if err != nil {
		return err
	}
	s.Tasks, s.Landed = 0, 0
	for _, dir := range boards {
		if err := s.count(dir); err != nil {
			return err
		}
	}
	meta, err := muster.Encode(map[string]any{"next_id": s.NextID})
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(p.home.Tasks(), "meta.json"), meta)
}

// count adds the tasks of a board's directory, and finds the id that the next one would have.
func (s *shelf) count(dir string) error {
	s.NextID = max(s.NextID, 1)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		var m struct { // of meta.json the one, of a task the other
			Next   muster.TaskID    `json:"next_id"`
			Landed *json.RawMessage `json:"landed"`
		}
		bad := json.Unmarshal(data, &m)
		var id muster.TaskID
		if _, err := fmt.Sscanf(e.Name(), "task_%d.json", &id); err == nil {
			s.NextID = max(s.NextID, id+1)
			if bad == nil {
				s.Tasks++
			}
			if bad == nil && m.Landed != nil {
				s.Landed++
			}
		} else if e.Name() == "meta.json" && bad == nil {
			s.NextID = max(s.NextID, m.Next)
		}
	}
	return err
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
func (p *place) fill(ctx context.Context, files *durable.Files, s shelf) (shelf, error) {
	if err := p.shelveTasks(ctx, files, &s); err != nil {
		return s, err
	}
	to := filepath.Join(p.home.Archive(), s.Name)
	stay := []string{"locks", "hosts", "scratch", "archive"}
	entries, err := os.ReadDir(p.home.Team())
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if e.Name() == "cache" { // of what is put aside; it is made again
			if err := os.RemoveAll(filepath.Join(p.home.Team(), "cache")); err != nil {
				return s, err
			}
			continue
		}
		if !slices.Contains(stay, e.Name()) {
			if err := shelve(files, filepath.Join(p.home.Team(), e.Name()), filepath.Join(to, "team", e.Name())); err != nil {
				return s, err
			}
		}
	}
	for from, name := range map[string]string{p.home.Transcripts(): "transcripts",
		filepath.Join(p.home.Worktrees(), "events.jsonl"): "lane_events.jsonl"} {
		if err := shelve(files, from, filepath.Join(to, name)); err != nil {
			return s, err
		}
	}
	s.Moving = false
	if err := s.save(files, p); err != nil {
		return s, err
	}
	return s, files.Remove(p.home.Moving())
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
