package view

import (
	"slices"
	"strings"

	"muster"
)

// maxTreeDepth limits the indentation of the tree. Deeper tasks stand at that depth and name all tasks that they wait
// for.
const maxTreeDepth = 6

// treeNode is a task in the tree.
type treeNode struct {
	task   *muster.Task
	level  int           // how many tasks are above it
	parent muster.TaskID // the task above it, 0 at the top
}

// buildTree puts each task under the last of the given tasks that it waits for. A task that waits for none of them
// stands under the last one that it depended on. Siblings keep the given order. Every task appears once, even if the
// dependencies form a cycle, which only a foreign program can write.
func buildTree(all []muster.Task) []treeNode {
	at := make(map[muster.TaskID]int, len(all))
	for i := range all {
		at[all[i].ID] = i
	}
	// A task's number is 0 for the top of the tree.
	below := make(map[muster.TaskID][]*muster.Task, len(all))
	for i := range all {
		t, above := &all[i], muster.TaskID(0)
		for _, id := range slices.Concat(t.DependsOn, t.BlockedBy) {
			if _, known := at[id]; known && id != t.ID {
				above = id
			}
		}
		below[above] = append(below[above], t)
	}
	tree := make([]treeNode, 0, len(all))
	placed := make([]bool, len(all))
	// A foreign program can write a chain of any length. A stack of Go grows to the depth that the longest one needs.
	var place func(n treeNode)
	place = func(n treeNode) {
		i := at[n.task.ID]
		if placed[i] {
			return
		}
		placed[i] = true
		tree = append(tree, n)
		for _, t := range below[n.task.ID] {
			place(treeNode{t, n.level + 1, n.task.ID})
		}
	}
	for _, t := range below[0] {
		place(treeNode{task: t})
	}
	// The tasks of a cycle are below each other and not reachable from the top. The first that was not placed stands
	// there, so that no task is left out.
	for i := range all {
		place(treeNode{task: &all[i]})
	}
	return tree
}

// Tree returns the board as it is drawn: each task under the one that it waits for. Where that says it all, there is no
// column of what a task waits for.
func Tree(s Screen, all []muster.Task) string {
	t := Table{Titles: []string{">ID", "SUBJECT", "STATUS", "OWNER", "WAITS FOR"}, Wide: 1}
	most := 40
	if s.Width > 0 && s.Width < 80 {
		most = 10
	}
	waits := false
	for _, b := range buildTree(all) {
		owner, others := OneLine(string(b.task.Owner)), b.otherBlockers()
		if owner == "" && b.task.Status == muster.Pending && b.task.ClaimRole != "" {
			owner = "a " + OneLine(b.task.ClaimRole)
		}
		waits = waits || others != ""
		indent := strings.Repeat("  ", min(b.level, maxTreeDepth))
		t.Row(b.task.ID, Text(indent+OneLine(b.task.Subject)), TaskStatus(b.task.Status),
			Cell{Text: Cut(owner, most), Who: OneLine(string(b.task.Owner))}, Cut(others, most))
	}
	if !waits { // the tree says it all
		t.Titles = t.Titles[:4]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:4]
		}
	}
	return t.Draw(s)
}

// otherBlockers names the tasks that the node waits for and that its place in the tree does not show.
func (b treeNode) otherBlockers() string {
	if b.level == 0 || b.level > maxTreeDepth {
		return IDs(b.task.BlockedBy)
	}
	isParent := func(id muster.TaskID) bool { return id == b.parent }
	ids := slices.DeleteFunc(slices.Clone(b.task.BlockedBy), isParent)
	return strings.TrimSuffix("and "+IDs(ids), "and ")
}
