package playbook

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/editdist"
	"muster/internal/yamldoc"
)

// graph is the tasks of a playbook by their keys, and the keys of all tasks by the id that the file has.
type graph struct {
	*reader
	byKey map[string]*task
	byID  map[string][]string
	// path has the tasks that wait for each other on the way to the one that is looked at.
	path  []string
	order []muster.PlannedTask
}

// inOrder returns the tasks in the order of the file, but each after those that it waits for.
func (r *reader) inOrder() ([]muster.PlannedTask, error) {
	g := &graph{reader: r, byKey: map[string]*task{}, byID: map[string][]string{}}
	for _, t := range r.tasks {
		if g.byKey[t.Key] != nil {
			return nil, r.errorAt(t.node, "there are two tasks with the id %q: an item of for_each stands there "+
				"twice, or another task has this id", t.Key)
		}
		g.byKey[t.Key], g.byID[t.id] = t, append(g.byID[t.id], t.Key)
	}
	for _, t := range r.tasks {
		for _, n := range t.blockers {
			keys, err := g.blockers(t, n)
			if err != nil {
				return nil, err
			}
			t.BlockedBy = append(t.BlockedBy, keys...)
		}
		slices.Sort(t.BlockedBy)
		t.BlockedBy = slices.Compact(t.BlockedBy)
	}
	for _, t := range r.tasks {
		if err := g.visit(t); err != nil {
			return nil, err
		}
	}
	return g.order, nil
}

// blockers returns the keys of the tasks that an entry of blocked_by names. The id of a task with for_each names all
// of its tasks. An id with {{item}} in it names, in a task with for_each, the one of the same item.
func (g *graph) blockers(t *task, n ast.Node) ([]string, error) {
	written, err := g.scalar(n)
	if err != nil {
		return nil, err
	}
	written = strings.TrimSpace(written)
	if keys := g.byID[written]; keys != nil && (t.item == nil || !namesItem(written)) {
		return keys, nil
	}
	id, err := g.text(n, t.item)
	if err != nil {
		return nil, err
	}
	if id = strings.TrimSpace(id); g.byKey[id] != nil {
		return []string{id}, nil
	}
	var ids []string
	for _, t := range g.tasks {
		ids = append(ids, t.id)
	}
	return nil, g.errorAt(n, "no task has the id %q%s", id, editdist.Suggest(id, ids))
}

// visit adds a task to the order, after those that it waits for.
func (g *graph) visit(t *task) error {
	if i := slices.Index(g.path, t.Key); i >= 0 {
		line, column := yamldoc.Place(t.node)
		return muster.Errorf(muster.Invalid, "%s:%d:%d: these tasks wait for each other: %s", g.File, line, column,
			strings.Join(append(g.path[i:], t.Key), " -> ")).
			WithHint("remove one of them from blocked_by")
	}
	if t.isVisited {
		return nil
	}
	g.path = append(g.path, t.Key)
	for _, key := range t.BlockedBy {
		if err := g.visit(g.byKey[key]); err != nil {
			return err
		}
	}
	g.path = g.path[:len(g.path)-1]
	t.isVisited = true
	g.order = append(g.order, t.PlannedTask)
	return nil
}
