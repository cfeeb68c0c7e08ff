package cli

import (
	"context"
	"errors"
	"iter"
	"path/filepath"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/face"
	"muster/internal/paths"
	"muster/internal/recording"
	"muster/internal/workspace"
	"muster/store/file"
	"muster/store/mem"
	"muster/team"
)

// lookBack is what --replay and its argument say. A face looks back at one of three:
//
//   - The team that is here. Its records and its journal are read where they are, and a team at work goes on meanwhile.
//   - An archived team. All that a face reads is copied: the records, the events, what was spent and the conversations.
//     Mail stays where it is, because nobody reads an inbox of the past.
//   - A recording. It has the events, and the requests to models with their replies. Records are made of the events, as
//     far as they tell: a task has no description there, because no event has one.
//
// The faces cannot tell the copies from a team, so there is one way to show all three. Nothing is run, so a recording
// of somebody else's needs no trust: what it says is shown, and cleaned as all that models say is.
type lookBack struct {
	isOn bool
	what string // a recording, or the name of an archived team; "" is the team that is here
}

// lookBackFlag gives a command the flag --replay and the argument of it. The argument is no value of the flag, because
// the flag has a meaning without one.
func lookBackFlag(c *cobra.Command) *lookBack {
	l := new(lookBack)
	c.Use += " [RECORDING|ARCHIVE]"
	c.Flags().BoolVar(&l.isOn, "replay", false,
		"look back, and change nothing: at the last run, a recording, or a team of muster archive list")
	c.Args = func(c *cobra.Command, args []string) error {
		if err := namedArgs("[RECORDING|ARCHIVE]")(c, args); err != nil || len(args) == 0 {
			return err
		}
		// Without the flag a name could be taken for that of a team to watch at work.
		if l.what = args[0]; !l.isOn {
			return &usageError{c.CommandPath(), "a recording or an archive is for --replay:  " + c.CommandPath() +
				" --replay " + l.what}
		}
		return nil
	}
	return l
}

// open opens the team to look at. One of a recording or an archive is a copy in memory: whatever a face did with
// it, nothing of it would reach a file.
func (l *lookBack) open(ctx context.Context, a *App) (opened, error) {
	if l.what == "" {
		return a.open(ctx)
	}
	// What a face asks of a team it asks of this one: its records, its events and its conversations.
	store := mem.New()
	o, err := openInMemory(ctx, a, store)
	if err != nil {
		return o, err
	}
	path := l.what
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.workDir(), path)
	}
	// No archive is named as a file is, so a file that is not there is looked for among the archives.
	rec, err := recording.Read(path, recording.Verify(nil))
	switch archive, isThere := archiveNamed(o.workspace, l.what); {
	case isThere:
		err = copyArchive(ctx, store, o.workspace, archive)
	case errors.Is(err, muster.ErrNotFound):
		err = muster.Errorf(muster.NotFound, "there is neither a recording nor an archived team %q", l.what).
			WithHint("archived teams:  muster archive list\nrecordings:      the files of muster run --record FILE")
	case err == nil:
		err = copyRecording(ctx, o, rec)
	}
	if err != nil {
		o.close()
	}
	return o, err
}

// openInMemory opens a team whose state is in a store in memory. In a repository, git tells what has landed there.
// Elsewhere a task has no difference to show, and a face says why.
func openInMemory(ctx context.Context, a *App, store muster.Store) (opened, error) {
	// The root needs a name only: nothing is read or written there but what git has.
	root, err := team.FindRoot(ctx, a.workDir())
	if err != nil {
		root = a.workDir()
	}
	options := a.workspaceOptions(ctx)
	options.Store, options.OpenStore = store, nil
	w, err := workspace.OpenRoot(root, options)
	if err != nil {
		return opened{}, err
	}
	t, err := team.OpenIn(w, team.Config{ //nolint:contextcheck // OpenIn starts nothing.
		Environ: a.Env, Secrets: secretValues(a)})
	return opened{t, w}, err
}

// archiveNamed returns the archived team with a name, if there is one. The name is that of its directory, which is the
// time at which it was archived: several teams may have had the same name.
func archiveNamed(w *workspace.Workspace, name string) (workspace.ArchivedTeam, bool) {
	all, _, _ := w.Archives() // what cannot be read has no team to show
	for _, t := range all {
		if t.Name == name {
			return t, true
		}
	}
	return workspace.ArchivedTeam{}, false
}

// copyArchive copies what is looked at of an archived team. What cannot be read is left out, as it is of a team at
// work: a line that is damaged hides no other one. The archive stays as it is.
func copyArchive(ctx context.Context, to muster.Store, w *workspace.Workspace, t workspace.ArchivedTeam) error {
	// An archive that was interrupted has a part of the team, and the rest is still at its place. The part alone would
	// look as if the rest had never been.
	if t.Moving {
		return muster.Errorf(muster.Invalid, "the archive %s is not complete", t.Name).
			WithHint("muster archive   goes on with it")
	}
	from, err := file.Open(filepath.Join(paths.Dir(w.Root()).Archive(), t.Name))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // nothing was written
	// Mail that was pending is left out: nobody can read it any more, and what was read is in the transcripts.
	streams := []string{muster.StreamEvents, muster.StreamSpend}
	for _, name := range []string{muster.TableTeam, muster.TableTasks, muster.TableMembers, muster.TableRequests} {
		for c, err := range from.Table(name).Changes(ctx, 0) {
			if errors.Is(err, muster.ErrCorrupt) { // it hides nothing else
				continue
			}
			if err == nil {
				_, err = to.Table(name).Put(ctx, c.Key, c.Data, muster.None)
			}
			if err != nil {
				return err
			}
			// Each member that has a record has a conversation, too.
			if name == muster.TableMembers {
				streams = append(streams, muster.StreamTranscripts+c.Key)
			}
		}
	}
	for _, stream := range streams {
		if err := appendAll(ctx, to, stream, from.Log().Read(ctx, stream, 0)); err != nil {
			return err
		}
	}
	return nil
}

// appendAll appends records to a stream, but for those that cannot be read. Their places are other ones in the copy,
// and whoever remembers a place has it from the copy.
func appendAll(ctx context.Context, to muster.Store, stream string, records iter.Seq2[muster.Record, error]) error {
	for r, err := range records {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err == nil {
			_, err = to.Log().Append(ctx, stream, muster.Anywhere, r.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRecording makes the state of a team from a recording: the run, the events, the conversations, and the records of
// tasks and members as the events tell them at the end. A recording that was cut off, because its run was killed, ends
// with the last event that it has.
func copyRecording(ctx context.Context, o opened, rec *recording.Recording) error {
	if _, err := o.workspace.Runs().Change(ctx, func(r *muster.Run) { *r = rec.Run }); err != nil {
		return err
	}
	// The events are the truth. What they tell at the end is what the records would say.
	past, last := face.NewPast(rec.Run, rec.Tasks), rec.Run.StartedAt
	for _, e := range rec.Events {
		if err := o.Journal().Emit(ctx, e); err != nil {
			return err
		}
		past.Apply(e)
		last = max(last, e.At)
	}
	end := past.Overview(muster.Time(last))
	if err := team.PutTasks(ctx, o.Team, end.Tasks); err != nil {
		return err
	}
	// The page answers for members that have a record only.
	for _, m := range end.Members {
		data, err := muster.Encode(m.Member)
		if err == nil {
			_, err = o.workspace.Store().Table(muster.TableMembers).Put(ctx, string(m.Name), data, muster.None)
		}
		if err != nil {
			return err
		}
	}
	return team.PutConversations(ctx, o.Team, rec.Calls)
}
