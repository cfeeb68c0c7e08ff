package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/landing"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/store/file"
)

// job is what a worker process is started with.
type job struct {
	Kind   string // of workerFuncs
	Dir    string // the root of the repository
	Worker muster.Name
	Seed   uint64 // of what the worker draws
	Done   int    // the number of promises that the earlier processes of this worker have reported
}

// workerFuncs do the jobs. Each returns when its job is done, which is after the workers were told to finish.
var workerFuncs = map[string]func(context.Context, *worker) error{
	"claim": claimer, "land": lander,
}

// worker has the services of a team, and the job of the process that uses them.
type worker struct {
	*workspace.Workspace
	job
	rng    *rand.Rand
	lanes  *worktree.Lanes
	lander *landing.Lander
}

// isReady is the first line that a worker prints.
const isReady = "ready"

// work does the job that text describes. It refuses a directory that does not belong to a session.
func work(ctx context.Context, text string) error {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		_, err = os.Stat(filepath.Join(filepath.Dir(filepath.Dir(j.Dir)), marker))
	}
	do := workerFuncs[j.Kind]
	if err != nil || do == nil {
		return muster.Errorf(muster.Invalid, "%q is no job in the directory of a session", text).WithHint(command)
	}
	r, err := newWorker(ctx, j)
	if err != nil {
		return err
	}
	defer r.Close()
	r.report(isReady)
	return do(ctx, r)
}

// newWorker opens the services.
func newWorker(ctx context.Context, j job) (r *worker, err error) {
	r = &worker{job: j, rng: rand.New(rand.NewPCG(j.Seed, uint64(j.Done)))}
	r.Workspace, err = workspace.OpenRoot(j.Dir, workspace.Options{Target: target,
		Landing:   landing.Options{Check: landing.Check{Command: greenCheck}},
		OpenStore: func(root string) (muster.Store, error) { return file.Open(root) }})
	if err != nil {
		return nil, err
	}
	if r.lanes, err = r.Lanes(ctx); err != nil {
		return nil, err
	}
	r.lander, err = r.Lander(ctx)
	return r, err
}

// report prints a promise in one write, so that a kill does not cut it.
func (r *worker) report(words ...any) {
	_, _ = os.Stdout.WriteString(fmt.Sprintln(words...)) // a closed pipe means that the session has ended
}

// finish is the file beside the repository that tells workers to finish.
const finish = "finish"

// isFinishing reports whether the workers were told to finish.
func (r *worker) isFinishing() bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(r.Dir), finish))
	return err == nil
}
