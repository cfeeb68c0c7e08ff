package git

import (
	"cmp"
	"context"
	"path/filepath"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
)

// Pack makes a commit durable, with all that it needs beyond the commit base, which is on the disk already; "" is none.
// Objects that are still loose go into a pack, which git syncs; then the pack's directory is synced. Call it before a
// ref or a record names the commit: a power cut could otherwise leave the name of one that the disk does not have.
func (r *Repo) Pack(ctx context.Context, base, commit string) error {
	revisions := commit + "\n"
	if base != "" {
		revisions += "^" + base + "\n"
	}
	dir := filepath.Join(r.common, "objects", "pack")
	args := []string{"pack-objects", "--revs", "--non-empty", "--incremental", "--delta-base-offset",
		"--index-version=2", "--quiet", filepath.Join(dir, "pack")}
	_, err := r.Do(ctx, Call{Dir: r.common, Stdin: revisions, Args: args})
	if err == nil {
		failpoint.Hit("objects.packed")
		err = durable.OS{}.SyncDir(dir)
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "commits cannot be made durable: %w", err)
	}
	return nil
}

// Tidy has git repack where many packs or loose objects have gathered, as it does after a commit or a push of the
// user's: in the background, and not where the user's settings forbid it.
func (r *Repo) Tidy(ctx context.Context) error {
	if r.settings["maintenance.auto"] == "false" {
		return nil
	}
	const byDefault = "6700" // loose objects
	_, err := r.Do(ctx, Call{Dir: r.common, Args: []string{"gc", "--auto", "--quiet"},
		Settings: []Setting{{"gc.auto", cmp.Or(r.settings["gc.auto"], byDefault)}}})
	return err
}
