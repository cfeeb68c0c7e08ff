package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
)

// tidying is a command that moves the state of a team at rest.
type tidying struct {
	name  string
	args  []string
	spoil func(w *world) error
	check func(w *world)
}

// aside: a team at rest is put into the archive, and a damaged one is repaired. Each command is killed at every point that
// it passes, and given again: then all is done, and nothing is there twice.
func aside(ctx context.Context, a *arena) error {
	for _, c := range []tidying{
		{"archive", []string{"archive"}, func(*world) error { return nil }, (*world).checkArchive},
		{"repair", []string{"doctor", "--repair"}, (*world).spoil, (*world).checkRepair},
	} {
		list := a.at(c.name + ".points")
		if err := a.tidy(ctx, c, "plain", "list:"+list); err != nil || a.row.Bad() {
			return err
		}
		data, err := os.ReadFile(list)
		if err != nil {
			return err
		}
		points := strings.Fields(string(data))
		a.dice.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		for _, p := range points[:min(a.amount(len(points), 4), len(points))] {
			if err := a.tidy(ctx, c, p, "kill:"+p); err != nil || a.row.Bad() {
				return err
			}
		}
	}
	return nil
}

// tidy gives the command in a world of its own, armed, and again until it comes to its end.
func (a *arena) tidy(ctx context.Context, c tidying, name, arm string) error {
	w, err := a.rest(ctx, c.name+"-"+name)
	if err != nil {
		return err
	}
	if err := c.spoil(w); err != nil {
		return err
	}
	code, said := w.muster(ctx, arm, c.args...)
	if code == -1 {
		a.row.Kills++
		a.row.AtPoints++
		a.row.Points[name]++
		began := time.Now()
		code, said = w.muster(ctx, "", c.args...)
		a.times = append(a.times, time.Since(began))
	}
	a.row.Operations++
	before := len(a.row.Violations)
	// What was killed after its last step has nothing left to do, and says so.
	if code != 0 && !(strings.Contains(said, "nothing to put aside") && arm != "") {
		a.fail(&a.row.Stuck, "muster %s does not come to its end: exit %d: %s", strings.Join(c.args, " "), code, said)
	}
	c.check(w)
	if len(a.row.Violations) > before {
		a.row.Violations = append(a.row.Violations, "armed with "+arm+", in "+w.dir)
		return nil
	}
	return os.RemoveAll(w.dir)
}

// rest is a team that nobody runs: two tasks, a member with a mail, a lane with work in it.
func (a *arena) rest(ctx context.Context, name string) (*world, error) {
	b := *a
	b.dir = a.at(name)
	w := &world{&b, a, b.dir}
	if err := os.MkdirAll(b.root(), 0o700); err != nil {
		return nil, err
	}
	if err := b.repository(); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"task", "add", "one"}, {"task", "add", "two"}, {"team", "spawn", "alice", "--role", "coder"},
		{"mail", "send", "alice", "hello"}, {"worktree", "create", "try", "--task", "1"}, {"worktree", "run", "try", "echo precious > file"}} {
		if code, said := w.muster(ctx, "", args...); code != 0 {
			return nil, muster.Errorf(muster.Unavailable, "muster %s: exit %d: %s", strings.Join(args, " "), code, said)
		}
	}
	dir := filepath.Join(w.root(), ".transcripts", "alice")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	line := `{"kind":"mark","ts":1,"text":"she was here"}` + "\n"
	return w, os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(line), 0o600)
}

// under are the paths of all files below a directory of the state that have the name.
func (w *world) under(dir, name string) (all []string) {
	_ = filepath.WalkDir(filepath.Join(w.root(), dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// checkArchive wants everything to be in the archive, once, and nothing outside it.
func (w *world) checkArchive() {
	to := w.of
	for _, name := range []string{"task_1.json", "task_2.json", "log.jsonl", "lane_events.jsonl", "members", "inbox"} {
		switch in := w.under(".team/archive", name); {
		case len(in) == 0:
			to.fail(&to.row.Lost, "%s is not in the archive", name)
		case len(in) > 1:
			to.fail(&to.row.Doubled, "%s is in the archive %d times: %v", name, len(in), in)
		}
	}
	for _, left := range []string{".team/members", ".team/inbox", ".team/run.json", ".tasks/task_1.json", ".transcripts/alice", ".worktrees/try", ".team/archive/moving"} {
		if _, err := os.Lstat(filepath.Join(w.root(), left)); err == nil {
			to.fail(&to.row.Stuck, "%s is left", left)
		}
	}
	if said, err := w.git("for-each-ref", "--format=%(refname)", "refs/muster/archive/"); err != nil || strings.Count(said, "refs/") != 1 {
		to.fail(&to.row.Lost, "the lane's work is kept %d times (%v)", strings.Count(said, "refs/"), err)
	}
}

// spoiled are the documents that are damaged, and where a killed process has left something.
var (
	spoiled  = []string{".tasks/meta.json", ".worktrees/index.json", ".team/config.json"}
	littered = []string{".tasks", ".team", ".team/members", ".team/requests", ".team/hosts", ".team/damaged", ".team/archive", ".worktrees"}
)

const litter = ".left.json.abcdefghijkl.tmp"

// spoil damages the state.
func (w *world) spoil() error {
	for _, name := range spoiled {
		if err := os.WriteFile(filepath.Join(w.root(), name), []byte(`{"half`), 0o600); err != nil {
			return err
		}
	}
	long := time.Now().Add(-30 * time.Minute)
	for _, dir := range littered {
		path := filepath.Join(w.root(), dir, litter)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path, long, long); err != nil {
			return err
		}
	}
	return nil
}

// checkRepair wants every document to be readable, what it was to be kept, the lane to be known and the litter to be gone.
func (w *world) checkRepair() {
	to := w.of
	for _, name := range spoiled {
		data, err := os.ReadFile(filepath.Join(w.root(), name))
		if err != nil || !json.Valid(data) {
			to.fail(&to.row.Lost, "%s is not repaired: %q (%v)", name, data, err)
		}
		kept, _ := os.ReadDir(filepath.Join(w.root(), ".team", "damaged"))
		if !slices.ContainsFunc(kept, func(e os.DirEntry) bool {
			return strings.Contains(e.Name(), strings.TrimSuffix(filepath.Base(name), ".json"))
		}) {
			to.fail(&to.row.Lost, "what %s was is not kept", name)
		}
	}
	if index, err := os.ReadFile(filepath.Join(w.root(), ".worktrees", "index.json")); err != nil || !strings.Contains(string(index), `"try"`) {
		to.fail(&to.row.Lost, "the lane is not in the index: %s (%v)", index, err)
	}
	for _, dir := range littered {
		if _, err := os.Lstat(filepath.Join(w.root(), dir, litter)); err == nil {
			to.fail(nil, "%s is left", fmt.Sprint(dir, "/", litter))
		}
	}
}
