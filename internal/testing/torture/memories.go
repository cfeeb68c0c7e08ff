package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/internal/durable"
	"muster/internal/memory"
)

// memories: four processes save what they remember in one directory, each under names of its own and all under the same
// names, forget some of it, and are killed. What each was told to be saved is there, as a memory or as what another one
// has replaced, what was forgotten is not, and every file is whole.
func memories(ctx context.Context, a *env) error {
	n, processes := a.amount(120, 10), 4
	var jobs []Job
	for i := range processes {
		jobs = append(jobs, Job{Kind: "remember", Name: fmt.Sprintf("m%d", i+1), Count: n})
	}
	err := a.run(ctx, jobs, chaos{kills: a.amount(60, 6), passes: n * processes * 25, total: n * processes,
		step: func(e entry) bool { return e.words[0] == "shared" }})
	if err != nil || a.row.Bad() {
		return err
	}
	a.row.Operations = n * processes
	d := memoriesOf(a.root())
	all, err := d.List()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.Name] = true; m.Problem != "" || m.By == "" {
			a.fail(&a.row.Lost, "%s is not whole: %s", m.Name, m.Problem)
		}
	}
	index, err := os.ReadFile(filepath.Join(d.Path, "MEMORY.md"))
	if err != nil {
		return err
	}
	for i := range n {
		for _, j := range jobs {
			own := ownMemory(j.Name, i)
			if isForgotten := i%4 == 0; names[own] == isForgotten {
				a.fail(&a.row.Lost, "%s is there: %v", own, names[own])
			}
			if !isKept(d, sharedMemory(i), textOf(j.Name, i)) {
				a.fail(&a.row.Lost, "what %s has saved as %s is neither there nor kept", j.Name, sharedMemory(i))
			}
		}
	}
	if lines := strings.Count(string(index), "\n"); lines != min(len(all), 194) {
		a.fail(&a.row.Lost, "the index has %d lines for %d memories", lines, len(all))
	}
	return nil
}

// memoriesOf returns the directory that the workers of a session share.
func memoriesOf(root string) memory.Dir {
	return memory.Dir{Path: filepath.Join(filepath.Dir(root), ".memories")}
}

func ownMemory(worker string, i int) string { return fmt.Sprintf("own-%s-%d", worker, i) }
func sharedMemory(i int) string             { return fmt.Sprintf("shared-%d", i) }
func textOf(worker string, i int) string    { return fmt.Sprintf("text %d of %s", i, worker) }

// isKept reports whether a text is that of a memory, or of one that it has replaced.
func isKept(d memory.Dir, name, text string) bool {
	files := append(durable.Glob(filepath.Join(d.Path, ".old"), name+".*.md"), filepath.Join(d.Path, name+".md"))
	return slices.ContainsFunc(files, func(path string) bool {
		data, err := os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(data), "---\n"+text+"\n")
	})
}

// rememberer saves and forgets, and goes through all of it again after a kill.
func rememberer(ctx context.Context, r *services) error {
	d := memoriesOf(r.Dir)
	for i := range r.Count {
		r.hold(time.Second)
		for _, name := range []string{ownMemory(r.Name, i), sharedMemory(i)} {
			if isKept(d, name, textOf(r.Name, i)) {
				continue // before a kill
			}
			m := memory.Memory{Name: name, Description: "about " + name, Type: "project", By: r.Name,
				Content: textOf(r.Name, i)}
			if _, err := d.Save(ctx, m); err != nil {
				return err
			}
		}
		r.note("shared", number(i))
		if i%4 == 0 {
			if err := d.Forget(ctx, ownMemory(r.Name, i)); err != nil {
				return err
			}
		}
		if i == 0 {
			r.ready()
		}
	}
	return nil
}
