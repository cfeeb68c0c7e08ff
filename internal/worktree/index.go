package worktree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"muster"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/journal"
)

// document is the content of .worktrees/index.json: {"worktrees":{"NAME":{...}}}. A row stays as it was read until it
// is changed, so that what other programs write there survives. The zero value is an empty index.
type document struct {
	top  map[string]json.RawMessage
	rows map[string]json.RawMessage

	damage  error  // a muster.ErrCorrupt: the file cannot be read, and top and rows have the part before its damage
	damaged []byte // what was read then
}

// lane decodes the row of a lane. Errors: NotFound, and Corrupt for what another program wrote in another form.
func (d *document) lane(name muster.Name) (lane muster.Lane, err error) {
	raw, ok := d.rows[string(name)]
	if !ok {
		return lane, errNoLane(name)
	}
	if err := json.Unmarshal(raw, &lane); err != nil {
		return lane, muster.Errorf(muster.Corrupt, "the row of lane %q in the lanes' index cannot be read: %w",
			string(name), err)
	}
	// The key is the name, whatever the row says: other programs leave the name out of the row.
	lane.Name = name
	return lane, nil
}

func (d *document) has(name muster.Name) bool {
	_, ok := d.rows[string(name)]
	return ok
}

// put replaces a row. The fields that other programs have added are in lane.Extra, so they are written again.
func (d *document) put(lane muster.Lane) error {
	raw, err := muster.MarshalLine(lane)
	if err != nil {
		return err
	}
	if d.rows == nil {
		d.rows = map[string]json.RawMessage{}
	}
	d.rows[string(lane.Name)] = raw
	return nil
}

func (d *document) putMissing(lanes []muster.Lane) error {
	for _, lane := range lanes {
		if d.has(lane.Name) {
			continue
		}
		if err := d.put(lane); err != nil {
			return err
		}
	}
	return nil
}

// index is the durable table of lanes. It is read anew for each use, because other programs write it too, and a
// decision on an old copy could give one lane to two members. Every change happens under its lock; the file is replaced
// as a whole, so a crash leaves the old one or the new one.
type index struct {
	files   *durable.Files
	dir     paths.Dir
	corrupt *corruption.Teller
	// Lanes that the index lacks are found again by these.
	repo    *git.Repo
	home    string // the directory in which lanes are made
	journal *journal.Journal

	written  sync.Map // by name, the muster.Lane that this process wrote last
	occupied sync.Map // by name, the Occupant that this process put there
}

// lockPath is the lock that is held while the index is read, changed and written.
func (x *index) lockPath() string { return filepath.Join(x.dir.Locks(), "lanes.lock") }

// resolved returns a lane with an absolute path, because other programs may write a relative one, where it is now, and
// with a base that is believed: the commit from which the runtime made the branch, by git's log of it. The row's own
// base counts where there is no such log. An empty one is not known, and stays so.
func (x *index) resolved(lane muster.Lane) muster.Lane {
	if lane.Path != "" && !filepath.IsAbs(lane.Path) {
		lane.Path = filepath.Join(string(x.dir), lane.Path)
	}
	// A moved repository takes its lanes along. What a row names elsewhere is left to checkRow while something is
	// there.
	if name := string(lane.Name); filepath.Base(lane.Path) == name && !x.isHome(filepath.Dir(lane.Path)) &&
		durable.IsMissing(lane.Path) {
		lane.Path = filepath.Join(x.home, name)
	}
	if made := git.MadeAt(x.repo, branchRef(lane)); made != "" && lane.Base != "" {
		lane.Base = made
	} else if !git.IsID(lane.Base) { // it becomes an argument of git
		lane.Base = ""
	}
	return lane
}

// lanes returns the lanes of a document, sorted by name, without the rows that cannot be read.
func (x *index) lanes(doc *document) (all []muster.Lane) {
	for _, name := range slices.Sorted(maps.Keys(doc.rows)) {
		if lane, err := doc.lane(muster.Name(name)); err == nil {
			all = append(all, x.resolved(lane))
		}
	}
	return all
}

// get returns a lane with which something may be done: its row passes checkRow. Errors: NotFound, Invalid.
func (x *index) get(ctx context.Context, name muster.Name) (lane muster.Lane, err error) {
	doc, err := x.read(ctx)
	if err != nil {
		return lane, err
	}
	if lane, err = doc.lane(name); err != nil {
		return lane, err
	}
	lane = x.resolved(lane)
	return lane, x.checkRow(lane)
}

// read returns the index as it is now. It rebuilds one that cannot be read.
func (x *index) read(ctx context.Context) (*document, error) {
	doc, err := x.load()
	if err == nil && doc.damage != nil {
		err = x.edit(ctx, func(rebuilt *document) error { doc = rebuilt; return nil })
	}
	return doc, err
}

