package worktree_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
)

// Of a damaged index the part before the damage stays, and nothing is made of the part behind it.
func TestWhatStaysOfADamagedIndex(t *testing.T) {
	t.Parallel()
	one, two := `"one":{"status":"kept","base":"1234"}`, `"two":{"status":"kept","base":"5678"}`
	for name, c := range map[string]struct {
		text   string
		fields []string
		rows   []string
	}{
		"cut in a value": {`{"version":7,"worktrees":{` + one + `,"two":{"status":"kept","ba`, []string{"version", "worktrees"}, []string{"one"}},
		"cut in a key":   {`{"version":7,"worktrees":{` + one + `,"tw`, []string{"version", "worktrees"}, []string{"one"}},
		"zeros":          {`{"worktrees":{` + one + `,"two":{"a": ` + "\x00" + `},"b":{}}}`, []string{"worktrees"}, []string{"one"}},
		"behind rows":    {`{"worktrees":{` + one + `},"version":7,"x`, []string{"version", "worktrees"}, []string{"one"}},
		"two writes":     {`{"worktrees":{` + one + `}}{"worktrees":{` + two + `}}`, []string{"worktrees"}, []string{"one", "two"}},
		"no table":       {`{"worktrees":["one",{"status":"kept"}]}`, []string{"worktrees"}, nil},
		"no object":      {`["version",7]`, []string{"worktrees"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			for range 2 { // the same damage may come again
				w.writeIndex(c.text)
				// A change that is refused leaves a whole index too.
				wants(t, w.Keep(w.ctx(), "none"), muster.ErrNotFound, "none")
				var top map[string]json.RawMessage
				var rows map[string]muster.Lane
				if err := json.Unmarshal([]byte(w.index()), &top); err != nil {
					t.Fatalf("the index is still %s", w.index())
				}
				require.NoError(t, json.Unmarshal(top["worktrees"], &rows))
				if got := slices.Sorted(maps.Keys(top)); !slices.Equal(got, c.fields) {
					t.Errorf("the fields are %v", got)
				}
				if got := slices.Sorted(maps.Keys(rows)); !slices.Equal(got, c.rows) || len(got) > 0 && rows["one"].Base != "1234" {
					t.Errorf("the rows are %v", rows)
				}
			}
			kept, _ := filepath.Glob(w.root + "/.team/damaged/*")
			if len(kept) != 1 || !regexp.MustCompile(`/index\.json\.[0-9a-f]{8}$`).MatchString(kept[0]) {
				t.Errorf("kept: %v", kept)
			}
			for e, err := range journal.New(w.log).Read(w.ctx(), 0) {
				if err != nil || len(e.Text("rev")) != 32 { // as the revisions of documents
					t.Errorf("told %+v, %v", e, err)
				}
			}
		})
	}
}

// While one process searches for the lanes of a damaged index, another one has rebuilt it and gone on: its work stays.
func TestADamagedIndexThatSomebodyElseRebuilds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	w.writeIndex(`{"worktrees":{"one":{`)
	l := w.on(&onDisk{name: "lanes.lock", left: 1, act: func() { require.NoError(t, w.Keep(w.ctx(), "one")) }})
	if all, err := l.List(w.ctx()); err != nil || len(all) != 1 || all[0].Status != muster.LaneKept {
		t.Errorf("%+v, %v", all, err)
	}
}

// A worktree without a row is a lane only where lanes are, on the branch of its name, with its directory. It gets back
// its task, its time and its status.
func TestWhichWorktreesAreFoundAsLanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{w.root + "/.worktrees/mine", t.TempDir() + "/elsewhere", w.root + "/.worktrees/UPPER",
		w.root + "/.worktrees/gone"} {
		name := filepath.Base(path)
		branch := "wt/" + name
		if name == "mine" {
			branch = "feature"
		}
		w.git(w.root, "worktree", "add", "-q", "-b", branch, path)
	}
	require.NoError(t, os.RemoveAll(w.root+"/.worktrees/gone"))
	returns(t, "")(w.CheckedOutElsewhere(w.ctx(), "refs/heads/wt/gone"))
	w.create("lost") // an earlier lane of that name
	require.NoError(t, w.Keep(w.ctx(), "lost"))
	require.NoError(t, w.Remove(w.ctx(), "lost", true))
	lane, err := w.Create(w.ctx(), "lost", 7, "")
	require.NoError(t, err)
	w.rows()
	require.NoError(t, w.Recover(w.ctx()))
	all, err := w.List(w.ctx())
	if err != nil || len(all) != 1 || all[0].Name != "lost" || all[0].TaskID != 7 || all[0].Status != muster.LaneActive ||
		all[0].CreatedAt < lane.CreatedAt || all[0].Branch != "wt/lost" || all[0].Path != lane.Path {
		t.Errorf("found %+v, %v", all, err)
	}
}

