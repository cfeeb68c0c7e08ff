package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
)

// Trouble is what a look at the index finds wrong.
type Trouble struct {
	Lane muster.Name // "": the index itself
	Text string
	Busy bool // it may also be the work of a process that lives

	Fix string // what to do first, where Recover cannot help; "" where it can
}

// Inspect finds what Recover would do something about, and what only the user can mend (Fix), and changes nothing.
func (l *Lanes) Inspect(ctx context.Context) (all []Trouble, err error) {
	x, data, err := l.load(ctx)
	if errors.Is(err, muster.ErrCorrupt) {
		all, x, err = append(all, Trouble{Text: err.Error()}), salvage(data), nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(x.rows)) {
		lane, _, err := x.lane(muster.Name(name))
		if err != nil {
			continue // another program's row, in a form that we do not know
		}
		t, err := l.trouble(ctx, l.resolved(lane))
		if err != nil {
			return nil, err
		}
		if t.Text != "" {
			all = append(all, t)
		}
	}
	found, err := l.listed(ctx)
	if err != nil {
		return nil, err
	}
	for _, lane := range found {
		if _, has := x.rows[string(lane.Name)]; !has {
			all = append(all, Trouble{Lane: lane.Name, Text: "git has it, and the index does not"})
		}
	}
	return all, nil
}

// Listed are the lanes of an index as it lies there: unlike List it mends nothing.
func (l *Lanes) Listed(ctx context.Context) ([]muster.Lane, error) {
	x, _, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	return l.rows(x), nil
}

// trouble is what is wrong with one lane; without a Text, nothing.
func (l *Lanes) trouble(ctx context.Context, lane muster.Lane) (t Trouble, err error) {
	t.Lane = lane.Name
	var maker string
	var r json.RawMessage
	switch {
	case lane.Status == muster.LaneCreating:
		if field(lane, fieldMaker, &maker) {
			held, err := l.files.Locked(filepath.Join(l.dir.Locks(), maker+".lock"))
			if err != nil || held {
				return t, err // it is just being made
			}
		}
		t.Text = "whoever made it died before it was whole"
		return t, nil
	case field(lane, fieldRemoving, &r):
		t.Text, t.Busy = "its removal was cut off", true
		if t.Fix = l.unlockIt(ctx, lane); t.Fix != "" {
			t.Text = "it cannot be removed: its worktree is locked"
		}
		return t, nil
	case lane.Status == muster.LaneFailed:
		return t, nil
	case !gone(lane.Path):
		return l.lost(ctx, lane)
	}
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	t.Text = "its directory is gone; the branch " + lane.Branch + " has its commits"
	if tip == "" {
		t.Text = "the index has it, and its directory and its branch are gone"
	}
	return t, err
}

// lost is the trouble of a lane whose directory is there and is no worktree of this repository any more.
func (l *Lanes) lost(ctx context.Context, lane muster.Lane) (Trouble, error) {
	_, err := l.look(ctx, lane)
	if err == nil || ctx.Err() != nil {
		return Trouble{}, err
	}
	if x, _, lerr := l.load(ctx); lerr == nil { // not Get, which would mend the index
		now, has, _ := x.lane(lane.Name)
		if _, removing := now.Extra[fieldRemoving]; removing || !has {
			return Trouble{}, nil // somebody is just removing it
		}
	}
	return Trouble{Lane: lane.Name, Text: err.Error(), Fix: l.reconnect(ctx, lane)}, nil
}

// unlockIt is what to type where somebody has locked the lane's worktree (git worktree lock); "" where nobody has, or
// git cannot tell.
func (l *Lanes) unlockIt(ctx context.Context, lane muster.Lane) string {
	w, _, err := l.repo.WorktreeAt(ctx, lane.Path)
	if err != nil || !w.Locked {
		return ""
	}
	return "git worktree unlock " + lane.Path
}

// reconnect is what to do where the lane's directory is no worktree of this repository any more, or its branch is gone: git
// can write the .git of one that it still knows.
func (l *Lanes) reconnect(ctx context.Context, lane muster.Lane) string {
	_, known, err := l.repo.WorktreeAt(ctx, lane.Path)
	if err != nil {
		return "see what is there; nothing in it is touched"
	}
	if !known {
		return fmt.Sprintf("git cannot mend it. Move it away: mv %[1]s %[1]s.lost  (its files stay there, its commits on the branch %s), then: muster doctor --repair", lane.Path, lane.Branch)
	}
	link := filepath.Join(lane.Path, ".git")
	if st, err := os.Lstat(link); err == nil && st.IsDir() {
		return fmt.Sprintf("mv %[1]s %[1]s.other  (a repository of its own), then: git worktree repair", link)
	}
	out, err := l.repo.Run(ctx, lane.Path, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err == nil && lane.Base != "" && samePath(strings.TrimSpace(out), l.repo.CommonDir()) { // tied, and its HEAD leads nowhere
		return fmt.Sprintf("git branch %s %s  (what it was made from; its files stay as they are)", lane.Branch, lane.Base)
	}
	return "git worktree repair"
}
