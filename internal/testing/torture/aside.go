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

// maintenance is a command that moves the state of a team at rest.
type maintenance struct {
	name   string
	args   []string
	damage func(w *teamRepo) error
	check  func(w *teamRepo)
}

// aside archives a team that nobody runs, and repairs a damaged one. It kills each command at every point that it
// passes, and runs the command again. Then everything must be done, and nothing may be there twice.
func aside(ctx context.Context, a *env) error {
	for _, c := range []maintenance{
		{"archive", []string{"archive"}, func(*teamRepo) error { return nil }, (*teamRepo).checkArchive},
		{"repair", []string{"doctor", "--repair"}, (*teamRepo).damage, (*teamRepo).checkRepair},
	} {
		list := a.at(c.name + ".points")
		if err := a.maintain(ctx, c, "plain", "list:"+list); err != nil || a.row.Bad() {
			return err
		}
		data, err := os.ReadFile(list)
		if err != nil {
			return err
		}
		points := strings.Fields(string(data))
		a.rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		for _, p := range points[:min(a.amount(len(points), 4), len(points))] {
			if err := a.maintain(ctx, c, p, "kill:"+p); err != nil || a.row.Bad() {
				return err
			}
		}
	}
	return nil
}

// maintain runs the armed command in a repository of its own, and runs it again if it was killed.
func (a *env) maintain(ctx context.Context, c maintenance, name, arm string) error {
	w, err := a.rest(ctx, c.name+"-"+name)
	if err != nil {
		return err
	}
	if err := c.damage(w); err != nil {
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
func (a *env) rest(ctx context.Context, name string) (*teamRepo, error) {
	b := *a
	b.dir = a.at(name)
	w := &teamRepo{&b, a, b.dir}
	if err := os.MkdirAll(b.root(), 0o700); err != nil {
		return nil, err
	}
	if err := b.repository(); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"task", "add", "one"}, {"task", "add", "two"},
		{"team", "spawn", "alice", "--role", "coder"},
		{"mail", "send", "alice", "hello"}, {"worktree", "create", "try", "--task", "1"}, {"worktree", "run", "try",
			"echo precious > file"}} {
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
func (w *teamRepo) under(dir, name string) (all []string) {
	_ = filepath.WalkDir(filepath.Join(w.root(), dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == name {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// checkArchive wants everything to be in the archive, once, and nothing outside it.
func (w *teamRepo) checkArchive() {
	to := w.of
	for _, name := range []string{"task_1.json", "task_2.json", "log.jsonl", "lane_events.jsonl", "members", "inbox"} {
		switch in := w.under(".team/archive", name); {
		case len(in) == 0:
			to.fail(&to.row.Lost, "%s is not in the archive", name)
		case len(in) > 1:
			to.fail(&to.row.Doubled, "%s is in the archive %d times: %v", name, len(in), in)
		}
	}
	for _, left := range []string{".team/members", ".team/inbox", ".team/run.json", ".tasks/task_1.json",
		".transcripts/alice", ".worktrees/try", ".team/archive/moving"} {
		if _, err := os.Lstat(filepath.Join(w.root(), left)); err == nil {
			to.fail(&to.row.Stuck, "%s is left", left)
		}
	}
	if said, err := w.git("for-each-ref", "--format=%(refname)", "refs/muster/archive/"); err != nil ||
		strings.Count(said, "refs/") != 1 {
		to.fail(&to.row.Lost, "the lane's work is kept %d times (%v)", strings.Count(said, "refs/"), err)
	}
}

// damagedFiles are the documents that are damaged, and where a killed process has left something.
var (
	damagedFiles = []string{".tasks/meta.json", ".worktrees/index.json", ".team/config.json"}
	leftoverDirs = []string{".tasks", ".team", ".team/members", ".team/requests", ".team/hosts", ".team/damaged",
		".team/archive", ".worktrees"}
)

const leftoverName = ".left.json.abcdefghijkl.tmp"

// damage damages documents and leaves temporary files, as a killed process does.
func (w *teamRepo) damage() error {
	for _, name := range damagedFiles {
		if err := os.WriteFile(filepath.Join(w.root(), name), []byte(`{"half`), 0o600); err != nil {
			return err
		}
	}
	long := time.Now().Add(-30 * time.Minute)
	for _, dir := range leftoverDirs {
		path := filepath.Join(w.root(), dir, leftoverName)
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

// checkRepair wants every document to be readable, what it was to be kept, the lane to be known and the litter to
// be gone.
func (w *teamRepo) checkRepair() {
	to := w.of
	for _, name := range damagedFiles {
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
	if index, err := os.ReadFile(filepath.Join(w.root(), ".worktrees", "index.json")); err != nil ||
		!strings.Contains(string(index), `"try"`) {
		to.fail(&to.row.Lost, "the lane is not in the index: %s (%v)", index, err)
	}
	for _, dir := range leftoverDirs {
		if _, err := os.Lstat(filepath.Join(w.root(), dir, leftoverName)); err == nil {
			to.fail(nil, "%s is left", fmt.Sprint(dir, "/", leftoverName))
		}
	}
}
