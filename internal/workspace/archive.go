package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/text"
)

// ErrNoTeam is the answer to everybody who looks for a team where there is none.
var ErrNoTeam = muster.Errorf(muster.NotFound, "no team here yet").WithHint(`muster run "GOAL"`)

// ArchivedTeam is one team that was archived: archive.json in its directory below .team/archive. Archives of earlier
// versions are read too, so a field keeps its name and its meaning.
type ArchivedTeam struct {
	Name   string            `json:"name"` // of the directory: the time
	Team   muster.Name       `json:"team"`
	Goal   string            `json:"goal,omitempty"`
	At     float64           `json:"archived_at"`
	Tasks  int               `json:"tasks"`
	Landed int               `json:"landed"`
	Lanes  map[string]string `json:"lanes,omitempty"`  // name -> ref
	NextID muster.TaskID     `json:"next_id"`          // the first id of the new board
	Moving bool              `json:"moving,omitempty"` // not everything is moved yet
	// Restoring says that it is on its way back: see Restore. Moving is true then.
	Restoring bool `json:"restoring,omitempty"`
	// Lost are the lanes that Restore could not bring back, because the refs of their work are gone.
	Lost []muster.Name `json:"-"`
}

// Archives returns the teams that were archived, the oldest first, and an error for each that cannot be read.
func (w *Workspace) Archives() (all []ArchivedTeam, unreadable []error, err error) {
	files, dir := stateFiles(w), w.Paths().Archive()
	names, err := files.FS().Names(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, durable.Unreadable(files.FS(), dir, err)
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		// A restore removes the empty directory last.
		if below, err := files.FS().Names(filepath.Join(dir, name)); err != nil || len(below) == 0 {
			continue
		}
		if t, err := readArchived(files, w.Paths(), name); err != nil {
			unreadable = append(unreadable, err)
		} else {
			all = append(all, t)
		}
	}
	return all, unreadable, nil
}

// readArchived reads the record of one archived team. The name may come from a file: it must be that of a directory of
// the archive, and nothing elsewhere. The error is Corrupt.
func readArchived(files *durable.Files, dir paths.Dir, name string) (t ArchivedTeam, err error) {
	if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
		return t, muster.Errorf(muster.Corrupt, "%q is no name of an archive", name)
	}
	data, _, err := files.ReadFile(filepath.Join(dir.Archive(), name, "archive.json"))
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, muster.Errorf(muster.Corrupt, "the archive %s cannot be read: %w", name, err)
	}
	t.Name = name
	return t, nil
}

// Archive puts an ended or stopped team aside: its state goes to .team/archive, and each lane becomes a commit under
// refs/muster/archive. First it writes a note of where everything goes (paths.Dir.Moving), and everybody who would
// change what is moved stops at the note. Interrupted anywhere, it goes on when it is called again.
func (w *Workspace) Archive(ctx context.Context) (ArchivedTeam, error) {
	if err := w.CheckOutsideTools(ctx); err != nil {
		return ArchivedTeam{}, err
	}
	if !w.HasState() {
		return ArchivedTeam{}, ErrNoTeam
	}
	a := newArchiver(w)
	release, err := a.exclude(ctx)
	if err != nil {
		return ArchivedTeam{}, err
	}
	defer release()
	err = a.archive(ctx)
	return a.ArchivedTeam, err
}

// exclude excludes every process that would bring the team to life, undo or archive, until release is called. The error
// is Held while one does, or while the team is alive.
func (a *archiver) exclude(ctx context.Context) (release func(), err error) {
	var held []func()
	release = func() {
		for _, end := range slices.Backward(held) {
			end()
		}
	}
	for _, l := range []struct{ name, busy, hint string }{
		{ArchiveLease, "another process is putting the team aside right now", "muster archive list"},
		// Before it is a host, a process that brings the team to life holds this lease.
		{LeadLease, "another process is just starting the team", "muster stop"},
		{UndoLease, "muster undo is at work in another process", "muster task list"},
	} {
		if l.name == LeadLease {
			if err := a.refuseAlive(ctx); err != nil {
				release()
				return nil, err
			}
		}
		end, err := a.acquire(ctx, l.name, l.busy, l.hint)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, end)
	}
	return release, nil
}

// archive is Archive for a caller that excludes the others.
func (a *archiver) archive(ctx context.Context) error {
	// The note goes first: from here on whoever would change the state stops, and a killed archive is gone on with.
	if err := a.begin(ctx); err != nil {
		return err
	}
	// Again: a process that joined before the note was written may be alive. Who joins from now on sees the note.
	err := a.refuseAlive(ctx)
	if err == nil {
		err = a.lanes(ctx)
	}
	// Nothing of the state was moved yet, so without the note everybody may go on with it.
	if err != nil {
		return errors.Join(err, a.undo())
	}
	return a.move(ctx)
}

