package cli

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"

	"muster"
	"muster/internal/paths"
	"muster/internal/workspace"
	"muster/journal"
	"muster/store/file"
	"muster/store/mem"
	"muster/team"
)

// openArchive opens an archived team to look at. All that a face reads of it is copied into memory: the records, the
// events, what was spent and the conversations. A face cannot tell the copy from a team, and nothing that it did with
// it would reach a file. Mail stays where it is, because nobody reads an inbox of the past.
func openArchive(ctx context.Context, a *App, name string) (opened, error) {
	store := mem.New()
	o, err := openInMemory(ctx, a, store)
	if err != nil {
		return o, err
	}
	archive, err := o.workspace.Archived(name)
	if err == nil {
		err = copyArchive(ctx, store, o.workspace, archive)
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

// copyArchive copies what is looked at of an archived team. What cannot be read is left out, as it is of a team at
// work: a line that is damaged hides no other one. The archive stays as it is.
func copyArchive(ctx context.Context, to muster.Store, w *workspace.Workspace, t workspace.ArchivedTeam) error {
	// The part of a team that is in an interrupted archive would look as if the rest had never been.
	if err := workspace.ErrIncomplete(t); err != nil {
		return err
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
	// The helpers of members have no records. The events name them.
	for r, err := range from.Log().Read(ctx, muster.StreamEvents, 0) {
		var e muster.Event
		if err != nil || e.UnmarshalJSON(r.Data) != nil || e.Kind != journal.AgentStarted {
			continue
		}
		stream := muster.StreamTranscripts + e.Text("agent")
		if _, _, ok := muster.HelpedBy(muster.Name(e.Text("agent"))); ok && !slices.Contains(streams, stream) {
			streams = append(streams, stream)
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
