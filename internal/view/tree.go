package view

import (
	"fmt"
	"io"
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
	level  int
	parent muster.TaskID // the task above it, 0 at the top
}

// buildTree puts each task under the last of the given tasks that it waits for. A task that waits for none of them
// stands under the last one that it depended on. Siblings keep the given order. Every task appears once, even if the
// dependencies form a cycle, which only a foreign program can write.
func buildTree(all []muster.Task) []treeNode {
	// A recursion over the tasks would be shorter, but a foreign program can write a chain of any length. The stack
	// holds the tasks that were found and not yet placed.
	at := make(map[muster.TaskID]int, len(all))
	for i := range all {
		at[all[i].ID] = i
	}
	below := make(map[muster.TaskID][]int, len(all))
	var stack []treeNode
	for i := range slices.Backward(all) {
		above := muster.TaskID(0)
		for _, ids := range [][]muster.TaskID{all[i].DependsOn, all[i].BlockedBy} {
			for _, id := range ids {
				if _, known := at[id]; known && id != all[i].ID {
					above = id
				}
			}
		}
		if above == 0 {
			stack = append(stack, treeNode{task: &all[i]})
		} else {
			below[above] = append(below[above], i)
		}
	}
	// Tasks of a cycle are below each other and not reachable from the top. When the stack is empty, the first task
	// that was not placed begins the next round, so that no task is left out.
	tree := make([]treeNode, 0, len(all))
	seen := make([]bool, len(all))
	for next := 0; ; next++ {
		for len(stack) > 0 {
			b := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			i := at[b.task.ID]
			if seen[i] {
				continue
			}
			seen[i] = true
			tree = append(tree, b)
			for _, i := range below[b.task.ID] {
				stack = append(stack, treeNode{&all[i], b.level + 1, b.task.ID})
			}
		}
		for next < len(all) && seen[next] {
			next++
		}
		if next == len(all) {
			return tree
		}
		stack = append(stack, treeNode{task: &all[next]}) // a foreign program made a ring
	}
}

// WriteTree prints the board: each task under the one that it waits for.
func WriteTree(w io.Writer, p Paint, width int, all []muster.Task) error {
	t := Table{Titles: []string{">ID", "SUBJECT", "STATUS", "OWNER", "WAITS FOR"}, Wide: 1}
	most := 40
	if width > 0 && width < 80 {
		most = 10
	}
	waits := false
	for _, b := range buildTree(all) {
		owner, others := OneLine(string(b.task.Owner)), b.otherBlockers()
		if owner == "" && b.task.Status == muster.Pending && b.task.ClaimRole != "" {
			owner = "a " + OneLine(b.task.ClaimRole)
		}
		waits = waits || others != ""
		t.Row(Text(fmt.Sprint(b.task.ID)), Text(strings.Repeat("  ",
			min(b.level, maxTreeDepth))+OneLine(b.task.Subject)), TaskStatus(b.task.Status),
			Cell{Text: Cut(owner, most), Who: OneLine(string(b.task.Owner))}, Text(Cut(others, most)))
	}
	if !waits { // the tree says it all
		t.Titles = t.Titles[:4]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:4]
		}
	}
	return t.Write(w, p, width)
}

// otherBlockers names the tasks that the node waits for and that its place in the tree does not show.
func (b treeNode) otherBlockers() string {
	if b.level == 0 || b.level > maxTreeDepth {
		return IDs(b.task.BlockedBy)
	}
	var ids []muster.TaskID
	for _, id := range b.task.BlockedBy {
		if id != b.parent {
			ids = append(ids, id)
		}
	}
	return strings.TrimSuffix("and "+IDs(ids), "and ")
}