// acquire takes a lease. The error is Held, with the given sentence and hint, while another process has it.
func (a *archiver) acquire(ctx context.Context, name, busy, hint string) (release func(), err error) {
	lease, err := a.w.store.Leases().Acquire(ctx, name)
	if errors.Is(err, muster.ErrHeld) {
		err = muster.Errorf(muster.Held, "%s", busy).WithHint("%s", hint)
	}
	// An error of releasing a lease changes nothing: what was written is synced, and the lease ends with the process.
	return func() { _ = lease.Release() }, err
}

// refuseAlive refuses to archive a team that is alive.
func (a *archiver) refuseAlive(ctx context.Context) error {
	hosts, err := a.w.Roster(ctx).Hosts(ctx)
	if err != nil || len(hosts) == 0 {
		return err
	}
	return muster.Errorf(muster.Held, "the team is alive (%s, pid %d): it can be put aside when it has stopped",
		cmp.Or(text.OneLine(hosts[0].About), "muster"), hosts[0].PID).WithHint("muster stop")
}

// archiver archives one team.
type archiver struct {
	ArchivedTeam
	w     *Workspace
	files *durable.Files
}

func newArchiver(w *Workspace) *archiver { return &archiver{w: w, files: stateFiles(w)} }

// path returns a path in the archive of this team.
func (a *archiver) path(parts ...string) string {
	return filepath.Join(append([]string{a.w.Paths().Archive(), a.Name}, parts...)...)
}

// save writes the record. It is written before each step whose result it names, so that an interrupted archive can
// go on.
func (a *archiver) save() error {
	data, err := muster.Encode(a.ArchivedTeam)
	if err != nil {
		return err
	}
	return a.files.Replace(a.path("archive.json"), data)
}

// begin goes on with the archive that was interrupted, or begins a new one, to which the note then points.
func (a *archiver) begin(ctx context.Context) error {
	w, note := a.w, a.w.Paths().Moving()
	data, _, err := a.files.ReadFile(note)
	if err == nil {
		a.ArchivedTeam, err = readArchived(a.files, w.Paths(), strings.TrimSpace(string(data)))
		if err == nil && a.Restoring {
			err = errRestoreInterrupted(a.Name)
		}
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return durable.Unreadable(a.files.FS(), note, err)
	}
	run, isEmpty, err := w.isEmpty(ctx)
	if err != nil {
		return err
	}
	// An empty archive would only be in the way of the list.
	if isEmpty {
		return muster.Errorf(muster.NotFound, "there is nothing to put aside").WithHint("muster archive list")
	}
	return a.beginNew(ctx, run)
}

// isEmpty reports whether there is no team: no task, no member, no run.
func (w *Workspace) isEmpty(ctx context.Context) (run muster.Run, isEmpty bool, err error) {
	run, errRun := w.runs.Look(ctx)
	tasks, errTasks := w.Board().List(ctx)
	members, errMembers := w.Roster(ctx).List(ctx)
	return run, len(tasks)+len(members)+len(w.Board().Corrupt()) == 0 && run.StartedAt == 0,
		cmp.Or(errRun, errTasks, errMembers)
}

func (a *archiver) beginNew(ctx context.Context, run muster.Run) error {
	w := a.w
	now := w.options.Clock.Now()
	name := filepath.Base(freePath(filepath.Join(w.Paths().Archive(), now.Local().Format("20060102-150405"))))
	a.ArchivedTeam = ArchivedTeam{Name: name, Team: w.Name(ctx), Goal: run.Goal, At: muster.UnixTime(now), Moving: true}
	// The record first, then the note that points to it: a note never names an archive without a record.
	if err := a.save(); err != nil {
		return err
	}
	return a.note()
}

// note writes the note that names this archive.
func (a *archiver) note() error { return a.files.Replace(a.w.Paths().Moving(), []byte(a.Name+"\n")) }

// freePath returns the path, or one with a number behind it where something is there already.
func freePath(path string) string {
	for n, free := 2, path; ; n++ {
		if durable.IsMissing(free) {
			return free
		}
		free = fmt.Sprintf("%s-%d", path, n)
	}
}

