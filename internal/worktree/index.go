package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/corruption"
)

// index is .worktrees/index.json: {"worktrees":{"NAME":{...}}}. Rows stay as they were read until one is changed, so
// what other programs write there survives.
type index struct {
	top  map[string]json.RawMessage
	rows map[string]json.RawMessage
}

func (x *index) lane(name muster.Name) (lane muster.Lane, ok bool, err error) {
	raw, ok := x.rows[string(name)]
	if !ok {
		return lane, false, nil
	}
	if err := json.Unmarshal(raw, &lane); err != nil {
		return lane, false, muster.Errorf(muster.Corrupt, "the index's row of lane %q cannot be read: %w", string(name), err)
	}
	lane.Name = name
	return lane, true, nil
}

func (x *index) put(lane muster.Lane) error {
	raw, err := muster.Line(lane)
	if err == nil {
		x.rows[string(lane.Name)] = raw
	}
	return err
}

func decode(data []byte) (*index, error) {
	x := &index{top: map[string]json.RawMessage{}, rows: map[string]json.RawMessage{}}
	if err := json.Unmarshal(data, &x.top); err != nil {
		return nil, err
	}
	if raw, ok := x.top["worktrees"]; ok {
		if err := json.Unmarshal(raw, &x.rows); err != nil {
			return nil, err
		}
	}
	if x.rows == nil {
		x.rows = map[string]json.RawMessage{}
	}
	return x, nil
}

func (x *index) encode() ([]byte, error) {
	rows, err := muster.Line(x.rows)
	if err != nil {
		return nil, err
	}
	top := maps.Clone(x.top)
	if top == nil {
		top = map[string]json.RawMessage{}
	}
	top["worktrees"] = rows
	return muster.Encode(top)
}

// read is the index as it is now. One that cannot be read is made anew.
func (l *Lanes) read(ctx context.Context) (*index, error) {
	for {
		x, data, err := l.load(ctx)
		if !errors.Is(err, muster.ErrCorrupt) {
			return x, err
		}
		if err := l.remake(ctx, data); err != nil {
			return nil, err
		}
	}
}

// load reads the index, and its bytes. Programs that write without our lock may be half done: it looks again once before
// it says Corrupt.
func (l *Lanes) load(ctx context.Context) (*index, []byte, error) {
	for again := true; ; again = false {
		data, err := l.slurp(l.dir.Index())
		if errors.Is(err, fs.ErrNotExist) {
			data, err = []byte("{}"), nil
		}
		if err != nil {
			return nil, nil, muster.Errorf(muster.Unavailable, "the lanes' index cannot be read: %w", err)
		}
		x, err := decode(muster.Unmarked(data))
		if err == nil {
			return x, data, nil
		}
		if !again {
			return nil, data, muster.Errorf(muster.Corrupt, "the lanes' index %s cannot be read: %w", l.dir.Index(), err)
		}
		if err := wait(ctx, corruption.HalfWritten); err != nil {
			return nil, nil, err
		}
	}
}

func (l *Lanes) slurp(path string) ([]byte, error) {
	f, err := l.files.FS().OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// lock is held while the index is read, changed and written.
func (l *Lanes) lock() string { return filepath.Join(l.dir.Locks(), "lanes.lock") }

// edit lets f change the index, alone. No git runs meanwhile.
func (l *Lanes) edit(ctx context.Context, f func(*index) error) error {
	for {
		bad, err := l.try(ctx, f)
		if !errors.Is(err, muster.ErrCorrupt) || bad == nil {
			return err
		}
		if err := l.remake(ctx, bad); err != nil {
			return err
		}
	}
}

// try is edit once; it returns the bytes of an index that cannot be read.
func (l *Lanes) try(ctx context.Context, f func(*index) error) (bad []byte, err error) {
	unlock, err := l.files.Lock(ctx, l.lock())
	if err != nil {
		return nil, err
	}
	defer unlock()
	x, bad, err := l.load(ctx)
	if err != nil {
		return bad, err
	}
	if err := f(x); err != nil {
		return nil, err
	}
	data, err := x.encode()
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "the lanes' index cannot be written: %w", err)
	}
	return nil, l.files.Replace(l.dir.Index(), data)
}

// change lets f change the row of a lane that is there.
func (l *Lanes) change(ctx context.Context, name muster.Name, f func(*muster.Lane) error) (lane muster.Lane, err error) {
	err = l.edit(ctx, func(x *index) error {
		var ok bool
		if lane, ok, err = x.lane(name); err != nil {
			return err
		}
		if !ok {
			return absent(name)
		}
		if err := f(&lane); err != nil {
			return err
		}
		return x.put(lane)
	})
	return l.resolved(lane), err
}

// drop removes a row, and says whether there was one.
func (l *Lanes) drop(ctx context.Context, name muster.Name) (was bool, err error) {
	err = l.edit(ctx, func(x *index) error {
		_, was = x.rows[string(name)]
		delete(x.rows, string(name))
		return nil
	})
	return was, err
}

// The fields of a row that are ours alone.
const (
	fieldMaker     = "maker"     // while creating: the lease of who makes it
	fieldRemoving  = "removing"  // the lane is on its way out: {"ref"}, where it is archived ("" when there was nothing)
	fieldKeep      = "keep"      // true: somebody asked to keep the lane, also when its task is done
	fieldCompleted = "completed" // the fence of the claim whose completion has been written into the lanes' log
	fieldOccupant  = "occupant"  // who stands in it: {"member","host"}
	fieldConflicts = "conflicts" // the files of the runtime's last merge that conflicted: {"path":"what the merge left, as a hash"}
)

func setField(lane *muster.Lane, name string, v any) error {
	raw, err := muster.Line(v)
	if err != nil {
		return err
	}
	extra := maps.Clone(lane.Extra)
	if extra == nil {
		extra = muster.Extra{}
	}
	extra[name] = raw
	lane.Extra = extra
	return nil
}

func clearField(lane *muster.Lane, name string) {
	extra := maps.Clone(lane.Extra)
	delete(extra, name)
	if len(extra) == 0 {
		extra = nil
	}
	lane.Extra = extra
}

// field reads one of them into v; false when it is not there.
func field(lane muster.Lane, name string, v any) bool {
	raw, ok := lane.Extra[name]
	return ok && json.Unmarshal(raw, v) == nil
}

// removal is what fieldRemoving holds.
type removal struct {
	Ref string `json:"ref"`
}
