package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/text"
)

// Restore brings an archived team back: its state, and its lanes with the work that was in them. A team that is here
// and has finished is archived before; one that has not finished is an error (Held), and nothing changes. Interrupted
// anywhere, Restore goes on when it is called again, and until then no other command changes the state: see Archive.
func (w *Workspace) Restore(ctx context.Context, name string) (t ArchivedTeam, err error) {
	if err := w.CheckOutsideTools(ctx); err != nil {
		return t, err
	}
	a := newArchiver(w)
	if a.ArchivedTeam, err = w.Archived(name); err != nil {
		return t, err
	}
	release, err := a.exclude(ctx)
	if err != nil {
		return t, err
	}
	defer release()
	if a.ArchivedTeam, err = w.Archived(name); err != nil { // another process may have brought it back
		return t, err
	}
	t = a.ArchivedTeam
	note, _, err := a.files.ReadFile(w.Paths().Moving())
	switch hasNote := err == nil; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return t, durable.Unreadable(a.files.FS(), w.Paths().Moving(), err)
	case hasNote && strings.TrimSpace(string(note)) != name, a.Moving && !a.Restoring:
		if err := w.CheckNotArchiving(ctx); err != nil {
			return t, err
		}
		return t, ErrIncomplete(t)
	case a.Restoring && !hasNote: // the note goes when all is back
		return t, a.removeRecord()
	case !a.Restoring:
		if err := a.beginRestore(ctx, hasNote); err != nil {
			return t, err
		}
	}
	if err := a.moveBack(ctx); err != nil {
		return t, err
	}
	if t.Lost, err = a.lanesBack(ctx); err != nil {
		return t, err
	}
	if err := a.files.Remove(w.Paths().Moving()); err != nil {
		return t, err
	}
	return t, a.removeRecord()
}

// Archived returns the archived team with a name: that of its directory. Errors: NotFound, Corrupt.
func (w *Workspace) Archived(name string) (ArchivedTeam, error) {
	if name == "" || name != filepath.Base(name) || durable.IsMissing(filepath.Join(w.Paths().Archive(), name)) {
		return ArchivedTeam{}, muster.Errorf(muster.NotFound, "there is no archived team %q", name).
			WithHint("muster archive list")
	}
	return readArchived(stateFiles(w), w.Paths(), name)
}

// ErrIncomplete returns the error for an archive of which only a part is there, or nil for a whole one.
func ErrIncomplete(t ArchivedTeam) error {
	switch {
	case t.Restoring:
		return errRestoreInterrupted(t.Name)
	case t.Moving:
		return muster.Errorf(muster.Invalid, "the archive %s is not complete", t.Name).
			WithHint("muster archive --yes   goes on with it")
	}
	return nil
}

// beginRestore makes room, and then announces the restore by the note and the record. hasNote: the note is there
// already.
func (a *archiver) beginRestore(ctx context.Context, hasNote bool) error {
	if !hasNote {
		if err := a.makeRoom(ctx); err != nil {
			return err
		}
		// The note first: a record that says Restoring without a note is one of which all is back.
		if err := a.note(); err != nil {
			return err
		}
	}
	// Again: a process that joined before the note was written may be alive. Who joins from now on sees the note.
	if err := a.refuseAlive(ctx); err != nil {
		return errors.Join(err, a.files.Remove(a.w.Paths().Moving()))
	}
	a.Moving, a.Restoring = true, true
	return a.save()
}

// makeRoom archives the state that is here, unless it is of a team that has not finished, or lanes are in the way.
func (a *archiver) makeRoom(ctx context.Context) error {
	w := a.w
	run, isEmpty, err := w.isEmpty(ctx)
	if err != nil {
		return err
	}
	tasks, err := w.Board().List(ctx)
	if err != nil {
		return err
	}
	open, _ := run.Left(tasks)
	why := ""
	switch {
	case len(open) > 0:
		why = text.Count(len(open), "task") + text.Plural(len(open), " is", " are") + " open"
	case run.StartedAt > 0 && run.EndedAt == 0:
		why = "its run stopped before its end"
	case w.HasLanes():
		lanes, err := w.Lanes(ctx)
		if err != nil {
			return err
		}
		all, err := lanes.List(ctx)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			why = text.Count(len(all), "lane") + text.Plural(len(all), " is", " are") + " here"
		}
	}
	if why != "" {
		return muster.Errorf(muster.Held, "another team (%s) has not finished: %s", w.Name(ctx), why).
			WithHint("go on with it:  muster resume\nput it aside:   muster archive --yes")
	}
	if err := a.checkLanesFree(ctx); err != nil {
		return err
	}
	here := newArchiver(w)
	if !isEmpty {
		return here.archive(ctx)
	}
	// Without a team there may still be events, which belong to none of what comes back.
	if left, err := strays(w.Paths()); err != nil || !left {
		return err
	}
	if err := here.beginNew(ctx, run); err != nil {
		return err
	}
	return here.move(ctx)
}