// load reads the index and changes nothing, so Check can use it. One that cannot be read is a document with a damage.
func (x *index) load() (*document, error) {
	data, _, err := x.files.ReadFile(x.dir.Index())
	if errors.Is(err, fs.ErrNotExist) {
		return &document{}, nil
	}
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the lanes' index cannot be read: %w", err)
	}
	text := muster.TrimBOM(data)
	// The rows stay undecoded: one that cannot be read must not hide the others.
	doc := &document{}
	err = json.Unmarshal(text, &doc.top)
	if rows := doc.top["worktrees"]; err == nil && rows != nil {
		err = json.Unmarshal(rows, &doc.rows)
	}
	if err == nil {
		return doc, nil
	}
	doc = &document{top: map[string]json.RawMessage{}, rows: map[string]json.RawMessage{}, damaged: data}
	// Two writes may lie one behind the other.
	for d := json.NewDecoder(bytes.NewReader(text)); salvage(d, doc.top, doc.rows); {
	}
	doc.damage = muster.Errorf(muster.Corrupt, "the lanes' index %s cannot be read: %w", x.dir.Index(), err)
	return doc, nil
}

// edit lets f change the index while no other process does. f must not run git: while that waits for a lock of its own,
// every other process of the team would wait too. An index that cannot be read is rebuilt first.
func (x *index) edit(ctx context.Context, f func(*document) error) error {
	var found []muster.Lane
	for hasSearched := false; ; hasSearched = true {
		unlock, err := x.files.Lock(ctx, x.lockPath())
		if err != nil {
			return err
		}
		// Another process may have rebuilt the index before the lock was ours.
		doc, err := x.load()
		if err == nil && doc.damage != nil && hasSearched {
			err = x.rebuild(ctx, doc, found)
		}
		if err == nil && doc.damage == nil {
			if err = f(doc); err == nil {
				err = x.write(doc)
			}
		}
		unlock()
		if err != nil || doc.damage == nil {
			return err
		}
		// The lanes are searched without the lock, because git is asked.
		if found, err = x.missing(ctx, &document{}); err != nil {
			return err
		}
	}
}

// write replaces the index. The caller holds the lock.
func (x *index) write(doc *document) error {
	all := map[string]any{}
	for name, field := range doc.top {
		all[name] = field
	}
	all["worktrees"] = maps.Collect(maps.All(doc.rows)) // never nil: without rows it is written as {}, not as null
	data, err := muster.Encode(all)
	if err != nil {
		return muster.Errorf(muster.Invalid, "the lanes' index cannot be written: %w", err)
	}
	return x.files.Replace(x.dir.Index(), data)
}

// update lets f change the row of a lane, and returns the new row. The error is NotFound when there is none.
func (x *index) update(
	ctx context.Context, name muster.Name, f func(*muster.Lane) error,
) (lane muster.Lane, err error) {
	err = x.edit(ctx, func(doc *document) error {
		if lane, err = doc.lane(name); err == nil {
			err = f(&lane)
		}
		if err != nil {
			return err
		}
		return doc.put(lane)
	})
	if lane = x.resolved(lane); err == nil {
		x.written.Store(name, lane)
	}
	return lane, err
}

// setMade sets the status of a lane that nobody is making any more, and its ports.
func (x *index) setMade(
	ctx context.Context, name muster.Name, status muster.LaneStatus, ports ...int,
) (muster.Lane, error) {
	return x.update(ctx, name, func(row *muster.Lane) error {
		row.Status = status
		clearField(row, fieldMaker)
		if len(ports) > 0 {
			setField(row, fieldPorts, ports)
		}
		return nil
	})
}

// delete removes a row, and reports whether there was one: of several processes that remove it, one is told so.
func (x *index) delete(ctx context.Context, name muster.Name) (existed bool, err error) {
	err = x.edit(ctx, func(doc *document) error {
		existed = doc.has(name)
		delete(doc.rows, string(name))
		return nil
	})
	if err == nil {
		x.written.Delete(name)
		x.occupied.Delete(name)
	}
	return existed, err
}

// addMissing adds the lanes that git has and the index lacks, because somebody has deleted it or put back an old copy.
func (x *index) addMissing(ctx context.Context) error {
	doc, err := x.read(ctx)
	if err != nil {
		return err
	}
	// git runs before the lock is taken. A lane that was made meanwhile keeps its own row, which knows its base.
	missing, err := x.missing(ctx, doc)
	if err != nil || len(missing) == 0 {
		return err
	}
	return x.edit(ctx, func(doc *document) error { return doc.putMissing(missing) })
}

// removeTemporaryFiles removes what killed writers of the index left. A living one would hold the lock.
func (x *index) removeTemporaryFiles(ctx context.Context) error {
	unlock, err := x.files.Lock(ctx, x.lockPath())
	if err != nil {
		return err
	}
	defer unlock()
	for _, path := range durable.Glob(x.dir.Worktrees(), "*") {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || !durable.IsTemporary(info.Name()) {
			continue
		}
		if err := x.files.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
