package git

import (
	"context"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
)

// Pack makes the commits in want durable, with all that they need beyond the commits in have. Objects that are still
// loose go into a pack, which git syncs; then the pack's directory is synced. Call it before a ref or a record names a
// commit: a power cut could otherwise leave the name of a commit that the disk does not have.
func (r *Repo) Pack(ctx context.Context, want, have []string) error {
	// The input is a list of revisions: those to keep, and with ^ those that the disk has already.
	var in strings.Builder
	for _, w := range want {
		in.WriteString(w + "\n")
	}
	for _, h := range have {
		if h != "" {
			in.WriteString("^" + h + "\n")
		}
	}
	packs := filepath.Join(r.common, "objects", "pack")
	_, err := r.Do(ctx, Call{Dir: r.common, Stdin: in.String(), Args: []string{"pack-objects", "--revs",
		"--incremental", "--non-empty", "--delta-base-offset", "--quiet", filepath.Join(packs, "pack")}})
	if err != nil {
		return muster.Errorf(muster.Unavailable, "commits cannot be made durable: %w", err)
	}
	failpoint.Hit("objects.packed")
	if err := (durable.OS{}).SyncDir(packs); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be synced: %w", packs, err)
	}
	return nil
}