// strays reports whether there is state beside the board.
func strays(dir paths.Dir) (bool, error) {
	entries, err := os.ReadDir(dir.Team())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !slices.Contains(staying, e.Name()) }) ||
		exists(dir.Transcripts()) || exists(filepath.Join(dir.Worktrees(), "events.jsonl")), nil
}

// checkLanesFree refuses a restore whose lanes could not be made.
func (a *archiver) checkLanesFree(ctx context.Context) error {
	if len(a.Lanes) == 0 {
		return nil
	}
	lanes, err := a.w.Lanes(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Lanes)) {
		if err := lanes.CheckFree(ctx, muster.Name(name)); err != nil {
			return err
		}
	}
	return nil
}

// moveBack moves what is still in the archive to where it was.
func (a *archiver) moveBack(ctx context.Context) error {
	if err := a.tasksBack(ctx); err != nil {
		return err
	}
	dir := a.w.Paths()
	for _, m := range [][2]string{{"team", dir.Team()}, {"transcripts", dir.Transcripts()},
		{"lane_events.jsonl", filepath.Join(dir.Worktrees(), "events.jsonl")},
		{"lane_events.old.jsonl", filepath.Join(dir.Worktrees(), "events.old.jsonl")}} {
		if err := a.bring(a.path(m[0]), m[1]); err != nil {
			return err
		}
	}
	return nil
}

// bring moves a file or a directory, into the directory that is there already. What is not there was moved before.
func (a *archiver) bring(from, to string) error {
	if durable.IsMissing(from) {
		return nil
	}
	if durable.IsMissing(to) {
		return a.files.Rename(from, to)
	}
	entries, errFrom := os.ReadDir(from)
	if _, err := os.ReadDir(to); err != nil || errFrom != nil {
		return muster.Errorf(muster.Held, "%s is in the way of the archived team", Relative(a.w, to)).
			WithHint("move it away, then: muster archive restore %s", a.Name)
	}
	for _, e := range entries {
		if err := a.bring(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(from)
}

// tasksBack moves the board back. Its ids go on behind those of all boards that were here since. The table is locked
// meanwhile: see moveTasks.
func (a *archiver) tasksBack(ctx context.Context) error {
	unlock, err := a.files.LockAll(ctx, a.w.Paths().TableLocks(muster.TableTasks))
	if err != nil {
		return err
	}
	defer unlock()
	here, next := a.w.Paths().Tasks(), newArchiver(a.w)
	next.NextID = a.NextID
	if exists(here) {
		if err := next.count(here); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(a.path())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "tasks") { // several when the archive was interrupted
			if err := a.boardBack(a.path(e.Name()), here, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// boardBack moves the tasks of a board, and last its meta document.
func (a *archiver) boardBack(from, to string, next *archiver) error {
	if err := next.count(from); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "meta.json" {
			if err := a.bring(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	meta := map[string]json.RawMessage{}
	data, _, err := a.files.ReadFile(filepath.Join(from, "meta.json"))
	if err == nil {
		_ = json.Unmarshal(data, &meta) // of one that cannot be read only the id is known
	}
	id, err := json.Marshal(next.NextID)
	if err != nil {
		return err
	}
	meta["next_id"] = id
	if data, err = muster.Encode(meta); err != nil {
		return err
	}
	if err := a.files.Replace(filepath.Join(to, "meta.json"), data); err != nil {
		return err
	}
	return os.RemoveAll(from)
}

// lanesBack makes the lanes that held work, and those of claimed tasks. The state is opened anew: what was read of it
// before is not what is there now. A ref of the archive may be gone, as after muster clean: its lane is lost, and
// begins anew where its task is claimed.
func (a *archiver) lanesBack(ctx context.Context) (lost []muster.Name, err error) {
	if len(a.Lanes) == 0 {
		return nil, nil
	}
	w, err := OpenRoot(a.w.root, a.w.options)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	claimed, err := w.Board().Claimed(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Lanes)) {
		isClaimed := slices.ContainsFunc(claimed, func(t muster.Task) bool { return t.Worktree == muster.Name(name) })
		ref := a.Lanes[name]
		if ref != "" {
			if _, err := repo.Resolve(ctx, ref); err != nil {
				lost, ref = append(lost, muster.Name(name)), ""
			}
		}
		if ref == "" && !isClaimed {
			continue
		}
		if err := lanes.Restore(ctx, muster.Name(name), ref); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// removeRecord removes what is left of the archive when all of the team is back.
func (a *archiver) removeRecord() error {
	if err := a.files.Remove(a.path("archive.json")); err != nil {
		return err
	}
	_ = os.Remove(a.path()) // an empty directory is no archive
	return nil
}