// Recovery removes the files of killed writers and the locks of killed gits, and nothing else.
func TestRecoveryRemovesWhatKilledProcessesLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	gittest.Write(t, w.root, map[string]string{".worktrees/.index.json.abc.tmp": "{", ".worktrees/.x.tmp/a": "a",
		".worktrees/notes": "mine\n", ".git/worktrees/one/index.lock": ""})
	w.age(".git/worktrees/one/index.lock")
	require.NoError(t, w.Recover(w.ctx()))
	w.git(w.root+"/.worktrees/one", "commit", "-q", "--allow-empty", "-m", "as its owner does")
	entries, err := os.ReadDir(w.root + "/.worktrees")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != ".x.tmp index.json notes one" {
		t.Errorf("there are %s, %v", got, err)
	}
}

// Lanes are made where the settings say: at a path in the repository, or at one that symbolic links lead to.
func TestWhereLanesAreMade(t *testing.T) {
	t.Parallel()
	root, real := gittest.Repo(t, nil), t.TempDir()
	require.NoError(t, os.Symlink(real, root+"/link"))
	openWorld(t, root, worktree.Options{}).create("old")
	moved := openWorld(t, root, worktree.Options{Dir: "made/here"}) // the settings were changed
	moved.ok(moved.Enter(moved.ctx(), "old"))
	for dir, want := range map[string]string{"made/here": root + "/made/here/one", "link/lanes": real + "/lanes/two"} {
		w := openWorld(t, root, worktree.Options{Dir: dir})
		if lane := w.create(muster.Name(filepath.Base(want))); lane.Path != want {
			t.Errorf("made in %s", lane.Path)
		}
		gittest.Write(t, want, map[string]string{"made/hereabouts": "none of the lanes\n"})
		w.ok2(w.Commit(w.ctx(), muster.Name(filepath.Base(want)), "work"))
		gittest.Write(t, want, map[string]string{"Made/here/x": "it would land among the lanes\n"})
		_, _, err := w.Commit(w.ctx(), muster.Name(filepath.Base(want)), "work")
		equal(t, dir+": it is refused", errors.Is(err, muster.ErrInvalid), dir == "made/here")
		w.rows() // a lane is found again there
		require.NoError(t, w.Recover(w.ctx()))
		if lane, err := w.Get(w.ctx(), muster.Name(filepath.Base(want))); err != nil || lane.Path != want {
			t.Errorf("found %+v, %v", lane, err)
		}
	}
}

// Another program that keeps the index in memory writes an old copy of it, in which a lane is still being made, or is not
// there. It goes on as it was for the process that works in it.
func TestAnIndexThatIsWrittenAgainIsPutRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	nobody, alice := worktree.Occupant{}, worktree.Occupant{Member: "alice", Host: "host-1.1"}
	lane := w.create("one", map[string]string{"b": "b\n"})
	empty := w.index()
	creating := strings.Replace(empty, `"status": "active"`, `"status": "creating", "maker": "lane-maker-1"`, 1)
	require.NoError(t, w.Occupy(w.ctx(), "one", nobody, alice))
	at := regexp.MustCompile(`"created_at": [0-9.]+`)
	for _, old := range []string{`{"worktrees":{}}`, empty, creating, at.ReplaceAllString(empty, `"created_at": 1`)} {
		w.writeIndex(old)
		returns(t, lane.Path)(w.Workdir(w.ctx(), "one"))
		got, err := w.Get(w.ctx(), "one")
		if err != nil || got.Base != lane.Base || got.Status != muster.LaneActive || worktree.OccupantOf(got) != alice {
			t.Errorf("%+v, %v", got, err)
		}
	}
	w.writeIndex(at.ReplaceAllString(empty, `"created_at": 9000000000`)) // another process has made it since
	if got, err := w.Get(w.ctx(), "one"); err != nil || got.CreatedAt != 9e9 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, changed, err := w.Commit(w.ctx(), "one", "work"); err != nil || !changed || gittest.Read(t, lane.Path, "b") != "b\n" {
		t.Errorf("committed %v, %v", changed, err)
	}
	require.NoError(t, w.Remove(w.ctx(), "one", true))
	w.create("one") // another lane, in which she never was
	w.ok(w.Get(w.ctx(), "one"))
	require.NoError(t, w.Occupy(w.ctx(), "one", nobody, alice))
}
