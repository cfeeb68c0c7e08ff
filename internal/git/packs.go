package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
)

// A pack that the runtime has written is noted by an empty file of its name in muster/packs of git's directory, so that
// no pack of the user's is ever removed. A pack whose writer was killed before it was noted stays for the user's git
// gc.
//
// Invariant: a noted pack is removed only when each of its objects is in another pack, which is synced. A git that has
// opened the old pack reads on in it, and one that does not find it looks for new packs, as it does during a git gc. If
// a git gc runs at the same time, the objects are in its pack or in ours, because each of the two removes only what it
// has copied. A pack with a .keep file or in a multi-pack index stays.

const (
	// maxIndex is the size of the largest index of a pack that is read: that of a quarter of a million objects.
	maxIndex = 8 << 20
	// maxMerged is how many bytes of packs are merged into one, so that the end of a run stays short. Larger packs cost
	// git little.
	maxMerged = 64 << 20
)

// packDir is git's common directory, in which the packs lie.
type packDir string

// Pack makes a commit durable, with all that it needs beyond the commit base, which is on the disk already; "" is none.
// Objects that are still loose go into a pack, which git syncs; then the pack's directory is synced. Call it before a
// ref or a record names the commit: a power cut could otherwise leave the name of one that the disk does not have.
func (r *Repo) Pack(ctx context.Context, base, commit string) error {
	revisions := commit + "\n"
	if base != "" {
		revisions += "^" + base + "\n"
	}
	_, err := writePacks(ctx, r, revisions, []string{"--revs", "--non-empty", "--incremental"})
	return err
}

// MergePacks merges the packs that Pack has written into one, if there are at least so many. It does nothing while
// another process does it.
func (r *Repo) MergePacks(ctx context.Context, least int) error {
	if len(packDir(r.common).notedPacks()) < max(least, 2) {
		return nil
	}
	unlock, err := durable.New(durable.OS{Root: r.common}).TryLock(filepath.Join(r.common, "muster", "packs.lock"))
	if errors.Is(err, muster.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	old, ids := packDir(r.common).mergeable()
	if len(old) < 2 {
		return nil
	}
	packs, err := writePacks(ctx, r, ids, nil)
	if err != nil {
		return err
	}
	failpoint.Hit("packs.merged")
	packDir(r.common).removeCopied(packs, old...)
	return nil
}

// mergeable returns the noted packs that can be merged, the smallest first, and the ids of their objects, one a line.
// It removes what is left of packs whose removal was cut off.
func (d packDir) mergeable() (packs []string, ids string) {
	sizes := map[string]int64{}
	for _, name := range d.notedPacks() {
		if durable.IsMissing(d.packFile(name, ".idx")) {
			_ = d.removePack(name) // the next merge tries it again
		} else if fi, err := os.Stat(d.packFile(name, ".pack")); err == nil && !d.isInUse(name) {
			sizes[name], packs = fi.Size(), append(packs, name)
		}
	}
	slices.SortFunc(packs, func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	sum, lines := int64(0), strings.Builder{}
	for i, name := range packs {
		its, err := d.idsOf(name)
		if sum += sizes[name]; sum > maxMerged || err != nil {
			return packs[:i], lines.String()
		}
		for id := range its {
			lines.WriteString(hex.EncodeToString([]byte(id)) + "\n")
		}
	}
	return packs, lines.String()
}

// writePacks makes packs of what git reads from in, syncs and notes them, and returns their names: one, unless the user
// limits the size of packs.
func writePacks(ctx context.Context, r *Repo, in string, options []string) (packs []string, err error) {
	d := packDir(r.common)
	args := slices.Concat([]string{"pack-objects"}, options,
		[]string{"--delta-base-offset", "--index-version=2", "--quiet", d.packFile("pack", "")})
	out, err := r.Do(ctx, Call{Dir: r.common, Stdin: in, Args: args})
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "commits cannot be made durable: %w", err)
	}
	failpoint.Hit("objects.packed")
	dir := filepath.Dir(d.packFile("pack", ""))
	if err := (durable.OS{}).SyncDir(dir); err != nil {
		return nil, muster.Errorf(muster.Unavailable, "%s cannot be synced: %w", dir, err)
	}
	for id := range strings.FieldsSeq(out) {
		packs = append(packs, "pack-"+id)
		d.note("pack-" + id)
	}
	failpoint.Hit("packs.noted")
	return packs, nil
}