// undo removes an archive to which nothing was moved yet.
func (a *archiver) undo() error {
	// More than archive.json was there before: an earlier call has moved a part already, and only forward is a way out.
	if entries, err := os.ReadDir(a.path()); err != nil || len(entries) > 1 {
		return err
	}
	if err := a.files.Remove(a.w.Paths().Moving()); err != nil {
		return err
	}
	return os.RemoveAll(a.path())
}

// lanes makes each lane a commit.
func (a *archiver) lanes(ctx context.Context) error {
	lanes, err := a.w.Lanes(ctx)
	if err != nil {
		return err
	}
	// Each ref is in the record before the next lane is touched: the record is the only list of them.
	if err := lanes.ArchiveAll(ctx, func(name muster.Name, ref string) error {
		if a.Lanes == nil {
			a.Lanes = map[string]string{}
		}
		a.Lanes[string(name)] = ref
		return a.save()
	}); err != nil {
		return fmt.Errorf("nothing is put aside: %w", err)
	}
	return nil
}

// staying are the directories of .team that no archive has.
var staying = []string{"locks", "hosts", "scratch", "archive", "cache"}

// move moves what is still there. Locks and hosts stay, because leases are counted on, and so do scratch checkouts,
// which hold nothing that lands, and the archive itself.
func (a *archiver) move(ctx context.Context) error {
	if err := a.moveTasks(ctx); err != nil {
		return err
	}
	dir := a.w.Paths()
	entries, err := os.ReadDir(dir.Team())
	if err != nil {
		return err
	}
	moves := [][2]string{{dir.Transcripts(), "transcripts"},
		{filepath.Join(dir.Worktrees(), "events.jsonl"), "lane_events.jsonl"},
		{filepath.Join(dir.Worktrees(), "events.old.jsonl"), "lane_events.old.jsonl"}}
	for _, e := range entries {
		if !slices.Contains(staying, e.Name()) {
			moves = append(moves, [2]string{filepath.Join(dir.Team(), e.Name()), filepath.Join("team", e.Name())})
		}
	}
	for _, m := range moves {
		if err := a.moveOne(m[0], a.path(m[1])); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(dir.Team(), "cache")); err != nil { // it is made again
		return err
	}
	a.Moving = false
	if err := a.save(); err != nil {
		return err
	}
	// Last: with the note gone, everything is archived.
	return a.files.Remove(dir.Moving())
}

// moveOne moves one file or directory, beside what an interrupted archive has moved there before. What is not there
// was moved before.
func (a *archiver) moveOne(from, to string) error {
	if err := a.files.Rename(from, freePath(to)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// moveTasks moves the board, and begins the next one where its ids end. The table is locked meanwhile, against a writer
// that saw no note: who adds a task waits, and adds it to the next board.
func (a *archiver) moveTasks(ctx context.Context) error {
	unlock, err := a.files.LockAll(ctx, a.w.Paths().TableLocks(muster.TableTasks))
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.moveOne(a.w.Paths().Tasks(), a.path("tasks")); err != nil {
		return err
	}
	moved, err := os.ReadDir(a.path())
	if err != nil {
		return err
	}
	a.Tasks, a.Landed, a.NextID = 0, 0, max(a.NextID, 1)
	for _, dir := range moved {
		if strings.HasPrefix(dir.Name(), "tasks") { // several when it was interrupted
			if err := a.count(a.path(dir.Name())); err != nil {
				return err
			}
		}
	}
	// The ids go on where the archived board ends, so that mail, commits and branches that name a task name one only.
	meta, err := muster.Encode(map[string]any{"next_id": a.NextID})
	if err != nil {
		return err
	}
	return a.files.Replace(filepath.Join(a.w.Paths().Tasks(), "meta.json"), meta)
}

// count adds the tasks of a board's directory, and finds the id that its next task would have. A task that cannot be
// read is not counted, but its id is not used again either.
func (a *archiver) count(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		data, _, err := a.files.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil && !durable.ConcernsOneFile(err) {
			return err
		}
		var doc struct { // the first field is of meta.json, the second of a task
			Next   muster.TaskID    `json:"next_id"`
			Landed *json.RawMessage `json:"landed"`
		}
		isReadable := json.Unmarshal(data, &doc) == nil
		var id muster.TaskID
		if _, err := fmt.Sscanf(f.Name(), "task_%d.json", &id); err == nil {
			a.NextID = board.NextID(a.NextID, id)
			if isReadable {
				a.Tasks++
			}
			if isReadable && doc.Landed != nil {
				a.Landed++
			}
		} else if isReadable && f.Name() == "meta.json" {
			a.NextID = board.NextID(a.NextID, doc.Next-1)
		}
	}
	return nil
}
