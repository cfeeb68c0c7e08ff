package worktree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/ports"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

// surrounded opens lanes that have ports, noted in cache.
func surrounded(t *testing.T, root, cache string) *world {
	t.Helper()
	return openWorld(t, root, worktree.Options{Ports: ports.Open(cache), PortCount: 3})
}

// environ returns the variables of a command in a lane, by name.
func (w *world) environ(lane muster.Lane, env ...string) map[string]string {
	w.t.Helper()
	set := map[string]string{}
	for _, kv := range worktree.Environ(w.ctx(), w.Lanes, lane.Path, env) {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	return set
}

// rowPorts returns the ports in the row of a lane.
func rowPorts(t *testing.T, lane muster.Lane) (all []int) {
	t.Helper()
	if err := json.Unmarshal(lane.Extra["ports"], &all); err != nil {
		t.Fatalf("the row has the ports %s: %v", lane.Extra["ports"], err)
	}
	return all
}

// leave makes a file, as a compiler that is killed leaves it.
func leave(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)))
}

// Lanes of several repositories and processes have ports and a temporary directory each, which stay.
func TestLanesHaveSurroundingsOfTheirOwn(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	a, b := surrounded(t, gittest.Repo(t, nil), cache), surrounded(t, gittest.Repo(t, nil), cache)
	one, two, three := a.create("one"), a.create("two"), b.create("one")
	seen := map[string]string{}
	for _, x := range []struct {
		w    *world
		lane muster.Lane
	}{{a, one}, {a, two}, {b, three}} {
		got := x.w.environ(x.lane)
		if got["PORT"] != got["MUSTER_PORT_1"] || got["MUSTER_PORT_3"] == "" || got["MUSTER_PORT_4"] != "" {
			t.Errorf("%s has %v", x.lane.Path, got)
		}
		for name, value := range got {
			if name == "PORT" {
				continue
			}
			if other, ok := seen[value]; ok {
				t.Errorf("%s of %s is that of %s", value, x.lane.Path, other)
			}
			seen[value] = x.lane.Path
		}
		temporary := got["TMPDIR"]
		if info, err := os.Stat(temporary); err != nil || !info.IsDir() {
			t.Error(err)
		}
		if strings.HasPrefix(temporary, x.w.root) || len(temporary)-len(os.Getenv("TMPDIR")) > 24 {
			t.Errorf("the temporary directory is %s", temporary)
		}
		// After a restart, and when the table is lost, they are the same: the row has them.
		require.NoError(t, os.Remove(filepath.Join(cache, "ports.json")))
		again := surrounded(t, x.w.root, cache)
		if after := again.environ(x.lane); after["PORT"] != got["PORT"] || after["TMPDIR"] != temporary {
			t.Errorf("%v, and after a restart %v", got, after)
		}
	}
	// A lane that was made without ports gets some, and keeps them.
	plain := openWorld(t, a.root, worktree.Options{}).create("plain")
	port := a.environ(plain)["PORT"]
	if row, err := a.Get(a.ctx(), "plain"); err != nil || fmt.Sprint(rowPorts(t, row)[0]) != port {
		t.Errorf("the row is %+v and not with %s, %v", row, port, err)
	}
	// The user's own PORT stays.
	if got := a.environ(one, "PORT=80"); got["PORT"] != "" || got["MUSTER_PORT_1"] == "" {
		t.Errorf("beside the user's PORT a lane has %v", got)
	}
	if set := worktree.Environ(a.ctx(), a.Lanes, a.root, nil); set != nil {
		t.Errorf("outside of lanes there is %v", set)
	}
}

// What a lane has goes with it, and is there for the next.
func TestSurroundingsGoWithTheLane(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	w := surrounded(t, gittest.Repo(t, nil), cache)
	lane := w.create("one")
	temporary := w.environ(lane)["TMPDIR"]
	leave(t, temporary+"/go-build1/b001/x")
	require.NoError(t, os.Chmod(filepath.Join(temporary, "go-build1"), 0o500))
	had := rowPorts(t, lane)
	require.NoError(t, w.Remove(w.ctx(), "one", false))
	if _, err := os.Stat(temporary); !os.IsNotExist(err) {
		t.Errorf("%s is there after the lane: %v", temporary, err)
	}
	if got := rowPorts(t, w.create("one")); !slices.Equal(got, had) {
		t.Errorf("the lane that is made again has %v, not %v: they were not given back", got, had)
	}
	// However long nothing was written there, a lane that is there keeps it.
	temporary = w.environ(lane)["TMPDIR"]
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(temporary, old, old))
	if removed, err := worktree.RemoveTemporaries(t.Context(), w.Lanes); err != nil || len(removed) > 0 {
		t.Errorf("removed are %v, %v", removed, err)
	}
	// A lane that somebody removes by hand, with its repository or without it, leaves them to the next clean.
	require.NoError(t, os.RemoveAll(w.root))
	other := surrounded(t, gittest.Repo(t, nil), cache)
	if removed, err := worktree.RemoveTemporaries(t.Context(), other.Lanes); err != nil || !slices.Equal(removed, []string{temporary}) {
		t.Errorf("removed are %v and not %s, %v", removed, temporary, err)
	}
	// One of a lane that nobody knows goes before the next lane is made, when nobody has written there for a day.
	for name, goes := range map[muster.Name]bool{"early": false, "late": true} {
		if leave(t, temporary+"/x"); goes {
			require.NoError(t, os.Chtimes(temporary, old, old))
		}
		other.create(name)
		equal(t, string(name)+": it is gone", !exists(temporary), goes)
	}
}