// note notes a pack of muster's. One that cannot be noted is never removed.
func (d packDir) note(name string) {
	if f, err := durable.CreateBelow(string(d), d.noteOf(name)); err == nil {
		_ = f.Close()
	}
}

// removeCopied removes the old packs of which each object is in the new ones. What cannot be removed stays, and costs
// only its room.
func (d packDir) removeCopied(packs []string, old ...string) {
	copied, err := d.idsOf(packs...)
	if err != nil {
		return
	}
	for _, name := range old {
		its, err := d.idsOf(name)
		isCopied := err == nil && !slices.Contains(packs, name)
		for id := range its {
			isCopied = isCopied && copied[id]
		}
		if isCopied && !d.isInUse(name) && d.removePack(name) != nil {
			return
		}
	}
}

// removePack removes the files of a pack. The index goes first: without it the pack does not exist for git. The note
// goes last, so that a removal which was cut off is found.
func (d packDir) removePack(name string) error {
	for _, path := range []string{d.packFile(name, ".idx"), d.packFile(name, ".pack"), d.packFile(name, ".rev"),
		d.noteOf(name)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		failpoint.Hit("packs.removing")
	}
	return nil
}

// notedPacks returns the names of the packs that are noted.
func (d packDir) notedPacks() (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(d.noteOf("pack"))) // none is noted, or they stay as they are
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), "pack-"); ok && IsID(id) && id != "" {
			names = append(names, e.Name())
		}
	}
	return names
}

// isInUse reports whether a pack has to stay: the user keeps it, it is no common pack, or an index of several packs
// names it.
func (d packDir) isInUse(name string) bool {
	for _, path := range []string{d.packFile(name, ".keep"), d.packFile(name, ".promisor"), d.packFile(name, ".mtimes"),
		d.packFile("multi-pack-index", ""), d.packFile("multi-pack-index", ".d")} {
		if !durable.IsMissing(path) {
			return true
		}
	}
	return false
}

// idsOf returns the ids of the objects in packs, as bytes, by their indexes.
func (d packDir) idsOf(packs ...string) (ids map[string]bool, err error) {
	ids = map[string]bool{}
	for _, name := range packs {
		data, err := durable.ReadRegular(d.packFile(name, ".idx"), maxIndex)
		if err != nil {
			return nil, err
		}
		// A magic number, the version, 256 counts of which the last one is that of all, and the ids in their order.
		const head, last = 8 + 4*256, 8 + 4*255
		size := (len(name) - len("pack-")) / 2
		if len(data) < head || !bytes.HasPrefix(data, []byte("\xfftOc\x00\x00\x00\x02")) ||
			len(data)-head < int(binary.BigEndian.Uint32(data[last:]))*size {
			return nil, muster.Errorf(muster.Corrupt, "the index of the pack %s cannot be read", name)
		}
		for data = data[head : head+int(binary.BigEndian.Uint32(data[last:]))*size]; len(data) > 0; data = data[size:] {
			ids[string(data[:size])] = true
		}
	}
	return ids, nil
}

// packFile returns the path of a pack's file.
func (d packDir) packFile(name, suffix string) string {
	return filepath.Join(string(d), "objects", "pack", name+suffix)
}

// noteOf returns the path of the file that notes a pack.
func (d packDir) noteOf(name string) string { return filepath.Join(string(d), "muster", "packs", name) }
