package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/board"
)

// foreign: another program, which knows nothing of locks, rewrites a task in place while one of ours is in the middle
// of changing it: its new content is staged, and it stops there until the other is done. What both wrote is there in
// the end.
func foreign(ctx context.Context, a *env) error {
	n := a.amount(60, 6)
	for id := range muster.TaskID(n) { // none waits for another: what is written is what the test wants written
		if err := a.write(muster.Task{ID: id + 1, Subject: "a task", Status: muster.Pending}); err != nil {
			return err
		}
	}
	for first := 1; first <= n; first += batch {
		var jobs []Job
		for id := first; id < min(first+batch, n+1); id++ {
			jobs = append(jobs, Job{Kind: "write", Name: fmt.Sprintf("w%d", id), Count: id})
		}
		err := a.run(ctx, jobs, chaos{total: len(jobs), step: func(e entry) bool { return e.words[0] == "wrote" },
			arm:     func(*worker) string { return "stop:tasks.put.staged" },
			stopped: func(_ context.Context, h *worker, _ int) bool { return a.interfere(h.job.Count) }})
		if err != nil || a.row.Bad() {
			return err
		}
	}
	if a.row.Operations = n; a.row.Stops != n {
		a.fail(nil, "only %d of %d changes were met in the middle", a.row.Stops, n)
	}
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	for id := range muster.TaskID(n) {
		t, err := r.board.Get(ctx, id+1)
		if err != nil {
			return err
		}
		if t.Description != "ours" {
			a.fail(&a.row.Lost, "task %d lacks what we wrote", id+1)
		}
		if _, ok := t.Extra["theirs"]; !ok {
			a.fail(&a.row.Lost, "task %d lacks what the other program wrote", id+1)
		}
	}
	return nil
}

// batch is how many tasks are written at once.
const batch = 10

// interfere writes as the other program does. It reports whether it could.
func (a *env) interfere(id int) bool {
	path := filepath.Join(a.root(), ".tasks", fmt.Sprintf("task_%d.json", id))
	data, err := os.ReadFile(path)
	var task map[string]any
	if err != nil || json.Unmarshal(data, &task) != nil {
		return false
	}
	task["theirs"] = true
	data, err = json.Marshal(task)
	return err == nil && os.WriteFile(path, data, 0o600) == nil
}

// writer changes a task once, and stops in the middle of it.
func writer(ctx context.Context, r *services) error {
	ours := "ours"
	if _, err := r.board.Update(ctx, muster.TaskID(r.Count),
		board.Patch{Description: &ours, By: muster.User}); err != nil {
		return err
	}
	r.note("wrote", number(r.Count))
	return nil
}