// What a killed member's commands left is gone before the next one's first command, and nobody else's entry removes
// anything.
func TestLeftoversGoWithTheNextMember(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := surrounded(t, gittest.Repo(t, nil), t.TempDir())
	lane := w.create("one")
	nobody, dead := worktree.Occupant{}, worktree.Occupant{Member: "alice", Host: "h1"}
	for _, step := range []struct {
		old, new worktree.Occupant
		stays    bool
	}{
		{nobody, dead, true}, // people may have begun something there
		{worktree.Occupant{Member: "bob", Host: "h1"}, worktree.Occupant{Member: "alice", Host: "h2"}, true},
		{dead, worktree.Occupant{Member: "alice", Host: "h2"}, false},
		{worktree.Occupant{Member: "alice", Host: "h2"}, nobody, true},
	} {
		temporary := w.environ(lane)["TMPDIR"]
		leave(t, temporary+"/go-build1/x")
		isHeld := errors.Is(w.Occupy(w.ctx(), "one", step.old, step.new), muster.ErrHeld)
		equal(t, fmt.Sprint(step, " is held"), isHeld, step.old.Member == "bob")
		equal(t, fmt.Sprint(step, " stays"), exists(temporary+"/go-build1"), step.stays)
	}
}

// The place for temporary files can be guessed. What somebody else has made there is not used.
func TestTemporaryRootOfAnother(t *testing.T) {
	tmp, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	w := surrounded(t, gittest.Repo(t, nil), t.TempDir())
	lane := w.create("one")
	root := filepath.Dir(w.environ(lane)["TMPDIR"])
	require.NoError(t, os.Chmod(root, 0o755))
	w.environ(lane)
	equal(t, "who may look into it", require.Value(os.Stat(root))(t).Mode().Perm(), 0o700)
	require.NoError(t, os.RemoveAll(root))
	require.NoError(t, os.Symlink(elsewhere, root))
	if got := w.environ(lane); got["TMPDIR"] != "" || got["PORT"] == "" {
		t.Errorf("behind a link the lane has %v", got)
	}
	require.NoError(t, w.Remove(w.ctx(), "one", false))
}

// Members have lanes, scratch checkouts and what is made in their temporary directories. The rest is the user's.
func TestWhoseAWorktreeIs(t *testing.T) {
	tmp := require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Setenv("TMPDIR", tmp)
	w := surrounded(t, gittest.Repo(t, nil), t.TempDir())
	lane, users := w.create("one"), w.root+"/.worktrees/users"
	w.git(w.root, "worktree", "add", "-q", "-b", "users", users)
	own := w.environ(lane)["TMPDIR"]
	for dir, want := range map[string]bool{lane.Path: true, w.scratchAt(): true, own + "/x": true,
		tmp + "/muster-check-x/tree": true, filepath.Dir(own) + "0/x": false, users: false, users + "/one": false} {
		equal(t, dir, w.IsMembers(w.ctx(), dir), want)
	}
	returns(t, users)(w.CheckedOutElsewhere(w.ctx(), "refs/heads/users"))
	returns(t, "")(w.CheckedOutElsewhere(w.ctx(), "refs/heads/wt/one"))
}

func TestOccupy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	nobody := worktree.Occupant{}
	alice, bob := worktree.Occupant{Member: "alice", Host: "host-1.1"}, worktree.Occupant{Member: "bob", Host: "host-2.1"}
	again := worktree.Occupant{Member: "alice", Host: "host-1.2"}
	for _, step := range []struct {
		was, who, then worktree.Occupant
		err            error
	}{
		{nobody, alice, alice, nil},
		{nobody, bob, alice, muster.ErrHeld},
		{bob, nobody, alice, muster.ErrHeld}, // who leaves is not in it
		{alice, again, again, nil},           // taken over by another life of the process
		{alice, nobody, again, muster.ErrHeld},
		{again, nobody, nobody, nil},
		{nobody, bob, bob, nil},
	} {
		if err := w.Occupy(w.ctx(), "one", step.was, step.who); !errors.Is(err, step.err) {
			t.Errorf("%v in the place of %v: %v, want %v", step.who, step.was, err, step.err)
		}
		lane, err := w.Get(w.ctx(), "one")
		if now := worktree.OccupantOf(lane); err != nil || now != step.then {
			t.Errorf("%v in the place of %v: it is %v, %v", step.who, step.was, now, err)
		}
	}
	require.NoError(t, w.Release(w.ctx(), "one"))
	if lane, _ := w.Get(w.ctx(), "one"); worktree.OccupantOf(lane) != bob {
		t.Errorf("another change of the row lost its occupant: %v", lane)
	}
	wants(t, w.Occupy(w.ctx(), "none", nobody, bob), muster.ErrNotFound, "")
}
