package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
)

// Task returns one task: its fields, then its texts. A field that is empty, or as in every new task, is left out.
func Task(p Paint, t muster.Task, now time.Time) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "%d  %s\n", t.ID, text.OneLine(t.Subject))
	v := Table{Titles: []string{"", ""}}
	row := func(name string, value any) {
		if value != "" && value != 0 {
			v.Row(name, value)
		}
	}
	v.Row("status", TaskState(t))
	owner := string(t.Owner)
	if owner != "" && t.ClaimedAt > 0 {
		owner += " since " + Clock(muster.Time(t.ClaimedAt), now)
	}
	row("owner", owner)
	row("role", t.ClaimRole)
	row("waits for", IDs(t.BlockedBy))
	row("depends on", IDs(t.DependsOn))
	row("takes back", IDs(t.Undoes))
	row("blocks", IDs(t.Blocks))
	row("priority", t.Priority)
	row("files", text.OneLine(strings.Join(t.Files, ", ")))
	if t.RequirePlan {
		row("plan", "must be approved first")
	}
	row("lane", string(t.Worktree))
	// A task may be completed and not landed: it needed no change, or another program wrote that it is complete.
	if t.Landed != nil {
		v.Row("landed", Text(fmt.Sprintf("%.7s  %s", t.Landed.Commit, landingEvidence(*t.Landed))))
	} else if t.Status == muster.Completed {
		row("landed", "no change of ours")
	}
	if t.Landed != nil {
		row("review", text.OneLine(t.Landed.Review))
	} else if t.Review {
		row("review", "before it lands")
	}
	row("attempts", t.Attempts)
	row("came back", t.Rounds)
	row("last return", text.OneLine(t.Returned))
	if t.CreatedAt > 0 {
		made := Clock(muster.Time(t.CreatedAt), now)
		if t.CreatedBy != "" {
			made += " by " + string(t.CreatedBy)
		}
		row("added", made)
	}
	w.WriteString(v.Draw(Screen{Paint: p}))
	texts := []struct{ title, body string }{{"description", t.Description}, {"note", t.Note}, {"result", t.Result},
		{"both sides", t.Sides}}
	for _, s := range texts {
		if body := strings.TrimSpace(text.Clean(s.body)); body != "" {
			fmt.Fprintf(w, "\n%s\n  %s\n", s.title, strings.ReplaceAll(body, "\n", "\n  "))
		}
	}
	return w.String()
}

// landingEvidence says what was checked when the task landed, and the result: the command, the receipt, and how long
// the check took.
func landingEvidence(l muster.Landed) string {
	s := text.OneLine(l.Receipt)
	switch {
	case l.CoveredBy > 0:
		s += fmt.Sprintf(" by the check of #%d", l.CoveredBy)
	case l.Seconds > 0:
		s += " " + seconds(l.Seconds)
	}
	if l.Flaky {
		s += ", red by chance before"
	}
	if l.Check != "" {
		s = text.OneLine(l.Check) + "  " + s
	}
	return s
}

// TaskState returns where a task stands, in its colour.
func TaskState(t muster.Task) Cell {
	c := Text(TaskWord(t))
	switch t.Status {
	case muster.Completed:
		c.Tone = Good
	case muster.NeedsAttention:
		c.Tone = Yours
	}
	return c
}

// RequestState returns where a request stands, in its colour.
func RequestState(s muster.RequestStatus) Cell {
	c := Status(s, muster.RequestApproved, muster.RequestRejected, muster.RequestExpired)
	c.Text = RequestWord(s)
	return c
}

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

// TreeTask is a task as it stands in a tree: Level is how many tasks are above it, at most maxTreeDepth.
type TreeTask struct {
	Task  *muster.Task
	Level int
}

// TreeTasks returns tasks in the order in which a tree shows them: each below the one that it waits for.
func TreeTasks(all []muster.Task) []TreeTask {
	nodes := buildTree(all)
	tasks := make([]TreeTask, len(nodes))
	for i, n := range nodes {
		tasks[i] = TreeTask{n.task, min(n.level, maxTreeDepth)}
	}
	return tasks
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
		owner, others := text.OneLine(string(b.task.Owner)), b.otherBlockers()
		if owner == "" && b.task.Status == muster.Pending && b.task.ClaimRole != "" {
			owner = "a " + text.OneLine(b.task.ClaimRole)
		}
		waits = waits || others != ""
		indent := strings.Repeat("  ", min(b.level, maxTreeDepth))
		t.Row(b.task.ID, Text(indent+text.OneLine(b.task.Subject)), TaskState(*b.task),
			Cell{Text: text.CutColumns(owner, most), Who: text.OneLine(string(b.task.Owner))},
			text.CutColumns(others, most))
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
